"""Reductions of what is scattered to one place: scatter_reduce, and index_reduce for whole slices."""

from __future__ import annotations

import math

import numpy

from ...memory import device
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, DType, Formula, Gradient, Make, Namespace
from ..declaration.references import gathered_at, reduced_slices
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.bare_functions import writable_copy
from ..nn.activations import need_floating
from ..shape.reshape import axis_of
from . import places
from .accumulate_at import accumulate_at
from .gather_and_scatter import along, check_scatter, is_integer, kind_of, leading_part, longs, need_same_dtype
from .indexing import check_bounds

_UFUNCS = {"sum": "add", "mean": "add", "amax": "maximum", "amin": "minimum"}
_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _check_reduction(name: str, reduce: str, allowed: tuple[str, ...]) -> None:
    if reduce not in allowed:
        words = ", ".join(allowed[:-1]) + f" or {allowed[-1]}"
        raise RuntimeError(f"reduce argument must be either {words}.\n{name}() got {reduce!r}.")


def _neutral(xp: Namespace, kind: DType, reduce: str) -> Array:
    """Return the number that a reduction leaves out of account."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if kind.kind == "f":
        return -math.inf if reduce == "amax" else math.inf
    if kind.kind == "b":
        return reduce == "amin"
    limits = xp.iinfo(kind)
    return limits.min if reduce == "amax" else limits.max


def _reduce_at(xp: Namespace, self: Array, key: Array, values: Array, reduce: str, include_self: bool) -> None:
    """Reduce `values` into the places of `self` that an index key names."""
    if not include_self:
        self[key] = _neutral(xp, self.dtype, reduce)
    if reduce == "prod":
        self *= _products(xp, self, key, values)
        return
    accumulate_at(xp, _UFUNCS[reduce], self, key, values)
    if reduce == "mean":
        counts = xp.full(self.shape, int(include_self), dtype=self.dtype)
        accumulate_at(xp, "add", counts, key, xp.ones(values.shape, dtype=self.dtype))
        _divide_by_counts(xp, self, counts)


def _divide_by_counts(xp: Namespace, total: Array, counts: Array) -> None:
    counts = xp.maximum(counts.real, 1).astype(total.dtype)
    total[...] = total / counts if total.dtype.kind in "fc" else total // counts


def _reduce_along(self: Array, axis: int, index: Array, values: Array, reduce: str, include_self: bool) -> None:
    """Do the same along an axis of a large NumPy array."""
    if not include_self:
        places.put(self, axis, index, _neutral(numpy, self.dtype, reduce))
    ufunc = numpy.multiply if reduce == "prod" else getattr(numpy, _UFUNCS[reduce])
    places.combine(ufunc, self, axis, index, values)
    if reduce == "mean":
        counts = numpy.full(self.shape, int(include_self), self.dtype)
        places.combine(numpy.add, counts, axis, index, numpy.broadcast_to(counts.dtype.type(1), index.shape))
        _divide_by_counts(numpy, self, counts)


def _products(xp: Namespace, like: Array, key: Array, values: Array) -> Array:
    """Return an array like `like` with the products of the values that belong to each place, 1 where none do.

    CuPy has no multiply.at: values are sorted by place, and multiplied along each run in log2(size) passes.
    """
    if not values.size:
        return xp.ones(like.shape, dtype=like.dtype)
    places = xp.arange(like.size).reshape(like.shape)[key].reshape(-1)
    order = xp.argsort(places, kind="stable")
    places, product, step = places[order], values.reshape(-1)[order], 1
    while step < places.size:
        same = places[step:] == places[:-step]
        product[step:] = xp.where(same, product[step:] * product[:-step], product[step:])
        step *= 2
    last = xp.concatenate((places[1:] != places[:-1], xp.ones(1, dtype=bool)))
    result = xp.ones(like.size, dtype=like.dtype)
    result[places[last]] = product[last]
    return result.reshape(like.shape)


def _scatter_reduce(
    xp: Namespace, self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
) -> None:
    _check_reduction("scatter_reduce", reduce, _REDUCTIONS)
    axis = check_scatter("scatter_reduce", self, dim, index, src)
    need_same_dtype("scatter", self, src)
    if not index.size:
        return
    values = leading_part(src, index.shape)
    if self.ndim == 0 or index.ndim == 0:
        _reduce_at(xp, self.reshape(-1), index.reshape(-1), values.reshape(-1), reduce, include_self)
    elif places.are_worth_it(self, index) and self.dtype.kind == "f":
        _reduce_along(self, axis, index, values, reduce, include_self)
    else:
        _reduce_at(xp, self, along(xp, index, axis), values, reduce, include_self)


def _copying(write: Formula) -> Formula:
    """Return the forward that does so to a copy; `include_self` may be named."""

    def forward(
        xp: Namespace, self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
    ) -> Array:
        result = writable_copy(xp, self)
        write(xp, result, dim, index, src, reduce, include_self)
        return result

    return forward


def _count(g: Gradient, dim: int, index: Array, src: Array, include_self: bool, F: Namespace) -> Gradient:
    """Return how many numbers came together at each place, 1 where none did."""
    start = F.ones_like(g) if include_self else F.zeros_like(g)
    count = F.scatter_add(start, dim, index, F.ones_like(src))
    return F.where(count == 0, F.ones_like(g), count)


def _shares(g: Gradient, self: Array, dim: int, index: Array, src: Array, result: Array, F: Namespace) -> Gradient:
    """Return the gradient of an extreme, divided among those that are equal to it."""
    ties = F.scatter_add(
        (self == result) * F.ones_like(g), dim, index, (src == F.gather(result, dim, index)) * F.ones_like(src)
    )
    return g / ties


def _self_gradient(
    g: Gradient,
    self: Array,
    dim: int,
    index: Array,
    src: Array,
    reduce: str,
    include_self: bool,
    result: Array,
    F: Namespace,
) -> Gradient:
    if reduce == "mean":
        g = g / _count(g, dim, index, src, include_self, F)
    elif reduce == "prod":
        # In place of a zero stands 1, so that what is left is the product of the others.
        nonzero = F.where(self == 0, F.ones_like(self), self)
        g = g * F.scatter_reduce(nonzero, dim, index, src, reduce, include_self=include_self) / nonzero
    elif reduce != "sum":
        g = (self == result) * _shares(g, self, dim, index, src, result, F)
    return g if include_self else F.scatter_zero(g, dim, index)


def _src_gradient(
    g: Gradient,
    self: Array,
    dim: int,
    index: Array,
    src: Array,
    reduce: str,
    include_self: bool,
    result: Array,
    F: Namespace,
) -> Gradient:
    if reduce == "sum":
        return F.gather(g, dim, index)
    if reduce == "mean":
        return F.gather(g / _count(g, dim, index, src, include_self, F), dim, index)
    if reduce != "prod":
        shares = _shares(g, self, dim, index, src, result, F)
        return (src == F.gather(result, dim, index)) * F.gather(shares, dim, index)
    # The product of the others: that of all divided by this one, unless it is 0. For an only zero it is that of the
    # rest; for one of two, the other zero times that (0, but with a derivative).
    zero = src == 0
    ones, nothing = F.ones_like(src), F.zeros_like(src)

    def met(values: Array) -> Array:
        return F.gather(F.scatter_add(F.zeros_like(self), dim, index, values), dim, index)

    count = met(zero * ones)
    product = F.scatter_reduce(self, dim, index, F.where(zero, ones, src), reduce, include_self=include_self)
    rest = F.gather(g * product, dim, index)
    other_zero = met(F.where(zero, src, nothing)) - src
    of_zeros = F.where(count == 1, rest, F.where(count == 2, other_zero * rest, nothing))
    divided = F.gather(g * result, dim, index) / F.where(zero, ones, src)
    return F.where(zero, of_zeros, divided)


def _scatter_samples(make: Make) -> Cases:
    x, y, z = make(3, 4), make(2, 3), make()
    places, others = longs(x, [[0, 1, 2, 0], [2, 2, 1, 1]]), longs(y, [[0, 0], [1, 0]])
    return [
        ((make(3, 4), 0, places, make(2, 4), reduce), {"include_self": own})
        for reduce in _REDUCTIONS
        for own in (True, False)
    ] + [((y, -1, others, make(2, 2), "sum"), {}), ((z, 0, longs(z, [0, 0]), make(2), "mean"), {})]


def _scatter_reduce_reference(
    self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
) -> Array:
    whole = numpy.atleast_1d(self)
    targets = zip(*(axis.reshape(-1).tolist() for axis in gathered_at(index, dim)))
    places = zip(targets, numpy.ndindex(index.shape))
    return reduced_slices(whole, places, src, reduce, include_self).reshape(self.shape)


def _index_reduce_reference(
    self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> Array:
    whole, parts = numpy.moveaxis(self, dim, 0), numpy.moveaxis(source, dim, 0)
    rests = list(numpy.ndindex(whole.shape[1:]))
    places = (((target, *rest), (row, *rest)) for row, target in enumerate(index.tolist()) for rest in rests)
    return numpy.moveaxis(reduced_slices(whole, places, parts, reduce, include_self), 0, dim)


operator(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)",
    _copying(_scatter_reduce),
    write=_scatter_reduce,
    inplace=True,
    out=True,
    derivatives={"self": _self_gradient, "src": _src_gradient},
    doc="""Return `self` with the elements of `src` reduced into the positions along `dim` given by `index`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; with ``include_self=False`` the elements of `self` at these
    positions do not take part.

    Examples
    --------
    >>> import gradscope as gs
    >>> index = gs.tensor([0, 0, 1])
    >>> gs.zeros(2).scatter_reduce(0, index, gs.tensor([1.0, 2.0, 3.0]), "mean", include_self=False)
    tensor([1.5000, 3.0000])
    """,
    samples=_scatter_samples,
    reference=_scatter_reduce_reference,
    supports="f",
)

# --- whole slices -----------------------------------------------------------------------------------------------------


def _index_reduce(
    xp: Namespace, self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> None:
    _check_reduction("index_reduce", reduce, ("prod", "mean", "amax", "amin"))
    axis = axis_of(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_reduce_(): Index is supposed to be a vector\nIts shape is {list(index.shape)}.")
    if not is_integer(index):
        raise RuntimeError(
            f"index_reduce_(): Expected dtype int32/int64 for index but got: {kind_of(index)}\nUse .long()."
        )
    need_same_dtype("index_reduce", self, source)
    index = index.reshape(-1)
    want, have = (a.shape[:axis] + a.shape[axis + 1 :] for a in (self, source))
    length = source.shape[axis] if source.ndim else 1
    if index.size != length or want != have:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index.size}) should be equal to source.size(dim) ({length}), and "
            f"the other sizes of source to those of self\nTheir shapes are {list(source.shape)} and {list(self.shape)}."
        )
    size = self.shape[axis] if self.ndim else 1
    check_bounds(index, size, "index_reduce_(): index {index} is out of bounds for a dimension of size {size}")
    target, values = (a.reshape(1) if a.ndim == 0 else a for a in (self, source))
    _reduce_at(xp, target, (*(slice(None),) * axis, index), values, reduce, include_self)


def _per_element(index: Array, source: Array, dim: int, F: Namespace) -> Array:
    """Return an index of slices as one of elements, for the derivatives that scatter_reduce has."""
    ndim = len(source.shape)
    shape = [1] * ndim
    if ndim:
        shape[axis_of(dim, ndim)] = -1
    return F.broadcast_to(F.reshape(index, tuple(shape)), tuple(source.shape))


def _sliced(gradient: Array) -> Array:
    def formula(
        g: Gradient,
        self: Array,
        dim: int,
        index: Array,
        source: Array,
        reduce: str,
        include_self: bool,
        result: Array,
        F: Namespace,
    ) -> Gradient:
        places = _per_element(index, source, dim, F)
        return gradient(g, self, dim, places, source, reduce, include_self, result, F)

    return formula


operator(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)",
    _copying(_index_reduce),
    write=_index_reduce,
    inplace=True,
    out=True,
    derivatives={"self": _sliced(_self_gradient), "source": _sliced(_src_gradient)},
    doc='Return `self` with the slices of `source` reduced ("prod", "mean", "amax", "amin") into those `index` lists.',
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [2, 0, 2]), make(3, 4), reduce), {"include_self": own})
        for reduce in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    reference=_index_reduce_reference,
    supports="f",
)


# --- segments ---------------------------------------------------------------------------------------------------------


@public(method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce segments that follow one another along a dimension.

    Parameters
    ----------
    data : Tensor
        Of a floating dtype.
    reduce : {"sum", "mean", "max", "min", "prod"}
    lengths : Tensor, optional
        How long the segments are, of shape (*data.shape[:axis], segments).
    offsets : Tensor, optional
        Where they start, and where the last one ends, instead of the lengths.
    unsafe : bool
        Do not look whether the segments fill the dimension; what is behind the last one is left out then.
    initial : float, optional
        What each segment begins with, and an empty one comes to: 0, NaN, -inf, inf or 1 unless given.

    Raises
    ------
    RuntimeError
        If the lengths do not fit the data.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.segment_reduce(gs.tensor([1.0, 2.0, 3.0]), "sum", lengths=gs.tensor([1, 2]))
    tensor([1., 5.])
    """
    if reduce not in _OF_SEGMENTS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, max or min, got {reduce}\nIn segment_reduce()."
        )
    axis = axis_of(axis, data._array.ndim)
    need_floating("_segment_reduce_cpu", data._array)
    edges = _segment_edges(data, lengths, offsets, axis, unsafe)
    shape, segments = data._array.shape, edges._array.shape[-1] - 1
    positions = data.__class__._wrap(device.array_module(data._array).arange(shape[axis]))
    # A position belongs to the segment after those that have ended; what is in none is cut off below.
    place = (positions >= edges[..., 1:].unsqueeze(-1)).sum(-2)
    place = METHODS["masked_fill"](place, positions < edges[..., :1], segments)
    ones = (1,) * len(shape[axis + 1 :])
    how, neutral = _OF_SEGMENTS[reduce]
    target = data.new_full((*shape[:axis], segments + 1, *shape[axis + 1 :]), neutral)
    index = place.reshape(*place._array.shape, *ones).expand(shape)
    if reduce in ("max", "min") and data.requires_grad:
        data = _extremes_alone(data, target, axis, index, how, neutral)
    found = METHODS["scatter_reduce"](target, axis, index, data, how, include_self=False)
    sizes = METHODS["diff"](edges, dim=-1)
    return _with_initial(found.narrow(axis, 0, segments), reduce, initial, sizes.reshape(*sizes._array.shape, *ones))


_OF_SEGMENTS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "prod": ("prod", 1.0),
}


def _segment_edges(data: Array, lengths: Array, offsets: Array, axis: int, unsafe: bool) -> Array:
    """Return where the segments start, and where the last one ends."""
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.\nGive one of the two.")
    given, name = (offsets, "offsets") if lengths is None else (lengths, "lengths")
    if axis != given._array.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.\n"
            f"The shape of {name} is {list(given.shape)}, that of the data {list(data.shape)}."
        )
    if lengths is None:
        return offsets
    if not unsafe and type(lengths._array) is device.ndarray:
        if (lengths._array < 0).any():
            raise RuntimeError(f"lengths contains negative value!\nThe least is {lengths._array.min()}.")
        if (lengths._array.sum(-1) != data._array.shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                f"!unsafe.\nThey come to {lengths._array.sum(-1).tolist()}, the dimension to {data._array.shape[axis]}."
            )
    return OPERATORS["constant_pad_nd"].function(lengths.cumsum(-1), (1, 0))


def _extremes_alone(data: Tensor, target: Tensor, axis: int, index: Tensor, how: str, neutral: float) -> Tensor:
    """Return data with the neutral number in place of what is no extreme: an infinite gradient is no NaN for that."""
    found = METHODS["scatter_reduce"](target, axis, index, data.detach(), how, include_self=False)
    extreme = METHODS["gather"](found, axis, index)
    return METHODS["masked_fill"](data, (data != extreme) & (extreme == extreme), neutral)


def _with_initial(found: Array, reduce: str, initial: float | None, lengths: Array) -> Array:
    """Return segments that began with `initial`; a maximum that is equal to it is an element's."""
    if reduce == "mean":
        total = found if initial is None else found + initial
        empty = math.nan if initial is None else initial
        return METHODS["masked_fill"](total / METHODS["clamp"](lengths, min=1), lengths == 0, empty)
    if initial is None:
        return found
    if reduce in ("sum", "prod"):
        return found + initial if reduce == "sum" else found * initial
    beyond = found < initial if reduce == "max" else found > initial
    return METHODS["masked_fill"](found, beyond, initial)
