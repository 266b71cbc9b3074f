"""Order along a dimension: running sums and products, sort, topk, kthvalue, median."""

from __future__ import annotations

from collections.abc import Callable

import numpy

from ...kernels import loading, running, threads
from ...kernels.casts import cast
from ...memory import bfloat16 as brain
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, DType, Formula, Gradient, Make, Namespace, Number, Results, Shape
from ..declaration.references import by_lines
from ..declaration.registry import OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import HALVES, conj, in_rows
from ..pointwise.binary import log_add_exp
from ..shape.reshape import axis_of
from .reductions import evenly, reduce_dtype

# --- running sums and products ----------------------------------------------------------------------------------------


def _cumsum(xp: Namespace, self: Array, dim: int, dtype: DType = None) -> Array:
    axis, kind = axis_of(dim, self.ndim), reduce_dtype(self, dtype)
    if kind.char in HALVES:
        return cast(_cumsum(xp, self, dim, "float32"), kind)
    return _accumulated(xp, "add", self, axis, kind)


def _accumulated(xp: Namespace, ufunc: str, self: Array, axis: int, kind: DType) -> Array:
    """Return a running sum or product along an axis; threads share the lines."""
    if not self.ndim:
        return self.astype(kind)
    if type(self) is numpy.ndarray:
        return running.accumulated(getattr(numpy, ufunc), in_rows(xp, self).astype(kind, copy=False), axis)
    function = xp.cumsum if ufunc == "add" else xp.cumprod
    return function(in_rows(xp, self), axis=axis, dtype=kind)


def _cumprod(xp: Namespace, self: Array, dim: int, dtype: DType = None) -> Array:
    axis, kind = axis_of(dim, self.ndim), reduce_dtype(self, dtype)
    if kind.char == brain.CHAR:
        return cast(_cumprod(xp, self, dim, "float32"), kind)
    return _accumulated(xp, "multiply", self, axis, kind)


def _from_the_end(g: Gradient, dim: int, F: Namespace) -> Gradient:
    """Return the running sum of `g` along `dim` that starts at the end."""
    if type(g) is numpy.ndarray and g.ndim and g.dtype.char in "fd":
        return running.sums_from_the_end(g, axis_of(dim, g.ndim))
    return F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,)) if len(g.shape) else g


def _cumprod_self(g: Gradient, self: Array, result: Array, dim: int, F: Namespace) -> Gradient:
    # d result_i / d self_k is result_i / self_k for i >= k. Where self_k is the first zero, the products are taken with
    # 1 in its place; for the second zero too, where that makes 0, but with a derivative.
    if not len(g.shape) or g.shape[dim] == 1 or 0 in g.shape:
        return g
    zero = self == 0
    if type(zero) is numpy.ndarray and not zero.any():
        return _from_the_end(g * conj(result), dim, F) / conj(self)
    seen = F.cumsum(zero, dim)
    ones = F.ones_like(self)

    def through(products: Array, zeros: int) -> Array:
        # Products with more zeros than that among their factors send nothing back, beside an infinity too.
        sent = g * conj(products)
        lost = (seen > zeros) & ~F.isfinite(sent)
        return _from_the_end(F.where(lost, F.zeros_like(g), sent), dim, F)

    shares = through(result, 0) / conj(F.where(zero, ones, self))
    for place, left in ((1, 1), (2, 0)):
        there = zero & (seen == place)
        shares = F.where(there, through(F.cumprod(F.where(there, ones, self), dim), left), shares)
    return shares


def _along_samples(make: Make) -> Cases:
    return [((make(3, 4), 0), {}), ((make(2, 3, 2), -2), {}), ((make(), 0), {}), ((make(0, 2), 1), {})]


operator(
    "cumsum(Tensor self, int dim, *, dtype? dtype=None)",
    _cumsum,
    inplace=True,
    out=True,
    derivatives={"self": lambda g, dim, F: _from_the_end(g, dim, F)},
    doc="Return the running sum along a dimension; integers give ``int64``.",
    samples=_along_samples,
    reference=lambda self, dim: numpy.cumsum(self, dim).reshape(self.shape),
)
operator(
    "cumprod(Tensor self, int dim, *, dtype? dtype=None)",
    _cumprod,
    inplace=True,
    out=True,
    derivatives={"self": _cumprod_self},
    doc="Return the running product along a dimension; integers give ``int64``.",
    samples=_along_samples,
    reference=lambda self, dim: numpy.cumprod(self, dim).reshape(self.shape),
)

# --- running extremes, and running logarithms of sums -----------------------------------------------------------------


def _running(xp: Namespace, choose: Callable[[Array, Array], Array], array: Array, axis: int) -> Array:
    """Return the running result of `choose`, an associative function, along an axis, in log2(size) passes."""
    result, step, size = array.copy(), 1, array.shape[axis]
    before = (slice(None),) * axis
    while step < size:
        later, earlier = (*before, slice(step, None)), (*before, slice(None, -step))
        result[later] = choose(result[later], result[earlier])
        step *= 2
    return result


def _running_extreme(name: str) -> Formula:
    def forward(xp: Namespace, self: Array, dim: int) -> Array:
        axis = axis_of(dim, self.ndim)
        refuse_kinds("cummax_cpu" if name == "maximum" else "cummin_cpu", self, "c")
        if self.ndim == 0:
            return self.copy(), xp.zeros((), dtype=xp.int64)
        if type(self) is numpy.ndarray:
            return running.extremes(getattr(numpy, name), self, axis)
        values = _running(xp, getattr(xp, name), self, axis)
        # The last place at which the extreme was met; NaN is the most extreme.
        shape = [1] * self.ndim
        shape[axis] = self.shape[axis]
        places = xp.broadcast_to(xp.arange(self.shape[axis]).reshape(shape), self.shape)
        met = xp.where((self == values) | (self != self), places, xp.zeros_like(places))
        return values, _running(xp, xp.maximum, met, axis)

    return forward


def _to_places(g: Gradient, self_shape: Shape, dim: int, indices: Array, F: Namespace) -> Gradient:
    return F.gather_backward(g[0], self_shape, dim, indices)


def _cummax_reference(self: Array, dim: int) -> list[Array]:
    def running(line: Array) -> tuple[Array, list[int]]:
        places = [0]
        for place in range(1, len(line)):
            best, next_ = line[places[-1]], line[place]
            places.append(place if next_ != next_ or next_ >= best else places[-1])
        return line[places], places

    return by_lines(running, self, dim)


def _cummin_reference(self: Array, dim: int) -> list[Array]:
    values, places = _cummax_reference(-self, dim)
    return [-values, places]


for _name, _function, _word in (("cummax", "maximum", "largest"), ("cummin", "minimum", "smallest")):
    operator(
        f"{_name}(Tensor self, int dim)",
        _running_extreme(_function),
        outputs=("values", "indices"),
        out=True,
        derivatives={"self": _to_places},
        doc=f"Return the {_word} element so far along a dimension, and where it was.",
        samples=lambda make: [((make(3, 4), 0), {}), ((make(2, 5), -1), {}), ((make(), 0), {}), ((make(0, 2), 1), {})],
        reference=_cummax_reference if _name == "cummax" else _cummin_reference,
        supports="f",
    )
del _name, _function, _word


def _logcumsumexp(xp: Namespace, self: Array, dim: int) -> Array:
    axis = axis_of(dim, self.ndim)
    refuse_kinds("logcumsumexp_out_cpu", self, "biu")
    if not self.ndim:
        return self.copy()
    if self.dtype.kind != "c":
        if type(self) is numpy.ndarray:  # in double precision: each is rounded from the one before it
            return running.accumulated(numpy.logaddexp, self.astype(float), axis).astype(self.dtype, copy=False)
        return _running(xp, xp.logaddexp, self, axis)
    result = self.copy()
    rows = xp.moveaxis(result, axis, 0)
    for place in range(1, self.shape[axis]):  # the imaginary parts depend on the order in which they are added
        rows[place] = log_add_exp(xp, rows[place], rows[place - 1])
    return result


def _logcumsumexp_self(g: Gradient, self: Array, result: Array, dim: int, F: Namespace) -> Gradient:
    # The gradient at k is the sum of g_i exp(self_k - result_i) over i >= k. With ratios of neighbours, which do not
    # overflow, it is exp(self_k - result_k) s_k, where s_k = g_k + exp(result_k - result_k+1) s_k+1.
    if not len(g.shape) or 0 in g.shape:
        return g
    size = g.shape[dim]

    def from_later(x: Array, step: int) -> Array:
        return F.cat([F.slice(x, dim, step, size, 1), F.zeros_like(F.slice(x, dim, 0, step, 1))], dim)

    def ratio(low: Array, high: Array) -> Array:
        return conj(F.exp(F.where(low == high, F.zeros_like(low), low - high)))

    later = F.cat([F.slice(result, dim, 1, size, 1), F.slice(result, dim, max(size - 1, 0), size, 1)], dim)
    total, factor, step = g, ratio(result, later), 1
    while step < size:
        total = total + factor * from_later(total, step)
        factor = factor * from_later(factor, step)
        step *= 2
    return total * ratio(self, result)


def _logcumsumexp_reference(self: Array, dim: int) -> Array:
    if self.dtype.kind == "c":
        return numpy.log(numpy.cumsum(numpy.exp(self), dim)).reshape(self.shape)
    return numpy.logaddexp.accumulate(numpy.atleast_1d(self), dim).reshape(self.shape)


operator(
    "logcumsumexp(Tensor self, int dim)",
    _logcumsumexp,
    out=True,
    derivatives={"self": _logcumsumexp_self},
    doc="Return the logarithm of the running sum of exponentials along a dimension, without overflow.",
    samples=_along_samples,
    reference=_logcumsumexp_reference,
)

# --- sorting ----------------------------------------------------------------------------------------------------------


def need_length(name: str, array: Array, dim: int) -> int:
    """Return `dim` counted from the front, after the check that there is an element along it."""
    axis = axis_of(dim, array.ndim)
    if array.ndim and not array.shape[axis]:
        raise IndexError(
            f"{name}(): Expected reduction dim {axis} to have non-zero size.\nIts shape is {list(array.shape)}."
        )
    return axis


def sorted_order(xp: Namespace, array: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort `array` along `axis`, equal elements in their order, NaN as the largest."""
    if not descending:
        return xp.argsort(array, axis=axis, kind="stable")
    back = (*(slice(None),) * axis, slice(None, None, -1))
    return (array.shape[axis] - 1 - xp.argsort(array[back], axis=axis, kind="stable"))[back].copy()


def _sort(xp: Namespace, self: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Array:
    axis = axis_of(dim, self.ndim)
    if self.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes\nSort by abs(), real or imag.")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    if type(self) is not numpy.ndarray:
        indices = sorted_order(xp, self, axis, descending)
        return xp.take_along_axis(self, indices, axis=axis), indices
    values, indices = numpy.empty(self.shape, self.dtype), numpy.empty(self.shape, numpy.int64)

    def sort(some: tuple[slice, ...]) -> None:
        indices[some] = sorted_order(numpy, self[some], axis, descending)
        values[some] = numpy.take_along_axis(self[some], indices[some], axis=axis)

    threads.over_lines(self.shape, axis, sort)
    return values, indices


def back_along(g: Gradient, self_shape: Shape, dim: int, indices: Array, keepdim: bool, F: Namespace) -> Gradient:
    """Return zeros with the gradient of each chosen element in its place."""
    chosen = g[0]
    if not keepdim and len(self_shape):
        chosen, indices = F.unsqueeze(chosen, dim), F.unsqueeze(indices, dim)
    return F.gather_backward(chosen, self_shape, dim, indices)


def _ranked(line: Array, descending: bool = False) -> list[int]:
    """Return the order of a line, NaN largest, equal ones as they stand."""
    sign = -1 if descending else 1
    return sorted(range(len(line)), key=lambda i: (sign * bool(numpy.isnan(line[i])), sign * numpy.nan_to_num(line[i])))


def _sort_reference(self: Array, dim: int = -1, descending: bool = False) -> list[Array]:
    return by_lines(lambda line: (line[order := _ranked(line, descending)], order), self, dim)


operator(
    "sort(Tensor self, int dim=-1, bool descending=False, bool stable=False)",
    _sort,
    outputs=("values", "indices"),
    derivatives={
        "self": lambda g, self_shape, dim, indices, F: back_along(g, self_shape, dim, indices, True, F),
    },
    out=True,
    doc="Sort along a dimension; return the values and where each was.",
    samples=lambda make: [((make(3, 4),), {}), ((make(3, 2), 0, True), {}), ((make(),), {})],
    reference=_sort_reference,
    supports="f",
)


@public
def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that sort along a dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.argsort(gs.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    return OPERATORS["sort"].function(self.detach(), dim, descending, stable)[1]


@public
def msort(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sort along the first dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.msort(gs.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    if out is not None:
        return inplace_and_out.into(out, "msort", [self], lambda: msort(self), exact=True)
    return OPERATORS["sort"].function(self, 0)[0]


def _topk(xp: Namespace, self: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Array:
    axis = axis_of(dim, self.ndim)
    refuse_kinds("topk_cpu", self, "bc")
    if not 0 <= k <= (self.shape[axis] if self.ndim else 1):
        raise RuntimeError(f"selected index k out of range\nk is {k}, the shape {list(self.shape)}, dim {dim}.")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    found = _few_of_rows(self, k, axis, largest)
    if found is not None:
        return found
    few = _few_of_many(self, k, axis, largest)
    if few is None:
        few = sorted_order(xp, self, axis, largest)[(*(slice(None),) * axis, slice(k))].copy()
    return xp.take_along_axis(self, few, axis=axis), few


def _few_of_rows(array: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array] | None:
    """Return values and indices by a compiled loop, where there is one and few are wanted: it inserts them in order."""
    single = type(array) is numpy.ndarray and array.dtype.char == "f" and array.size >= _LARGE
    loops = loading.compiled("extremes_loops") if single and 0 < k <= min(_FEW, array.shape[axis] // 4) else None
    if loops is None:
        return None
    lines = in_rows(numpy, numpy.moveaxis(array, axis, -1))
    shape = (*lines.shape[:-1], k)
    values, places = numpy.empty(shape, array.dtype), numpy.empty(shape, numpy.int64)
    rows = [a.reshape(-1, a.shape[-1]) for a in (lines, values, places)]
    loop = loops.largest_few if largest else loops.smallest_few
    threads.over(len(rows[0]), lambda part: loop(*[a[part] for a in rows]), lines.shape[-1])
    back = [numpy.moveaxis(a, -1, axis) for a in (values, places)]
    return in_rows(numpy, back[0]), in_rows(numpy, back[1])


_FEW = 32


def _few_of_many(array: Array, k: int, axis: int, largest: bool) -> Array | None:
    """Return what :func:`sorted_order` puts first along an axis, where nothing else is as good as the last of these.

    To part few elements from many takes a tenth of the time of sorting all.
    """
    size = array.shape[axis]
    if type(array) is not numpy.ndarray or array.size < _LARGE or not 0 < k <= size // 4:
        return None
    lines, place = in_rows(numpy, numpy.moveaxis(array, axis, -1)), size - k if largest else k - 1
    last = numpy.partition(lines, place, axis=-1)[..., place, None]
    as_good = lines >= last if largest else lines <= last  # a NaN is not, though it counts as the largest
    if (numpy.count_nonzero(as_good, axis=-1) != k).any():
        return None
    chosen = as_good.nonzero()[-1].reshape(*lines.shape[:-1], k)
    order = sorted_order(numpy, numpy.take_along_axis(lines, chosen, -1), lines.ndim - 1, largest)
    return numpy.moveaxis(numpy.take_along_axis(chosen, order, -1), -1, axis).copy()


_LARGE = 1 << 12  # elements


def _topk_reference(self: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[Array]:
    return by_lines(lambda line: (line[order := _ranked(line, largest)[:k]], order), self, dim)


operator(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)",
    _topk,
    outputs=("values", "indices"),
    derivatives={
        "self": lambda g, self_shape, dim, indices, F: back_along(g, self_shape, dim, indices, True, F),
    },
    out=True,
    doc="Return the `k` largest (or smallest) elements along a dimension, sorted, and where they were.",
    samples=lambda make: [((make(3, 4), 2), {}), ((make(4, 2), 3, 0, False), {})],
    reference=_topk_reference,
    supports="f",
)


def pick(xp: Namespace, self: Array, axis: int, place: Array, order: Array, keepdim: bool) -> Array:
    """Return values and indices of the elements at `place` in the order along `axis`."""
    return _picked(xp, self, axis, xp.take_along_axis(order, place, axis=axis), keepdim)


def _picked(xp: Namespace, self: Array, axis: int, indices: Array, keepdim: bool) -> Array:
    values = xp.take_along_axis(self, indices, axis=axis)
    if keepdim:
        return values, indices
    shape = self.shape[:axis] + self.shape[axis + 1 :]
    return values.reshape(shape), indices.reshape(shape)


def _kthvalue(xp: Namespace, self: Array, k: int, dim: int = -1, keepdim: bool = False) -> Array:
    axis = need_length("kthvalue", self, dim)
    refuse_kinds("kthvalue_cpu", self, "bc")
    if not 1 <= k <= (self.shape[axis] if self.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}\nk is {k}, counted from 1.")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    one = _one_of_many(self, k - 1, axis)
    if one is not None:
        return _picked(xp, self, axis, one, keepdim)
    order = sorted_order(xp, self, axis, False)
    place = xp.full((*self.shape[:axis], 1, *self.shape[axis + 1 :]), k - 1, dtype=xp.int64)
    return pick(xp, self, axis, place, order, keepdim)


def _one_of_many(array: Array, place: int, axis: int) -> Array | None:
    """Return the index of the element at a place of the order along an axis, where no other equals it."""
    if type(array) is not numpy.ndarray or array.size < _LARGE:
        return None
    lines = in_rows(numpy, numpy.moveaxis(array, axis, -1))
    equal = lines == numpy.partition(lines, place, axis=-1)[..., place, None]
    if (numpy.count_nonzero(equal, axis=-1) != 1).any():  # a NaN equals none
        return None
    return numpy.expand_dims(equal.argmax(-1), axis)


def _kthvalue_reference(self: Array, k: int, dim: int = -1, keepdim: bool = False) -> list[Array]:
    return by_lines(lambda line: (line[place := _ranked(line)[k - 1]], place), self, dim, keepdim)


operator(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)",
    _kthvalue,
    outputs=("values", "indices"),
    derivatives={
        "self": lambda g, self_shape, dim, indices, keepdim, F: back_along(g, self_shape, dim, indices, keepdim, F),
    },
    out="apart",
    doc="Return the `k`-th smallest element along a dimension, counted from 1, and where it was.",
    samples=lambda make: [((make(3, 4), 2), {}), ((make(4, 2), 3, 0, True), {}), ((make(), 1), {})],
    reference=_kthvalue_reference,
    supports="f",
)


def median_along(xp: Namespace, self: Array, dim: int, keepdim: bool = False) -> Array:
    """Return the medians along a dimension, and where they were."""
    axis = need_length("median", self, dim)
    refuse_kinds("median_cpu", self, "bc")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    size = self.shape[axis]
    one = _one_of_many(self, (size - 1) // 2, axis)
    if one is not None and not (self.dtype.kind == "f" and numpy.isnan(self).any()):
        return _picked(xp, self, axis, one, keepdim)
    order = sorted_order(xp, self, axis, False)
    # NaN sorts last; where there is one, the first of them is the median.
    absent = (self != self).sum(axis=axis, keepdims=True)
    place = xp.where(absent > 0, size - absent, (size - 1) // 2).astype("int64")
    return pick(xp, self, axis, place, order, keepdim)


def _median_all(xp: Namespace, self: Array) -> Array:
    if not self.size:
        refuse_kinds("median_cpu", self, "bc")
        return xp.full((), float("nan"), dtype=self.dtype)
    return median_along(xp, self.reshape(-1), 0)[0]


def _median_reference(self: Array, dim: int, keepdim: bool = False) -> list[Array]:
    def middle(line: Array) -> tuple[Number, int]:
        order = _ranked(line)
        place = int(numpy.isnan(line).argmax()) if numpy.isnan(line).any() else order[(len(line) - 1) // 2]
        return line[place], place

    return by_lines(middle, self, dim, keepdim)


operator(
    "median.all(Tensor self)",
    _median_all,
    method=False,
    derivatives={"self": evenly},
    doc="Return the median of all elements; of an even number of them the lower one in the middle.",
    samples=lambda make: [((make(3, 4),), {}), ((make(),), {}), ((make(5),), {})],
    reference=lambda self: _median_reference(self.reshape(-1), 0)[0],
    supports="f",
)
operator(
    "median.dim(Tensor self, int dim, bool keepdim=False)",
    median_along,
    method=False,
    outputs=("values", "indices"),
    node="MedianBackward1",
    derivatives={
        "self": lambda g, self_shape, dim, indices, keepdim, F: back_along(g, self_shape, dim, indices, keepdim, F),
    },
    out=True,
    doc="Return the medians along a dimension, and where they were.",
    samples=lambda make: [((make(3, 4), 0), {}), ((make(3, 5), -1, True), {}), ((make(), 0), {})],
    reference=_median_reference,
    supports="f",
)


@public
def median(self: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Results:
    """Return the median of all elements, or those along `dim` with their indices.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.median(gs.tensor([1.0, 5.0, 3.0]))
    tensor(3.)
    """
    if dim is None:
        return OPERATORS["median.all"].function(self)
    return OPERATORS["median.dim"].function(self, dim, keepdim, out=out)


def _mode(xp: Namespace, self: Array, dim: int = -1, keepdim: bool = False) -> Array:
    axis = need_length("mode", self, dim)
    refuse_kinds("mode_cpu", self, "c")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    size = self.shape[axis]
    order = sorted_order(xp, self, axis, False)
    ranked = xp.take_along_axis(self, order, axis=axis)
    before = (slice(None),) * axis
    shape = [1] * self.ndim
    shape[axis] = size
    places = xp.broadcast_to(xp.arange(size).reshape(shape), self.shape)
    starts = places.copy()
    later, earlier = (*before, slice(1, None)), (*before, slice(None, -1))
    starts[later] = xp.where(ranked[later] == ranked[earlier], xp.zeros_like(starts[later]), starts[later])
    lengths = places - _running(xp, xp.maximum, starts, axis)
    # The first of the longest runs has the smallest value; its end is where that was met last.
    end = xp.expand_dims(lengths.argmax(axis=axis), axis)
    return pick(xp, self, axis, end, order, keepdim)


def _mode_reference(self: Array, dim: int = -1, keepdim: bool = False) -> list[Array]:
    def commonest(line: Array) -> tuple[Number, int]:
        value = min(line, key=lambda x: (-numpy.sum(line == x), x))
        return value, len(line) - 1 - int((line[::-1] == value).argmax())

    return by_lines(commonest, self, dim, keepdim)


operator(
    "mode(Tensor self, int dim=-1, bool keepdim=False)",
    _mode,
    outputs=("values", "indices"),
    out=True,
    derivatives={
        "self": lambda g, self_shape, dim, indices, keepdim, F: back_along(g, self_shape, dim, indices, keepdim, F),
    },
    doc="Return the most frequent element along a dimension (the smallest; NaN equals nothing), and where it was last.",
    samples=lambda make: [((make(3, 4),), {}), ((make(4, 2), 0, True), {}), ((make(),), {})],
    reference=_mode_reference,
    supports="f",
)
