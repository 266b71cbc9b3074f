"""References of operators: what a declaration names, as a function of host arrays in double precision."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy

from gradscope.runtime import device, dtype
from gradscope.runtime.ops.registry import Operator
from gradscope.runtime.tensor import Tensor
from tests.runtime.ops.operator_cases import convert

_DIGITS = 60
# What these return depends on how fine the dtype is: their references are given it as it is.
_OF_THEIR_DTYPE = {"nextafter"}


def reference_of(op: Operator) -> Callable[..., Any]:
    """Return the reference that an operator's declaration names."""
    if callable(op.reference):
        return op.reference
    assert op.reference is not None, f"the declaration of {op.name} names no reference"
    module, _, name = op.reference.rpartition(".")
    return _of_numbers(name) if module == "mpmath" else getattr(importlib.import_module(module), name)


def expected(op: Operator, sample: Any) -> list[Any]:
    """Return the outputs of the reference for a sample of the operator, as arrays, each with its own dtype."""
    args, kwargs = (_widened(part, op.name in _OF_THEIR_DTYPE) for part in sample)
    with numpy.errstate(all="ignore"):
        result = reference_of(op)(*args, **kwargs)
    return [numpy.asarray(part) for part in (result if isinstance(result, (tuple, list)) else [result])]


def _widened(value: Any, as_given: bool = False) -> Any:
    """Return arguments with arrays in place of tensors, in double precision unless they are to stay as given."""
    value = convert(value, lambda tensor: _host(tensor) if as_given else _double(_host(tensor)))
    if isinstance(value, (list, tuple)):
        return type(value)(_widened(item) for item in value)
    if isinstance(value, dict):
        return {key: _widened(item) for key, item in value.items()}
    return value.numpy if isinstance(value, dtype.dtype) else value


def _host(tensor: Tensor) -> Any:
    return device.to_host(tensor._array)


def _double(array: Any) -> Any:
    return array.astype({"f": "float64", "c": "complex128"}.get(array.dtype.kind, array.dtype))


def _of_numbers(name: str) -> Callable[..., Any]:
    """Return mpmath's function `name` over arrays, rounded to double precision once, at the end."""
    import mpmath

    function = getattr(mpmath, name)

    def one(*numbers: Any) -> Any:
        # Of a NaN mpmath makes NaN slowly or not at all; every function named here has NaN there.
        if any(number != number for number in numbers):
            return numpy.nan
        try:
            result = function(*(number.item() if hasattr(number, "item") else number for number in numbers))
        except (ValueError, ZeroDivisionError):
            return numpy.nan  # outside of its domain, or a pole
        return _rounded(result, any(isinstance(number, complex) for number in numbers))

    def over_arrays(*arguments: Any) -> Any:
        kind = numpy.result_type(*arguments, numpy.float64)
        arrays = numpy.broadcast_arrays(*arguments)
        found = numpy.empty(arrays[0].shape, dtype=kind)
        with mpmath.workdps(_DIGITS):
            for place in numpy.ndindex(found.shape):
                found[place] = one(*(array[place] for array in arrays))
        return found

    return over_arrays


def _rounded(number: Any, complex_: bool) -> Any:
    """Return a number of mpmath's as Python's: NaN where a function of real numbers leaves them."""
    if complex_:
        return complex(number)
    if getattr(number, "imag", 0) != 0:
        return numpy.nan
    try:
        return float(number.real)
    except OverflowError:
        return numpy.copysign(numpy.inf, 1 if number.real > 0 else -1)


def disagreements(op: Operator, sample: Any, outputs: list[Tensor], *, rtol: float) -> list[str]:
    """Return a line for each element in which an operator and its reference differ, stated differences apart."""
    arrays = [_host(output) for output in outputs]
    wanted = expected(op, sample)
    assert len(arrays) == len(wanted), f"{op.name}: {len(arrays)} results, its reference has {len(wanted)}"
    lines = []
    for number, (found, other) in enumerate(zip(arrays, wanted, strict=True)):
        assert found.shape == other.shape, f"{op.name}: shape {found.shape}, that of its reference {other.shape}"
        wrong = ~_agree(op, found, other, rtol) & ~_stated(op, sample, found.shape)
        for place in (tuple(place) for place in numpy.argwhere(wrong)):
            at = [_element(argument, place, found.shape) for argument in (*sample[0], *sample[1].values())]
            lines.append(f"{op.name}({', '.join(at)})[{number}] = {found[place]}, its reference {other[place]}")
    return lines


def shown_differences(op: Operator, sample: Any, outputs: list[Tensor], *, rtol: float) -> set[str]:
    """Return the reasons of those differences that the declaration states and that a sample shows."""
    return {
        why
        for where, why in op.differs
        for output, other in zip(outputs, expected(op, sample), strict=True)
        if (~_agree(op, _host(output), other, rtol) & _mask(where, sample, tuple(output.shape))).any()
    }


def _agree(op: Operator, found: Any, other: Any, rtol: float) -> Any:
    """Return where two arrays agree: to `rtol`, NaN with NaN, and in the sign of zeros, which mpmath does not know."""
    with numpy.errstate(all="ignore"):
        other = other.astype(found.dtype)
        if found.dtype.kind not in "fc":
            return found == other
        smallest = 4 * float(numpy.finfo(found.dtype).smallest_subnormal)
        close = numpy.isclose(found, other, rtol=rtol, atol=smallest, equal_nan=True)
    if found.dtype.kind == "c":
        return close | (numpy.isnan(found) & numpy.isnan(other))
    signed = not str(op.reference).startswith("mpmath.")
    return close & ~((found == 0) & (other == 0) & (numpy.signbit(found) != numpy.signbit(other)) & signed)


def _stated(op: Operator, sample: Any, shape: tuple[int, ...]) -> Any:
    found = numpy.zeros(shape, dtype=bool)
    for where, _ in op.differs:
        found |= _mask(where, sample, shape)
    return found


def _mask(where: Callable[..., Any], sample: Any, shape: tuple[int, ...]) -> Any:
    args, kwargs = (_widened(part) for part in sample)
    with numpy.errstate(all="ignore"):
        return numpy.broadcast_to(where(*args, **kwargs), shape)


def _element(argument: Any, place: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    if isinstance(argument, Tensor) and tuple(argument.shape) == shape:
        return repr(argument[tuple(int(i) for i in place)].item())
    return repr(argument.tolist()) if isinstance(argument, Tensor) and argument.numel() < 30 else f"{argument!r:.60}"
