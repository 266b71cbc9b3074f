"""Quantiles, and medians that skip NaN."""

from __future__ import annotations

import numpy

from ... import autocast, state
from ...memory import device as devices
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Namespace, Number, Operand, Out, Results
from ..declaration.references import by_lines
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.array_errors import refuse_kinds
from ..shape.reshape import axis_of
from .reductions import evenly
from .sort_and_cumulate import back_along, median_along, need_length, pick, sorted_order

# --- quantiles --------------------------------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _levels(name: str, self: Array, q: Operand, interpolation: str) -> Array:
    """Return `q` as a tensor of the dtype of `self`, after the checks."""
    array = self._array
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        raise RuntimeError(
            f"{name}() input tensor must be either float or double dtype\nIt is {scalar_type(array.dtype)}: convert it."
        )
    if not array.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty\nIts shape is {list(array.shape)}.")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if hasattr(q, "_array"):
        if q._array.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor\nIts shape is {list(q.shape)}.")
        if q._dtype != array.dtype:
            raise RuntimeError(
                f"{name}() q tensor must be same dtype as the input tensor\nThey are {q.dtype} and {self.dtype}."
            )
        levels = q
    else:
        levels = type(self.detach())._wrap(devices.array_module(array).asarray(q, dtype=array.dtype))
    if not bool(devices.to_host(((levels._array >= 0) & (levels._array <= 1)).all())):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]\nGot {q}.")
    return levels


def _ranks(ranked: Tensor, levels: Tensor, skip_nan: bool) -> Array:
    """Return the (fractional) place of each quantile along the last dimension, quantiles last."""
    array = ranked._array
    size = array.shape[-1]
    absent = (array != array).sum(axis=-1, keepdims=True)
    wrap = type(ranked.detach())._wrap
    if skip_nan:
        ranks = levels * wrap((size - absent - 1).astype(array.dtype))
        return METHODS["masked_fill"](ranks, ranks < 0, 0)
    # NaN sorts last: where there is one, it is the result.
    return METHODS["masked_fill"](levels * (size - 1), wrap(absent > 0), size - 1)


_ROUNDED = {"lower": "floor", "higher": "ceil", "nearest": "rint"}


def _interpolated(ranked: Tensor, ranks: Tensor, interpolation: str) -> Array:
    """Return what stands at fractional places of a sorted tensor's last dimension."""
    wrap, xp, places = type(ranked.detach())._wrap, devices.array_module(ranks._array), ranks._array
    if interpolation in _ROUNDED:
        places = getattr(xp, _ROUNDED[interpolation])(places)
        return OPERATORS["gather"].function(ranked, -1, wrap(places.astype("int64")))
    below = xp.floor(places)
    low = OPERATORS["gather"].function(ranked, -1, wrap(below.astype("int64")))
    high = OPERATORS["gather"].function(ranked, -1, wrap(xp.ceil(places).astype("int64")))
    # Between two elements the quantile moves with its level, too.
    weight = ranks - wrap(below) if interpolation == "linear" else wrap(xp.full_like(places, 0.5))
    return METHODS["lerp"](low, high, weight)


def _quantile(
    name: str, self: Array, q: Operand, dim: int | None, keepdim: bool, interpolation: str, out: Out
) -> Array:
    if out is not None:
        return inplace_and_out.into(
            out, name, [self], lambda: _quantile(name, self, q, dim, keepdim, interpolation, None), exact=True
        )
    if state.casting and autocast.covers("quantile", (self, q)):
        return autocast.call("quantile", _quantile, name, self, q, dim, keepdim, interpolation, None)
    levels = _levels(name, self, q, interpolation)
    ndim = self._array.ndim
    axis = 0 if dim is None else axis_of(dim, ndim)
    rows = METHODS["reshape"](self, -1) if dim is None or not ndim else METHODS["movedim"](self, axis, -1)
    ranked = OPERATORS["sort"].function(rows, -1)[0]
    ranks = _ranks(ranked, METHODS["reshape"](levels, -1), name == "nanquantile")
    found = METHODS["movedim"](_interpolated(ranked, ranks, interpolation), -1, 0)
    if keepdim:
        shape = [1] * ndim if dim is None else [1 if i == axis else s for i, s in enumerate(self._array.shape)]
        found = METHODS["reshape"](found, -1, *shape)
    return found if levels._array.ndim else METHODS["squeeze"](found, 0)


@public
def quantile(
    self: Tensor,
    q: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Return the quantiles of all elements, or of those along `dim`.

    Parameters
    ----------
    q : float or Tensor
        Levels in [0, 1]; those of a vector are the first dimension of the result.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What is taken where a quantile lies between two elements.

    Raises
    ------
    RuntimeError
        If a level is outside [0, 1], or the tensor is empty or neither float32 nor float64.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([0.0, 1.0, 2.0]).quantile(gs.tensor([0.25, 0.5]))
    tensor([0.5000, 1.0000])
    """
    return _quantile("quantile", self, q, dim, keepdim, interpolation, out)


@public
def nanquantile(
    self: Tensor,
    q: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Return the quantiles of the elements that are not NaN; the parameters are those of :func:`quantile`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nanquantile(gs.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", self, q, dim, keepdim, interpolation, out)


# --- medians ----------------------------------------------------------------------------------------------------------


def _nanmedian(xp: Namespace, self: Array, dim: int, keepdim: bool = False) -> Array:
    axis = need_length("nanmedian", self, dim)
    refuse_kinds("median_cpu", self, "bc")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    present = (self == self).sum(axis=axis, keepdims=True)
    if type(self) is numpy.ndarray and (present == self.shape[axis]).all():
        return median_along(xp, self, dim, keepdim)
    place = xp.maximum((present - 1) // 2, 0)
    return pick(xp, self, axis, place, sorted_order(xp, self, axis, False), keepdim)


def _nanmedian_all(xp: Namespace, self: Array) -> Array:
    if not self.size:
        refuse_kinds("median_cpu", self, "bc")
        return xp.full((), float("nan"), dtype=self.dtype)
    return _nanmedian(xp, self.reshape(-1), 0)[0]


def _nanmedian_reference(self: Array, dim: int, keepdim: bool = False) -> list[Array]:
    def middle(line: Array) -> tuple[Number, int]:
        order = [place for place in numpy.argsort(line, kind="stable") if not numpy.isnan(line[place])]
        place = order[(len(order) - 1) // 2] if order else 0
        return line[place], place

    return by_lines(middle, self, dim, keepdim)


operator(
    "nanmedian.all(Tensor self)",
    _nanmedian_all,
    method=False,
    derivatives={"self": evenly},
    doc="Return the median of the elements that are not NaN.",
    samples=lambda make: [((make(3, 4),), {}), ((make(),), {}), ((make(5),), {})],
    reference=lambda self: _nanmedian_reference(self.reshape(-1), 0)[0],
    supports="f",
)
operator(
    "nanmedian.dim(Tensor self, int dim, bool keepdim=False)",
    _nanmedian,
    method=False,
    outputs=("values", "indices"),
    node="NanmedianBackward1",
    derivatives={
        "self": lambda g, self_shape, dim, indices, keepdim, F: back_along(g, self_shape, dim, indices, keepdim, F),
    },
    out=True,
    doc="Return the medians along a dimension of the elements that are not NaN, and where they were.",
    samples=lambda make: [((make(3, 4), 0), {}), ((make(3, 5), -1, True), {}), ((make(), 0), {})],
    reference=_nanmedian_reference,
    supports="f",
)


@public
def nanmedian(self: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Results:
    """Return the median of the elements that are not NaN, or those along `dim` with their indices.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nanmedian(gs.tensor([1.0, float("nan"), 3.0]))
    tensor(1.)
    """
    if dim is None:
        return OPERATORS["nanmedian.all"].function(self)
    return OPERATORS["nanmedian.dim"].function(self, dim, keepdim, out=out)
