"""gradcheck in forward mode: one column of the Jacobian for each direction an input element can move in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..runtime.memory import device
from ..runtime.memory.dtype import INEXACT
from ..runtime.tensor.tensor import Tensor
from .forward_ad import dual_level, make_dual, unpack_dual
from .jacobian_mismatch import GradcheckError, Mismatch, close
from .numerical_jacobian import Checker, as_tuple, host_copy

__all__ = ["check_forward", "check_forward_fast", "check_undefined_tangents"]


def check_forward(checker: Checker) -> None:
    """Compare every element of every Jacobian with what forward mode computes."""
    indices = differentiable_outputs(checker)
    for k, tensor in enumerate(checker.inputs):
        numerical = checker.numerical(tensor, indices)
        for d, direction in enumerate((1, 1j) if tensor.is_complex() else (1,)):
            analytical = [numpy.zeros(jacobian[d].shape, dtype=numpy.complex128) for jacobian in numerical]
            for element in range(tensor.numel()):
                step = numpy.zeros(tensor.numel(), dtype=tensor._dtype)
                step[element] = direction
                for jacobian, column in zip(analytical, pushed(checker, indices, k, step), strict=True):
                    jacobian[element] = column
            part = ("real", "imaginary")[d] if tensor.is_complex() else ""
            for output, found, expected in zip(indices, analytical, numerical, strict=True):
                compare(checker, k, output, found, expected[d], part)


def compare(checker: Checker, k: int, output: int, found: numpy.ndarray, expected: numpy.ndarray, part: str) -> None:
    """Raise where the Jacobian of an output by input number `k` is not that of finite differences."""
    if close(found, expected, checker.atol, checker.rtol).all():
        return
    if not checker.all_outputs[output].is_complex():
        found, expected = found.real, expected.real
    mismatch = Mismatch(
        found,
        expected,
        checker.positions[k],
        output,
        tuple(checker.inputs[k].shape),
        tuple(checker.all_outputs[output].shape),
        part,
        checker.atol,
        checker.rtol,
        forward=True,
    )
    raise GradcheckError(mismatch.message(), mismatch)


def check_forward_fast(checker: Checker) -> None:
    """Compare the derivative along one random direction of each input; on failure look at every element."""
    indices = differentiable_outputs(checker)
    generator = numpy.random.default_rng(0)
    for k, tensor in enumerate(checker.inputs):
        step = checker.direction(tensor, generator)
        slopes = checker.slope_along(tensor, step)
        atol = checker.atol * float(abs(step.real).sum() + abs(step.imag).sum())
        for output, found in zip(indices, pushed(checker, indices, k, step), strict=True):
            if not close(found, slopes[output], atol, checker.rtol).all():
                check_forward(checker)
                raise GradcheckError(
                    f"Fast gradcheck failed but element-wise differences are small: forward mode differs from finite "
                    f"differences along a random direction of input {checker.positions[k]}, for output {output}.\n"
                    "The slow mode passes: use fast_mode=False."
                )


def check_undefined_tangents(checker: Checker) -> None:
    """An input without tangent counts as one whose tangent is zero."""
    indices = differentiable_outputs(checker)
    generator = numpy.random.default_rng(0)
    steps: list[Any] = [checker.direction(t, generator) for t in checker.inputs]
    for k, tensor in enumerate(checker.inputs):
        zeros = [*steps[:k], numpy.zeros(tensor.numel()), *steps[k + 1 :]]
        missing = [*steps[:k], None, *steps[k + 1 :]]
        pairs = zip(pushed_together(checker, indices, zeros), pushed_together(checker, indices, missing), strict=True)
        for output, (expected, found) in zip(indices, pairs, strict=True):
            if not close(found, expected, 1e-8, 1e-5).all():
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index {output} when input {checker.positions[k]} has "
                    "an undefined tangent value: zeros give another tangent.\nTreat a tangent that is None as zeros."
                )


def differentiable_outputs(checker: Checker) -> list[int]:
    """Return the positions of the outputs that can have a tangent."""
    return [i for i, output in enumerate(checker.all_outputs) if output._dtype.kind in INEXACT]


def pushed(checker: Checker, indices: Sequence[int], k: int, step: numpy.ndarray) -> list[numpy.ndarray]:
    """Return the tangents of the outputs, flat, when input number `k` moves along `step` and the others stand still."""
    steps = [numpy.zeros(tensor.numel()) for tensor in checker.inputs]
    steps[k] = step
    return pushed_together(checker, indices, steps)


def pushed_together(checker: Checker, indices: Sequence[int], steps: Sequence[Any]) -> list[numpy.ndarray]:
    """Return the tangents of the outputs, flat, when the inputs move along `steps`; None gives no tangent."""
    arguments = list(checker.arguments)
    with dual_level():
        for position, tensor, step in zip(checker.positions, checker.inputs, steps, strict=True):
            arguments[position] = (
                tensor.detach() if step is None else make_dual(tensor.detach(), as_tangent(tensor, step))
            )
        outputs = as_tuple(checker.function(*arguments))
        return [flat_tangent(checker, outputs[index]) for index in indices]


def as_tangent(tensor: Tensor, step: numpy.ndarray) -> Tensor:
    """Return a flat direction as a tangent of `tensor`."""
    values = step.astype(tensor._dtype).reshape(tensor._array.shape)
    return Tensor._wrap(device.to_device(values, tensor.device))


def flat_tangent(checker: Checker, output: Tensor) -> numpy.ndarray:
    """Return the tangent of an output in host memory; zeros if it has none."""
    primal, tangent = unpack_dual(output)
    if tangent is None:
        return numpy.zeros(primal.numel())
    if checker.check_dtypes and primal.is_complex() != tangent.is_complex():
        raise GradcheckError(f"Forward AD gradient has dtype mismatch: {tangent.dtype} for an output of {primal.dtype}")
    return host_copy(tangent)
