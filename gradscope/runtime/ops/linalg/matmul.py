"""Products of matrices and vectors."""

from __future__ import annotations

import math

import numpy

from ... import autocast, state
from ...kernels.broadcasting import expandable
from ...memory.dtype import BY_NUMPY
from ...memory.elements import as_element
from ...tensor import overrides
from ...tensor.creation import broadcast_shapes
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Formula, Gradient, Namespace, Number, Out, Shape
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.array_errors import as_multiple, broadcast_mismatch, refuse_kinds
from ..execution.bare_functions import conj, matrix_product
from .matrix_checks import adjoint


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _need_same_dtype(
    self: Array, other: Array, message: str = "expected m1 and m2 to have the same dtype, but got:"
) -> None:
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"{message} {BY_NUMPY[self.dtype].name} != {BY_NUMPY[other.dtype].name}\n"
            "Convert one of them with .to(dtype)."
        )


def _need_numbers(kernel: str, array: Array) -> None:
    """Raise for bools, of which NumPy has a product: whether any pair is of two that are True."""
    if array.dtype.kind == "b":
        refuse_kinds(kernel, array, "b")


def _mm(xp: Namespace, self: Array, mat2: Array) -> Array:
    shape, other = self.shape, mat2.shape
    if len(shape) != 2 or len(other) != 2 or shape[1] != other[0] or self.dtype is not mat2.dtype:
        _check_matrices(self, mat2)
    _need_numbers("addmm_impl_cpu_", self)
    return matrix_product(xp, self, mat2)


def _check_matrices(self: Array, mat2: Array) -> None:
    """Raise where two arrays are no matrices of one dtype that can be multiplied."""
    _need(self.ndim == 2, "self must be a matrix")
    _need(mat2.ndim == 2, "mat2 must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    _need_same_dtype(self, mat2)


operator(
    "mm(Tensor self, Tensor mat2)",
    _mm,
    out=True,
    derivatives={
        "self": lambda g, mat2, F: F.mm(g, conj(F.t(mat2))),
        "mat2": lambda g, self, F: F.mm(conj(F.t(self)), g),
    },
    doc="Multiply two matrices.",
    samples=lambda make: [
        ((make(2, 3), make(3, 4)), {}),
        ((make(0, 3), make(3, 2)), {}),
        ((make(3, 1), make(1, 2)), {}),
    ],
    reference="numpy.matmul",
)


def _bmm(xp: Namespace, self: Array, mat2: Array) -> Array:
    _need(self.ndim == 3 and mat2.ndim == 3, "batch1 and batch2 must be 3D tensors")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{self.shape[0]}, {self.shape[2]}] but "
            f"got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    _need_same_dtype(self, mat2, "expected scalar type of both batches to be the same, but found")
    _need_numbers("bmm", self)
    return matrix_product(xp, self, mat2)


operator(
    "bmm(Tensor self, Tensor mat2)",
    _bmm,
    out=True,
    derivatives={
        "self": lambda g, mat2, F: F.bmm(g, adjoint(mat2, F)),
        "mat2": lambda g, self, F: F.bmm(adjoint(self, F), g),
    },
    doc="Multiply batches of matrices.",
    samples=lambda make: [((make(2, 2, 3), make(2, 3, 4)), {})],
    reference="numpy.matmul",
)


def _mv(xp: Namespace, self: Array, vec: Array) -> Array:
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})"
        )
    _need_same_dtype(self, vec, "mv(): input tensors must have the same dtype, but got")
    _need_numbers("addmv_impl_cpu", self)
    return matrix_product(xp, self, vec)


operator(
    "mv(Tensor self, Tensor vec)",
    _mv,
    out=True,
    derivatives={
        "self": lambda g, vec, F: F.unsqueeze(g, 1) * conj(vec),
        "vec": lambda g, self, F: F.mv(conj(F.t(self)), g),
    },
    doc="Multiply a matrix and a vector.",
    samples=lambda make: [((make(2, 3), make(3)), {})],
    reference="numpy.matmul",
)


def _dot(xp: Namespace, self: Array, tensor: Array) -> Array:
    _need_same_dtype(self, tensor, "dot : expected both vectors to have same dtype, but found")
    _need_numbers("dot", self)
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src [{tensor.shape[0]}] to have the same "
            "number of elements"
        )
    return matrix_product(xp, self, tensor)


operator(
    "dot(Tensor self, Tensor tensor)",
    _dot,
    out=True,
    derivatives={"self": lambda g, tensor: g * conj(tensor), "tensor": lambda g, self: g * conj(self)},
    doc="Return the inner product of two vectors.",
    samples=lambda make: [((make(3), make(3)), {})],
    reference="numpy.dot",
)


def _plus(name: str, self: Array, product: Array, beta: Number, alpha: Number) -> Array:
    """Return ``beta * self + alpha * product``; with beta = 0 nothing of `self` counts, not even NaN."""
    _need_same_dtype(self, product, f"{name}: the tensor and the product must have the same dtype, but got")
    if not expandable(self.shape, product.shape):
        if self.ndim > product.ndim:
            raise RuntimeError(
                f"expand(Tensor{list(self.shape)}, size={list(product.shape)}): the number of sizes provided "
                f"({product.ndim}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})"
            )
        dim = next(i for i in range(1, self.ndim + 1) if self.shape[-i] not in (1, product.shape[-i]))
        raise RuntimeError(
            f"The expanded size of the tensor ({product.shape[-dim]}) must match the existing size "
            f"({self.shape[-dim]}) at non-singleton dimension {product.ndim - dim}.  Target sizes: "
            f"{list(product.shape)}.  Tensor sizes: {list(self.shape)}\nIn {name}()."
        )
    alpha, beta = _factor(name, "alpha", alpha, product), _factor(name, "beta", beta, product)
    if alpha != 1:
        product *= alpha
    if beta == 1:
        return product + self
    return product if beta == 0 else product + self * beta


def _factor(function: str, name: str, value: Number, product: Array) -> Number:
    """Return alpha or beta as the dtype of the product holds it: to addr() integers are not cut, as in PyTorch."""
    if value.__class__ is int and value == 1:
        return value
    return as_multiple(name, value, product) if function == "addr" else as_element(value, product, wide=True)


def _plus_product(name: str, product: Array) -> Formula:
    """Return the forward of ``beta * self + alpha * product(first, second)``."""

    def forward(xp: Namespace, self: Array, first: Array, second: Array, beta: Number = 1, alpha: Number = 1) -> Array:
        return _plus(name, self, product(xp, first, second), beta, alpha)

    return forward


def _scaled(g: Gradient, factor: Number) -> Gradient:
    """Return a gradient on its way back through a product with a number."""
    return g if factor == 1 else g * conj(factor)


def _older(name: str, one: str, other: str) -> tuple[str, ...]:
    """Return the overloads with the factors before what they belong to."""
    return (
        f"{name}(Scalar beta, Tensor self, Scalar alpha, Tensor {one}, Tensor {other})",
        f"{name}(Scalar beta, Tensor self, Tensor {one}, Tensor {other})",
    )


operator(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)",
    _plus_product("addmm", _mm),
    older=_older("addmm", "mat1", "mat2"),
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, beta: _scaled(g, beta),
        "mat1": lambda g, mat2, alpha, F: _scaled(F.mm(g, conj(F.t(mat2))), alpha),
        "mat2": lambda g, mat1, alpha, F: _scaled(F.mm(conj(F.t(mat1)), g), alpha),
    },
    doc="Return ``beta * self + alpha * (mat1 @ mat2)``.",
    samples=lambda make: [
        ((make(2, 4), make(2, 3), make(3, 4)), {"beta": 0.5, "alpha": 2.0}),
        ((make(4), make(2, 3), make(3, 4)), {}),
    ],
    reference=lambda self, a, b, beta=1, alpha=1: beta * self + alpha * numpy.matmul(a, b),
)


operator(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)",
    _plus_product("baddbmm", _bmm),
    older=_older("baddbmm", "batch1", "batch2"),
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, beta: _scaled(g, beta),
        "batch1": lambda g, batch2, alpha, F: _scaled(F.bmm(g, adjoint(batch2, F)), alpha),
        "batch2": lambda g, batch1, alpha, F: _scaled(F.bmm(adjoint(batch1, F), g), alpha),
    },
    doc="Return ``beta * self + alpha * (batch1 @ batch2)``.",
    samples=lambda make: [
        ((make(2, 2, 4), make(2, 2, 3), make(2, 3, 4)), {}),
        ((make(4), make(2, 2, 3), make(2, 3, 4)), {"beta": 0.5, "alpha": 2.0}),
    ],
    reference=lambda self, a, b, beta=1, alpha=1: beta * self + alpha * numpy.matmul(a, b),
)


operator(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)",
    _plus_product("addmv", _mv),
    older=_older("addmv", "mat", "vec"),
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, beta: _scaled(g, beta),
        "mat": lambda g, vec, alpha, F: _scaled(F.unsqueeze(g, 1) * conj(vec), alpha),
        "vec": lambda g, mat, alpha, F: _scaled(F.mv(conj(F.t(mat)), g), alpha),
    },
    doc="Return ``beta * self + alpha * (mat @ vec)``.",
    samples=lambda make: [
        ((make(2), make(2, 3), make(3)), {}),
        ((make(2), make(2, 3), make(3)), {"beta": 0.5, "alpha": 2.0}),
    ],
    reference=lambda self, a, b, beta=1, alpha=1: beta * self + alpha * numpy.matmul(a, b),
)


def _outer(xp: Namespace, vec1: Array, vec2: Array) -> Array:
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"addr: Expected 1-D arguments vec1 and vec2, got {vec1.ndim}-D and {vec2.ndim}-D")
    return vec1[:, None] * vec2


operator(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1)",
    _plus_product("addr", _outer),
    older=_older("addr", "vec1", "vec2"),
    inplace=True,
    out="castable",
    derivatives={
        "self": lambda g, beta: _scaled(g, beta),
        "vec1": lambda g, vec2, alpha, F: _scaled(F.mv(g, conj(vec2)), alpha),
        "vec2": lambda g, vec1, alpha, F: _scaled(F.mv(F.t(g), conj(vec1)), alpha),
    },
    doc="Return ``beta * self + alpha * outer(vec1, vec2)``.",
    samples=lambda make: [
        ((make(2, 3), make(2), make(3)), {}),
        ((make(3), make(2), make(3)), {"beta": 0.5, "alpha": 2.0}),
    ],
    reference=lambda self, a, b, beta=1, alpha=1: beta * self + alpha * numpy.outer(a, b),
)


def _bmm_sum(xp: Namespace, batch1: Array, batch2: Array) -> Array:
    return xp.add.reduce(_bmm(xp, batch1, batch2), axis=0, dtype=batch1.dtype)


def _per_batch(g: Gradient, batch_shape: Shape, F: Namespace) -> Gradient:
    return F.broadcast_to(g, (batch_shape[0], *g.shape))


operator(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)",
    _plus_product("addbmm", _bmm_sum),
    older=_older("addbmm", "batch1", "batch2"),
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, beta: _scaled(g, beta),
        "batch1": lambda g, batch2, alpha, F: _scaled(F.bmm(_per_batch(g, batch2.shape, F), adjoint(batch2, F)), alpha),
        "batch2": lambda g, batch1, alpha, F: _scaled(F.bmm(adjoint(batch1, F), _per_batch(g, batch1.shape, F)), alpha),
    },
    doc="Return ``beta * self + alpha * (batch1 @ batch2).sum(0)``.",
    samples=lambda make: [
        ((make(2, 4), make(3, 2, 3), make(3, 3, 4)), {}),
        ((make(4), make(2, 2, 3), make(2, 3, 4)), {"beta": 0.5, "alpha": 2.0}),
    ],
    reference=lambda self, a, b, beta=1, alpha=1: beta * self + alpha * numpy.matmul(a, b).sum(0),
)


@public(alias=("linalg.matmul",), arrays=matrix_product)
def matmul(self: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply vectors, matrices or batches of matrices, with broadcasting of the batch dimensions.

    Raises
    ------
    RuntimeError
        If an argument is 0-d, or the sizes do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.matmul(gs.tensor([[1.0, 2.0]]), gs.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    if out is not None:
        return inplace_and_out.into(out, "matmul", [self, other], lambda: matmul(self, other), exact=True)
    if state.casting and autocast.covers("matmul", (self, other)):
        return autocast.call("matmul", matmul, self, other)
    if not hasattr(other, "_array"):
        kind = overrides.type_shown(other)
        raise TypeError(f"matmul(): argument 'other' must be Tensor, not {kind}\nUse * for a number.")
    a, b = self._array.ndim, other._array.ndim
    if a == 2 and b == 2:
        return METHODS["mm"](self, other)
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return METHODS["dot"](self, other)
    if b == 1 and a == 2:
        return METHODS["mv"](self, other)
    if a == 1:
        product = matmul(METHODS["unsqueeze"](self, 0), other)
        shape = product._array.shape
        return OPERATORS["unsafe_view"].function(product, (*shape[:-2], shape[-1]))
    if b == 1:
        rows = METHODS["reshape"](self, math.prod(self._array.shape[:-1]), self._array.shape[-1])
        return OPERATORS["unsafe_view"].function(METHODS["mv"](rows, other), self._array.shape[:-1])
    return _batched(self, other)


def _batched(self: Array, other: Array) -> Array:
    left, right = self._array.shape, other._array.shape
    if left[-1] != right[-2] and min(len(left), len(right)) <= 2:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left[-2]}x{left[-1]} and {right[-2]}x{right[-1]})"
        )
    if len(right) == 2:
        # A batch against one matrix is one large product.
        flat = METHODS["reshape"](self, math.prod(left[:-1]), left[-1])
        return OPERATORS["unsafe_view"].function(METHODS["mm"](flat, other), (*left[:-1], right[-1]))
    mismatch = broadcast_mismatch([left[:-2], right[:-2]])
    if mismatch is not None:
        raise RuntimeError(f"{mismatch}\nThese are the batch dimensions of {list(left)} and {list(right)} in matmul().")
    batch = broadcast_shapes(left[:-2], right[:-2])
    count = math.prod(batch)
    expand = OPERATORS["expand.size"].function
    a = expand(self, (*batch, *left[-2:])).reshape(count, *left[-2:])
    b = expand(other, (*batch, *right[-2:])).reshape(count, *right[-2:])
    return OPERATORS["unsafe_view"].function(METHODS["bmm"](a, b), (*batch, left[-2], right[-1]))


METHODS["__matmul__"] = matmul


def _linear(xp: Namespace, input: Array, weight: Array, bias: Array) -> Array:
    _check_linear(input, weight)
    if 8 <= len(input) <= input.shape[-1] // 8 and _is_flat(input, weight):
        result = numpy.empty((len(input), len(weight)), input.dtype)
        return numpy.add(weight.dot(input.T).T, bias, out=result)
    result = matrix_product(xp, input, weight.T)
    result += bias
    return result


def _is_flat(input: Array, weight: Array) -> bool:
    """Whether the result has few and long rows.

    Of float32, OpenBLAS takes for the transpose of such a product half to nine tenths of the time with AVX-512's
    kernels, and 0.8 to 1.0 of it with AVX2's.
    """
    kinds = type(input) is numpy.ndarray and input.dtype.char == weight.dtype.char == "f"
    return kinds and input.ndim == weight.ndim == 2 and 2 * len(input) <= len(weight)


def _check_linear(input: Array, weight: Array) -> None:
    if input.shape[-1:] != weight.shape[-1:]:
        rows = "x".join(str(s) for s in (*_rows(input.shape[:-1]), *input.shape[-1:]))
        columns = "x".join(str(s) for s in reversed(weight.shape))
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows} and {columns})\n"
            f"The last dimension of the input, of shape {list(input.shape)}, must have the size of the last dimension "
            f"of the weight, of shape {list(weight.shape)}."
        )
    if input.dtype != weight.dtype:
        kinds = " != ".join(_CPP_NAMES.get(a.dtype.name, a.dtype.name) for a in (input, weight))
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {kinds}\nConvert one of them with .to()."
        )
    _need_numbers("addmm_impl_cpu_", input)


# C++ names, which PyTorch's message has.
_CPP_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long long",
    "int32": "int",
}


def _rows(batch: tuple[int, ...]) -> tuple[int, ...]:
    count = 1
    for size in batch:
        count *= size
    return (count,)


def _linear_weight(g: Gradient, input: Array, weight_shape: Shape, F: Namespace) -> Gradient:
    # The product has the layout of the weight, so that AccumulateGrad takes it over as it is.
    if len(g.shape) != 2:
        rows = _rows(input.shape[:-1])
        g, input = F.reshape(g, (*rows, weight_shape[0])), F.reshape(input, (*rows, weight_shape[1]))
    return F.matmul(F.t(g), conj(input))


def _linear_bias(g: Gradient, F: Namespace) -> Gradient:
    return F.sum(g if len(g.shape) == 2 else F.reshape(g, (*_rows(g.shape[:-1]), g.shape[-1])), 0)


operator(
    "linear.bias(Tensor input, Tensor weight, Tensor bias)",
    _linear,
    method=False,
    node="AddmmBackward0",
    derivatives={
        "input": lambda g, weight, F: F.matmul(g, conj(weight)),
        "weight": _linear_weight,
        "bias": _linear_bias,
    },
    doc="Return ``input @ weight.T + bias``.",
    samples=lambda make: [
        ((make(4, 3), make(2, 3), make(2)), {}),
        ((make(2, 2, 3), make(4, 3), make(4)), {}),
        ((make(3), make(2, 3), make(2)), {}),
        ((make(2, 3, 1), make(1, 1), make(1)), {}),
    ],
    reference=lambda input, weight, bias: numpy.matmul(input, weight.T) + bias,
)

_linear_with_bias = OPERATORS["linear.bias"].function


@overrides.asking
def linear(input: Array, weight: Array, bias: Array = None, *, out: Out = None) -> Array:
    """Return ``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor
        Of shape (..., in_features).
    weight : Tensor
        Of shape (out_features, in_features).
    bias : Tensor, optional
        Of shape (out_features).

    See Also
    --------
    nn.Linear, bilinear, addmm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.linear(gs.tensor([1.0, 2.0]), gs.tensor([[1.0, 0.0], [1.0, 1.0]]))
    tensor([1., 3.])
    """
    if out is not None:
        return inplace_and_out.into(out, "linear", [input, weight, bias], lambda: linear(input, weight, bias))
    if state.special:
        overridden = overrides.dispatch(linear, (input, weight, bias), {}) if state.overriding else overrides.NONE
        if overridden is not overrides.NONE:
            return overridden
        if state.casting and autocast.covers("linear", (input, weight, bias)):
            return autocast.call("linear", linear, input, weight, bias)
    if bias is not None:
        return _linear_with_bias(input, weight, bias)
    _check_linear(input._array, weight._array)
    return matmul(input, METHODS["t"](weight))
