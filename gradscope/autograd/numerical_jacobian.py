"""Jacobians that gradcheck compares: by finite differences and by backward; by forward in :mod:`gradcheck_forward`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from ..runtime import state
from ..runtime.engine.backward import grad
from ..runtime.graph.graph_node import Node
from ..runtime.memory import device
from ..runtime.tensor.tensor import Tensor
from ..runtime.tensor.views import edge_of
from .jacobian_mismatch import GradcheckError, Mismatch, close

__all__ = ["Checker"]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return one value as a tuple of one, a sequence as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def requires_grad(value: Any) -> bool:
    """Whether `value` is a tensor that requires grad."""
    return isinstance(value, Tensor) and value.requires_grad


def differentiable(outputs: Any) -> tuple[Tensor, ...]:
    """Return the outputs that have a gradient."""
    return tuple(o for o in as_tuple(outputs) if requires_grad(o))


def random_seed(output: Tensor, non_contiguous: bool) -> Tensor:
    """Return a random gradient for `output`, elements in (-1, 1), that requires grad."""
    generator = numpy.random.default_rng(0)
    shape = tuple(output.shape)
    wide = (*shape[:-1], 2 * shape[-1]) if non_contiguous and shape else shape
    values = generator.uniform(-1, 1, wide)
    if output.is_complex():
        values = values + 1j * generator.uniform(-1, 1, wide)
    array = device.to_device(numpy.asarray(values).astype(output.dtype.numpy), output.device)
    return Tensor._wrap(array[..., ::2] if wide != shape else array).requires_grad_()


def moving(tensor: Tensor) -> tuple[Any, Callable[[], None]]:
    """Return an array of the elements to write into, and what makes the tensor have them."""
    if not (tensor.is_conj() or tensor.is_neg()):
        return tensor._array, lambda: None
    elements = tensor._array.copy()
    return elements, lambda: tensor._write(elements)


def host_copy(tensor: Tensor) -> numpy.ndarray:
    """Return the values in host memory, flat and apart from the tensor's."""
    return numpy.array(device.to_host(tensor._array), copy=True).reshape(-1)


def unit(vector: numpy.ndarray) -> numpy.ndarray:
    """Return `vector` at length 1; an empty one as it is."""
    length = numpy.sqrt((abs(vector) ** 2).sum())
    return vector / length if length else vector


class _UndefinedGrad(Node):
    """A node that passes no gradient on, as if its output had never been used."""

    __slots__ = ()
    node_name = "UndefinedGradBackward"

    def apply(self, grad: Any) -> Any:
        return (None,)

    apply_graph = apply


def without_gradient(output: Tensor) -> Tensor:
    """Return `output` behind a node that drops the gradient."""
    node = _UndefinedGrad()
    node.edges = (edge_of(output),)
    node.seq = state.next_sequence()
    node.extra = None
    node.shape, node.dtype, node.kind = output._array.shape, output._dtype, type(output._array)
    result = Tensor._wrap(output._array)
    result._set_edge(node)
    return result


class Checker:
    """One gradcheck: the function, its arguments, and its outputs at the point that is checked."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        check_dtypes: bool,
        masked: bool,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.check_dtypes, self.masked = check_dtypes, masked
        self.positions = [i for i, a in enumerate(arguments) if requires_grad(a)]
        self.inputs: list[Tensor] = [arguments[i] for i in self.positions]
        self.all_outputs = as_tuple(function(*arguments))
        for index, output in enumerate(self.all_outputs):
            if not isinstance(output, Tensor):
                raise ValueError(
                    f"gradcheck expects a function that returns tensors; result {index} is a {type(output).__name__}\n"
                    "Wrap the function in one that returns the tensors to check."
                )
        self.outputs = differentiable(self.all_outputs)

    # --- finite differences ---

    def _values(self) -> list[numpy.ndarray]:
        values = [host_copy(o) for o in as_tuple(self.function(*self.arguments))]
        return [v.astype(numpy.float64) if v.dtype.kind in "iub" else v for v in values]

    def _slopes(self, write: Callable[[float], None]) -> list[numpy.ndarray]:
        """Return (f(x + eps) - f(x - eps)) / 2 eps of each output; `write` moves the arguments."""
        try:
            write(self.eps)
            above = self._values()
            write(-self.eps)
            below = self._values()
        finally:
            write(0.0)
        with numpy.errstate(invalid="ignore", over="ignore"):
            return [(a - b) / (2 * self.eps) for a, b in zip(above, below, strict=True)]

    def numerical(self, tensor: Tensor, outputs: Sequence[int]) -> list[numpy.ndarray]:
        """Return the complex Jacobians of `outputs` with respect to `tensor`; (directions, elements, output)."""
        array, show = moving(tensor)
        directions = (1, 1j) if tensor.is_complex() else (1,)
        sizes = [int(self.all_outputs[o]._array.size) for o in outputs]
        result = [numpy.zeros((len(directions), array.size, size), dtype=numpy.complex128) for size in sizes]
        for element, index in enumerate(numpy.ndindex(*array.shape)):
            before = array[index].copy()
            for d, direction in enumerate(directions):

                def write(step: float, index: Any = index, before: Any = before, direction: Any = direction) -> None:
                    array[index] = before + array.dtype.type(step * direction) if step else before
                    show()

                slopes = self._slopes(write)
                for jacobian, output in zip(result, outputs, strict=True):
                    jacobian[d, element] = slopes[output]
        return result

    # --- backward ---

    def _vjp(self, output: Tensor, seed: numpy.ndarray) -> list[Tensor | None]:
        """Return the gradients of the inputs for one gradient of `output`."""
        values = seed.reshape(tuple(output.shape)).astype(output._dtype)
        vector = Tensor._wrap(device.to_device(values, output.device))
        return list(grad(output, self.inputs, vector, retain_graph=True, allow_unused=True))

    def _checked_vjp(self, output: Tensor, seed: numpy.ndarray) -> list[numpy.ndarray]:
        """Return those gradients, flat and in host memory, after the checks of dtype, shape and repeatability."""
        found = []
        again = self._vjp(output, seed)
        for tensor, first, second in zip(self.inputs, self._vjp(output, seed), again, strict=True):
            if first is None or second is None:
                found.append(numpy.zeros(tensor._array.size, dtype=tensor._dtype))
                continue
            if self.check_dtypes and first.dtype is not tensor.dtype:
                raise GradcheckError(
                    f"Gradient has dtype mismatch: {first.dtype} for an input of {tensor.dtype}, shape "
                    f"{list(tensor.shape)}"
                )
            if first.shape != tensor.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: {list(first.shape)} for an input of shape "
                    f"{list(tensor.shape)}"
                )
            a, b = host_copy(first), host_copy(second)
            if not close(a, b, self.nondet_tol, 0.0).all():
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient. The tolerance "
                    f"for nondeterminism was {self.nondet_tol}; the values differ by up to {abs(a - b).max():.3g}.\n"
                    "Fix what the backward draws or accumulates, or raise nondet_tol."
                )
            found.append(a)
        return found

    def _parts(self, output: Tensor) -> Iterator[tuple[str, complex]]:
        """Yield the real functions that an output is made of: their name, and where their backward starts."""
        if output.is_complex():
            yield from (("imaginary", 1j), ("real", 1))
        else:
            yield ("", 1)

    # --- comparisons ---

    def indices(self) -> list[int]:
        """Return the positions of the outputs that require grad."""
        return [i for i, o in enumerate(self.all_outputs) if requires_grad(o)]

    def check_constant(self) -> None:
        """Without differentiable outputs, finite differences must see no slope either."""
        everything = range(len(self.all_outputs))
        for position, tensor in zip(self.positions, self.inputs, strict=True):
            for jacobian in self.numerical(tensor, everything):
                if (jacobian != 0).any():
                    raise GradcheckError(
                        "Numerical gradient for function expected to be zero: no output requires grad, but they "
                        f"change with input {position}.\nSomething cuts the graph: detach(), no_grad(), item(), "
                        "numpy(), or a result of an integer dtype."
                    )

    def check_full(self) -> None:
        """Compare every element of every Jacobian."""
        indices = self.indices()
        numerical = [self.numerical(tensor, indices) for tensor in self.inputs]
        for column, output in enumerate(self.outputs):
            for part, start in self._parts(output):
                self._compare_output(column, indices[column], part, start, [row[column] for row in numerical])

    def _compare_output(
        self, column: int, output_index: int, part: str, start: complex, slopes: Sequence[numpy.ndarray]
    ) -> None:
        output = self.outputs[column]
        size = int(output._array.size)
        analytical = [numpy.zeros((t._array.size, size), dtype=t._dtype) for t in self.inputs]
        for element in range(size):
            seed = numpy.zeros(size, dtype=numpy.complex128 if part else numpy.float64)
            seed[element] = start
            for jacobian, row in zip(analytical, self._checked_vjp(output, seed), strict=True):
                jacobian[:, element] = row
        for k, position in enumerate(self.positions):
            real = slopes[k].imag if part == "imaginary" else slopes[k].real
            # The gradient of a real function of z = x + iy is, by PyTorch's convention, df/dx + i df/dy.
            expected = real[0] + 1j * real[1] if len(real) == 2 else real[0]
            if not close(analytical[k], expected, self.atol, self.rtol).all():
                mismatch = Mismatch(
                    analytical[k],
                    expected,
                    position,
                    output_index,
                    tuple(self.inputs[k].shape),
                    tuple(output.shape),
                    part,
                    self.atol,
                    self.rtol,
                )
                raise GradcheckError(mismatch.message(), mismatch)

    def check_fast(self) -> None:
        """Compare one random projection ``v J u`` of each Jacobian; on failure look at every element."""
        generator = numpy.random.default_rng(0)
        vectors = [self.direction(t, generator) for t in self.inputs]
        seeds = [unit(generator.random(int(o._array.size))) for o in self.outputs]
        indices = self.indices()
        slopes = [self.slope_along(t, u) for t, u in zip(self.inputs, vectors, strict=True)]
        for output, v, index in zip(self.outputs, seeds, indices, strict=True):
            for part, start in self._parts(output):
                rows = self._checked_vjp(output, v * start)
                for u, row, slope in zip(vectors, rows, slopes, strict=True):
                    moved = slope[index].imag if part == "imaginary" else slope[index].real
                    found, expected = (row.conj() * u).sum().real, (moved * v).sum()
                    atol = self.atol * float(v.sum()) * float(abs(u.real).sum() + abs(u.imag).sum())
                    if not close(found, expected, atol, self.rtol).all():
                        self.check_full()
                        raise GradcheckError(
                            f"Fast gradcheck failed but element-wise differences are small: v^T J u is {found:.6g} by "
                            f"backward and {expected:.6g} by finite differences, for output {index}.\n"
                            "The slow mode passes: use fast_mode=False."
                        )

    def direction(self, tensor: Tensor, generator: numpy.random.Generator) -> numpy.ndarray:
        """Return a random direction to move `tensor` in, of length 1, flat."""
        size = int(tensor._array.size)
        if tensor.is_complex():
            return unit(generator.random(size) + 1j * generator.random(size))
        return unit(generator.random(size))

    def slope_along(self, tensor: Tensor, direction: numpy.ndarray) -> list[numpy.ndarray]:
        """Return how the outputs change when `tensor` moves in `direction`."""
        array, show = moving(tensor)
        before = array.copy()
        step_of = device.to_device(direction.astype(array.dtype).reshape(array.shape), tensor.device)

        def write(step: float) -> None:
            array[...] = before + step_of * array.dtype.type(step) if step else before
            show()

        return self._slopes(write)

    def check_batched(self) -> None:
        """``is_grads_batched=True`` must give what the gradients one by one give."""
        for index, output in enumerate(self.outputs):
            seeds = [random_seed(output, False).detach() for _ in range(2)]
            stacked = device.array_module(output._array).stack([s._array for s in seeds])
            batch = Tensor._wrap(stacked)
            try:
                found = grad(output, self.inputs, batch, retain_graph=True, allow_unused=True, is_grads_batched=True)
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}") from error
            single = [grad(output, self.inputs, s, retain_graph=True, allow_unused=True) for s in seeds]
            for position, batched, *rows in zip(self.positions, found, *single, strict=True):
                together = None if rows[0] is None else numpy.concatenate([host_copy(r) for r in rows])
                alike = (
                    batched is None
                    if together is None
                    else batched is not None and close(host_copy(batched), together, 1e-8, 1e-5).all()
                )
                if not alike:
                    raise GradcheckError(
                        f"Batched gradients differ from those computed one by one, for output {index} and input "
                        f"{position}: got {batched}, expected rows {rows}."
                    )

    def check_proportional(self) -> None:
        """Zero gradients of the outputs must give zero gradients of the inputs, of the inputs' shape and dtype."""
        module = device.array_module(self.outputs[0]._array)
        zeros = [Tensor._wrap(module.zeros(o._array.shape, dtype=o._dtype)) for o in self.outputs]
        found = grad(self.outputs, self.inputs, zeros, retain_graph=True, allow_unused=True)
        for position, tensor, result in zip(self.positions, self.inputs, found, strict=True):
            if result is None:
                continue
            values = host_copy(result)
            # Zero times NaN is NaN, which says nothing.
            values = values[~numpy.isnan(values)]
            if not (close(values, 0, 1e-8, 0.0) if self.masked else values == 0).all():
                raise GradcheckError(
                    f"backward not multiplied by grad_output: with zero gradients for the outputs, input {position} "
                    f"gets {abs(values).max():.3g}.\nMultiply what the backward returns by its incoming gradient."
                )
            if result.dtype is not tensor.dtype:
                raise GradcheckError(f"grad is incorrect type: {result.dtype}, not {tensor.dtype}")
            if result.device != tensor.device:
                raise GradcheckError(f"grad is incorrect device: {result.device}, not {tensor.device}")
            if result.shape != tensor.shape:
                raise GradcheckError(f"grad is incorrect size: {list(result.shape)}, not {list(tensor.shape)}")

    def check_undefined(self) -> None:
        """Outputs without a gradient count as zeros: all of them at once, and one at a time."""
        count = len(self.outputs)
        cases = [set(range(count))] + ([{i} for i in range(count)] if count > 1 else [])
        for dropped in cases:
            outputs = differentiable(self.function(*self.arguments))
            ends = [without_gradient(o) if i in dropped else o for i, o in enumerate(outputs)]
            module = device.array_module(outputs[0]._array)
            zeros = [Tensor._wrap(module.zeros(o._array.shape, dtype=o._dtype)) for o in outputs]
            try:
                found = grad(ends, self.inputs, zeros, allow_unused=True)
            except (RuntimeError, TypeError, AttributeError) as error:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads, but without a gradient for "
                    f"output(s) {sorted(dropped)} it raised {type(error).__name__}: {error}\n"
                    "Treat a gradient that is None as zeros."
                ) from error
            if any(g is not None and (numpy.nan_to_num(host_copy(g)) != 0).any() for g in found):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero, "
                    f"but without a gradient for output(s) {sorted(dropped)} some are not."
                )
