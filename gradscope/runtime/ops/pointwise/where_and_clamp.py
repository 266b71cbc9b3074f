"""Choosing between values: where, masks, clamp, and interpolation."""

from __future__ import annotations

import numpy

from ...kernels import forms
from ...kernels.elementwise import whole
from ...kernels.selection import select
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.elements import as_element
from ...tensor.creation import broadcast_shapes, tensor
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Number, Operand, Results, Shape, Sizes
from ..declaration.references import placed
from ..declaration.registry import OPERATORS, Operator, not_implemented, operator, public
from ..declaration.samples import mask
from ..execution import general
from ..execution.bare_functions import clipped

# --- where and masks --------------------------------------------------------------------------------------------------


def _where(xp: Namespace, condition: Array, self: Array, other: Array) -> Array:
    if condition.dtype.kind != "b":
        kind = dtypes.BY_NUMPY[condition.dtype].name
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind}\n"
            "Compare it first, e.g. condition != 0."
        )
    if self.dtype is other.dtype and condition.size < forms.LEAST:
        return xp.where(condition, self, other)
    target = dtypes.result_numpy([self, other])
    return select(xp, condition, self.astype(target, copy=False), other.astype(target, copy=False))


operator(
    "where.self(Tensor condition, Tensor self, Tensor other)",
    _where,
    method=False,
    derivatives={
        "self": lambda g, condition, F: F.where(condition, g, F.zeros_like(g)),
        "other": lambda g, condition, F: F.where(condition, F.zeros_like(g), g),
    },
    out=True,
    doc="Choose elements of `self` where `condition` holds, of `other` elsewhere.",
    samples=lambda make: [
        ((mask(make, 3, 4), make(3, 4), make(3, 4)), {}),
        ((mask(make, 2, 1), make(3), make()), {}),
        ((mask(make), make(0, 2), make(2)), {}),
    ],
    reference="numpy.where",
)


_where_self = OPERATORS["where.self"].function


@public(method=False, arrays=select)
def where(condition: Tensor, input: Operand = None, other: Operand = None, *, out: Tensor | None = None) -> Results:
    """Return elements of `input` where `condition` holds and of `other` elsewhere; or where `condition` is not zero.

    Parameters
    ----------
    condition : Tensor
        Of dtype bool. Given alone, the result is ``nonzero(condition, as_tuple=True)``.
    input, other : Tensor or number
        Broadcast with `condition`.

    Raises
    ------
    RuntimeError
        If `condition` is not bool, or the shapes do not broadcast.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.where(gs.tensor([True, False]), gs.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """
    if type(input) is Tensor and type(other) is Tensor:
        return _where_self(condition, input, other, out=out)
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    for value in (input, other):
        if not hasattr(value, "_array") and not isinstance(value, dtypes.NUMBERS):
            raise TypeError(
                "where() received an invalid combination of arguments - got "
                f"({', '.join(v.__class__.__name__ for v in (condition, input, other))}), but expected a condition and "
                "two Tensors or numbers"
            )
    if not hasattr(input, "_array"):
        if hasattr(other, "_array"):
            input = general.as_tensor_like(input, other)
        else:
            input, other = (_scalar(condition, value) for value in (input, other))
    elif not hasattr(other, "_array"):
        other = general.as_tensor_like(other, input)
    return _where_self(condition, input, other, out=out)


def _scalar(like: Array, value: Number) -> Array:
    array = devices.array_module(like._array).full((), value, dtype=dtypes.scalar_dtype(value))
    return like.__class__._wrap(array)


@public(method="where", function_too=False)
def _where_method(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """Return the elements of this tensor where `condition` holds, and those of `other` elsewhere."""
    return where(condition, self, other)


def _need_mask(name: str, mask: Array) -> None:
    if mask.dtype.kind != "b":
        kind = dtypes.BY_NUMPY[mask.dtype].name
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {kind}\nUse mask.bool().")


def _check_masked_fill(mask: Array, value: Operand) -> None:
    _need_mask("masked_fill_", mask)
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            "\nUse where() to choose between two tensors."
        )


def _masked_fill(xp: Namespace, self: Array, mask: Array, value: Operand) -> Array:
    _check_masked_fill(mask, value)
    return select(xp, mask, as_element(value, self), self).astype(self.dtype, copy=False)


def _write_masked(xp: Namespace, self: Array, mask: Array, value: Operand) -> None:
    _check_masked_fill(mask, value)
    value = as_element(value, self)
    if mask.shape != self.shape:
        shape = broadcast_shapes(self.shape, mask.shape)
        if shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}\n"
                "Use masked_fill(), which returns a tensor of that shape."
            )
        mask = xp.broadcast_to(mask, shape)
    self[mask] = value


operator(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)",
    _masked_fill,
    write=_write_masked,
    method=False,
    inplace=True,
    expanded="deprecated",
    node="MaskedFillBackward0",
    derivatives={"self": lambda g, mask, F: F.where(mask, F.zeros_like(g), g)},
    doc="Return `self` with a number where `mask` holds.",
    samples=lambda make: [((make(3, 4), mask(make, 3, 4), 1.5), {}), ((make(2, 3), mask(make, 3), 0), {})],
    reference=lambda self, mask, value: numpy.where(mask, value, self),
)
operator(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value)",
    _masked_fill,
    write=_write_masked,
    method=False,
    inplace=True,
    expanded="deprecated",
    node="MaskedFillBackward1",
    derivatives={
        "self": lambda g, mask, F: F.where(mask, F.zeros_like(g), g),
        "value": lambda g, mask, F: F.where(mask, g, F.zeros_like(g)),
    },
    doc="Return `self` with the element of a 0-d tensor where `mask` holds.",
    samples=lambda make: [((make(3, 4), mask(make, 4), make()), {})],
    reference=lambda self, mask, value: numpy.where(mask, value, self),
)


def _masked_fill_form(value: Operand) -> Operator:
    return OPERATORS["masked_fill.Tensor" if hasattr(value, "_array") else "masked_fill.Scalar"]


@public(arrays=_masked_fill)
def masked_fill(self: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """Return a copy with `value`, a number or a 0-d tensor, where `mask` holds.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked_fill(gs.tensor([1.0, 2.0]), gs.tensor([True, False]), 0.0)
    tensor([0., 2.])
    """
    return _masked_fill_form(value).function(self, mask, value)


@public
def masked_fill_(self: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """In-place form of :func:`masked_fill`."""
    return _masked_fill_form(value).inplace_function(self, mask, value)  # type: ignore[misc]


def _masked_select(xp: Namespace, self: Array, mask: Array) -> Array:
    if mask.dtype.kind != "b":
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {dtypes.BY_NUMPY[mask.dtype].name}")
    if self.shape != mask.shape:
        shape = broadcast_shapes(self.shape, mask.shape)
        self, mask = xp.broadcast_to(self, shape), xp.broadcast_to(mask, shape)
    return self[mask]


def _masked_select_backward(xp: Namespace, self: Array, size: Sizes, mask: Array) -> Array:
    whole = xp.zeros(broadcast_shapes(size, mask.shape), dtype=self.dtype)
    whole[xp.broadcast_to(mask, whole.shape)] = self
    return whole


operator(
    "masked_select(Tensor self, Tensor mask)",
    _masked_select,
    out="exact",
    derivatives={"self": lambda g, self_shape, mask, F: F.masked_select_backward(g, self_shape, mask)},
    doc="Return the elements where `mask` holds, in one dimension.",
    samples=lambda make: [((make(3, 4), mask(make, 3, 4)), {}), ((make(2, 1), mask(make, 3)), {})],
    reference=lambda self, mask: numpy.broadcast_arrays(self, mask)[0][numpy.broadcast_arrays(self, mask)[1]],
)
operator(
    "masked_select_backward(Tensor self, int[] size, Tensor mask)",
    _masked_select_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, mask, F: F.masked_select(g, mask)},
    doc="The adjoint of masked_select: zeros, with the elements back in their places.",
    samples=lambda make: [((make(2), (3,), tensor([True, False, True])), {})],
    reference=lambda self, size, mask: placed(numpy.zeros(size, dtype=self.dtype), mask, self),
)


def _masked_scatter(xp: Namespace, self: Array, mask: Array, source: Array) -> Array:
    _need_mask("masked_scatter_", mask)
    if self.dtype != source.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes\nConvert one with .to().")
    result = xp.broadcast_to(self, broadcast_shapes(self.shape, mask.shape)).copy()
    places = xp.broadcast_to(mask, result.shape).nonzero() if result.ndim else (mask.reshape(1).nonzero()[0],)
    count = places[0].size
    if count > source.size:
        raise RuntimeError(
            f"Number of elements of source < number of ones in mask\nThey are {source.size} and {count}."
        )
    if result.ndim:
        result[places] = source.reshape(-1)[:count]
    elif count:
        result[...] = source.reshape(-1)[0]
    return result


def _source_gradient(g: Gradient, mask: Array, source_shape: Shape, F: Namespace) -> Gradient:
    part = F.masked_select(g, mask)
    total = 1
    for size in source_shape:
        total *= size
    return F.reshape(F.slice_backward(part, (total,), 0, 0, part.shape[0], 1), source_shape)


def _masked_scatter_reference(self: Array, mask: Array, source: Array) -> Array:
    mask = numpy.broadcast_to(mask, self.shape)
    return placed(self, mask, source.reshape(-1)[: mask.sum()])


operator(
    "masked_scatter(Tensor self, Tensor mask, Tensor source)",
    _masked_scatter,
    inplace=True,
    derivatives={"self": lambda g, mask, F: F.where(mask, F.zeros_like(g), g), "source": _source_gradient},
    doc="Return `self` with the elements of `source`, in order, where `mask` holds.",
    samples=lambda make: [
        ((make(3, 4), mask(make, 3, 4), make(2, 6)), {}),
        ((make(2, 3), mask(make, 3), make(7)), {}),
    ],
    reference=_masked_scatter_reference,
)


def _nonzero(xp: Namespace, self: Array) -> Array:
    if self.ndim == 0:
        return xp.zeros((self.reshape(1).nonzero()[0].size, 0), dtype=xp.int64)
    return xp.stack(self.nonzero(), axis=1)


operator(
    "nonzero.indices(Tensor self)",
    _nonzero,
    method=False,
    out=True,
    doc="Return the indices of the elements that are not 0.",
    samples=lambda make: [((make(2, 3).detach() > 0,), {}), ((make(3).detach(),), {})],
    reference="numpy.argwhere",
)


@public
def nonzero(self: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Results:
    """Return the indices of the elements that are not zero: one row each, or one vector a dimension.

    Parameters
    ----------
    as_tuple : bool
        Return a tuple of vectors, which can be used as an index.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nonzero(gs.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    function = OPERATORS["nonzero.indices"].function
    if not as_tuple:
        return function(self, out=out)
    if out is not None:
        raise TypeError("nonzero(): argument 'out' must be Tensor, not tuple\nOnly the rows of indices go into out=.")
    return function(self.reshape(1) if self._array.ndim == 0 else self).unbind(1)


def _nonzero_static(xp: Namespace, self: Array, size: int, fill_value: int = -1) -> Array:
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer\nIt is {size}.")
    found = _nonzero(xp, self)[:size]
    result = xp.full((size, self.ndim), fill_value, dtype="int64")
    result[: found.shape[0]] = found
    return result


operator(
    "nonzero_static(Tensor self, *, int size, int fill_value=-1)",
    lambda xp, self, size, fill_value=-1: _nonzero_static(xp, self, size, fill_value),
    out=True,
    doc="Return the first `size` rows of :func:`nonzero`, and rows of `fill_value` where there are fewer.",
    samples=lambda make: [
        ((make(2, 3).detach() > 0,), {"size": 2}),
        ((make(3).detach(),), {"size": 5, "fill_value": 7}),
    ],
    reference=lambda self, size, fill_value=-1: numpy.concatenate(
        [numpy.argwhere(self), numpy.full((size, self.ndim), fill_value)]
    )[:size],
)


# --- clamp ------------------------------------------------------------------------------------------------------------


@whole
def _bounded(xp: Namespace, self: Array, min: Array, max: Array) -> Array:
    target = dtypes.result_numpy([value for value in (self, min, max) if value is not None])
    if target.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types\nTake real, imag or abs of the tensor.")
    result = self if self.dtype == target else self.astype(target)
    min, max = (
        bound if bound is None or hasattr(bound, "dtype") else as_element(bound, result) for bound in (min, max)
    )
    if not (getattr(min, "ndim", 0) or getattr(max, "ndim", 0)):
        return clipped(xp, result, min, max)
    if min is not None:
        result = xp.maximum(result, min)
    return result if max is None else xp.minimum(result, max)


def _inside(g: Gradient, self: Array, min: Array, max: Array, F: Namespace) -> Gradient:
    """Return `g` where `self` lies between the bounds or on one, as PyTorch does."""

    def within(g: Gradient, x: Array) -> Gradient:
        if min is None:
            chosen = x <= max
        elif max is None:
            chosen = x >= min
        else:
            chosen = (x >= min) & (x <= max)
        return F.where(chosen, g, F.zeros_like(g))

    if hasattr(self, "_array") or any(getattr(bound, "ndim", 0) for bound in (min, max)):
        return within(g, self)
    limits = -numpy.inf if min is None else min, numpy.inf if max is None else max
    return forms.pointwise("activation_loops.clamp_backward", within, g, self, settings=limits)


def _to_min(g: Gradient, self: Array, min: Array, max: Array, F: Namespace) -> Gradient:
    chosen = self < min
    return F.where(chosen if max is None else chosen & (min < max), g, F.zeros_like(g))


def _to_max(g: Gradient, self: Array, min: Array, max: Array, F: Namespace) -> Gradient:
    chosen = self > max
    return F.where(chosen if min is None else chosen | (max < min), g, F.zeros_like(g))


operator(
    "clamp.Scalar(Tensor self, Scalar? min=None, Scalar? max=None)",
    _bounded,
    method=False,
    inplace=True,
    out=True,
    node="ClampBackward1",
    derivatives={"self": _inside},
    doc="Limit to the range of two numbers.",
    samples=lambda make: [
        ((make(3, 4), -0.5, 1.0), {}),
        ((make(3), None, 0.5), {}),
        ((make(), 0.25), {}),
        ((make(0, 2), 1.0, 0.5), {}),
    ],
    reference=lambda self, min=None, max=None: numpy.clip(self, min, max),
    supports="f",
)
operator(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)",
    _bounded,
    promote="numeric",
    method=False,
    inplace=True,
    out=True,
    node="ClampBackward0",
    derivatives={"self": _inside, "min": _to_min, "max": _to_max},
    doc="Limit elementwise to the range of two tensors.",
    samples=lambda make: [
        ((make(3, 4), make(3, 4), make(4)), {}),
        ((make(3, 4), make(4)), {}),
        ((make(2, 3), None, make()), {}),
    ],
    reference=lambda self, min=None, max=None: numpy.clip(self, min, max),
    supports="f",
)
for _side in ("min", "max"):
    _other = {"min": "max", "max": "min"}[_side]
    _form = {
        "min": lambda xp, self, min: _bounded(xp, self, min, None),
        "max": lambda xp, self, max: _bounded(xp, self, None, max),
    }[_side]
    _self = {
        "min": lambda g, self, min, F: _inside(g, self, min, None, F),
        "max": lambda g, self, max, F: _inside(g, self, None, max, F),
    }[_side]
    _bound = {
        "min": lambda g, self, min, F: _to_min(g, self, min, None, F),
        "max": lambda g, self, max, F: _to_max(g, self, None, max, F),
    }[_side]
    operator(
        f"clamp_{_side}.Scalar(Tensor self, Scalar {_side})",
        _form,
        method=False,
        inplace=True,
        out=True,
        node=f"Clamp{_side.title()}Backward0",
        derivatives={"self": _self},
        doc=f"Limit from {'below' if _side == 'min' else 'above'} by a number.",
        samples=lambda make: [((make(3, 4), 0.5), {}), ((make(), -0.25), {})],
        reference={"min": "numpy.maximum", "max": "numpy.minimum"}[_side],
        supports="f",
    )
    operator(
        f"clamp_{_side}.Tensor(Tensor self, Tensor {_side})",
        _form,
        promote="numeric",
        method=False,
        inplace=True,
        out=True,
        node=f"Clamp{_side.title()}Backward1",
        derivatives={"self": _self, _side: _bound},
        doc=f"Limit elementwise from {'below' if _side == 'min' else 'above'} by a tensor.",
        samples=lambda make: [((make(3, 4), make(4)), {}), ((make(), make()), {})],
        reference={"min": "numpy.maximum", "max": "numpy.minimum"}[_side],
        supports="f",
    )


def _clamp_form(name: str, *bounds: Operand) -> Operator:
    return OPERATORS[f"{name}.Tensor" if any(hasattr(b, "_array") for b in bounds) else f"{name}.Scalar"]


def _need_bound(min: Number, max: Number) -> None:
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None\nGive one, or use clone().")


@public
def clamp(self: Tensor, min: Number = None, max: Number = None, *, out: Tensor | None = None) -> Tensor:
    """Limit every element to the range from `min` to `max`, numbers or tensors; `max` wins where they cross.

    Raises
    ------
    RuntimeError
        If neither is given.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.clamp(gs.tensor([-2.0, 0.5, 3.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    _need_bound(min, max)
    return _clamp_form("clamp", min, max).function(self, min, max, out=out)


@public
def clamp_(self: Tensor, min: Number = None, max: Number = None) -> Tensor:
    """In-place form of :func:`clamp`."""
    _need_bound(min, max)
    return _clamp_form("clamp", min, max).inplace_function(self, min, max)  # type: ignore[misc]


@public
def clip(self: Tensor, min: Number = None, max: Number = None, *, out: Tensor | None = None) -> Tensor:
    """Another name of :func:`clamp`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.clip(gs.tensor([-2.0, 3.0]), 0.0, 1.0)
    tensor([0., 1.])
    """
    return clamp(self, min, max, out=out)


@public
def clip_(self: Tensor, min: Number = None, max: Number = None) -> Tensor:
    """In-place form of :func:`clip`."""
    return clamp_(self, min, max)


@public
def clamp_min(self: Tensor, min: Number, *, out: Tensor | None = None) -> Tensor:
    """Limit every element from below by `min`, a number or a tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.clamp_min(gs.tensor([-2.0, 3.0]), 0.0)
    tensor([0., 3.])
    """
    return _clamp_form("clamp_min", min).function(self, min, out=out)


@public
def clamp_min_(self: Tensor, min: Number) -> Tensor:
    """In-place form of :func:`clamp_min`."""
    return _clamp_form("clamp_min", min).inplace_function(self, min)  # type: ignore[misc]


@public
def clamp_max(self: Tensor, max: Number, *, out: Tensor | None = None) -> Tensor:
    """Limit every element from above by `max`, a number or a tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.clamp_max(gs.tensor([-2.0, 3.0]), 1.0)
    tensor([-2.,  1.])
    """
    return _clamp_form("clamp_max", max).function(self, max, out=out)


@public
def clamp_max_(self: Tensor, max: Number) -> Tensor:
    """In-place form of :func:`clamp_max`."""
    return _clamp_form("clamp_max", max).inplace_function(self, max)  # type: ignore[misc]


# --- special values ---------------------------------------------------------------------------------------------------


def _nan_to_num(
    xp: Namespace, self: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    return xp.nan_to_num(self, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


operator(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)",
    _nan_to_num,
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * F.isfinite(self)},
    doc="Replace NaN by a number (0), and infinities by numbers (the largest there are).",
    samples=lambda make: [((make(3, 4),), {}), ((make(0, 2),), {"nan": 1.0, "posinf": 2.0, "neginf": 3.0})],
    reference=lambda self, nan=0.0, posinf=None, neginf=None: numpy.nan_to_num(self, True, nan, posinf, neginf),
    supports="f",
)


def _heaviside(xp: Namespace, self: Array, values: Array) -> Array:
    if self.dtype != values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes.\n"
            f"They are {self.dtype} and {values.dtype}; convert one with .to()."
        )
    return xp.where(self == 0, values, (self > 0).astype(self.dtype))


operator(
    "heaviside(Tensor self, Tensor values)",
    _heaviside,
    inplace=True,
    out=True,
    node="NotImplemented",
    derivatives=not_implemented("heaviside", "self", "values"),
    doc="Return 0 below zero, 1 above, `values` at zero.",
    samples=lambda make: [((make(3, 4).detach(), make(4).detach()), {})],
    reference="numpy.heaviside",
    differs=((lambda self, values: numpy.isnan(self), "of NaN it is 0 in PyTorch"),),
)

del _side, _other, _form, _self, _bound
