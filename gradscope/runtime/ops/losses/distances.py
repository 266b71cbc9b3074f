"""Distances and similarities of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy

from ... import autocast, state
from ...kernels import loading, threads
from ...memory import device
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...modes import no_grad
from ...tensor.creation import broadcast_shapes
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.bare_functions import in_rows


@public(method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the `p`-norm of ``x1 - x2 + eps`` along the last dimension.

    Parameters
    ----------
    x1, x2 : Tensor
        Of shape (N, D) or (D).
    eps : float
        Keeps rows that are equal from a distance without a derivative.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.pairwise_distance(gs.tensor([[0.0, 3.0]]), gs.tensor([[4.0, 0.0]]))
    tensor([5.])
    """
    return OPERATORS["norm.dim"].function(x1 - x2 + eps, p, -1, keepdim)


@public(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between `x1` and `x2` along `dim`; norms are at least `eps`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.cosine_similarity(gs.tensor([1.0, 0.0]), gs.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    if state.casting and autocast.covers("cosine_similarity", (x1, x2)):
        return autocast.call("cosine_similarity", cosine_similarity, x1, x2, dim, eps)
    kind = dtypes.result_numpy([x1._array, x2._array])
    if kind.kind not in dtypes.FLOATING:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_type(kind)}\n"
            "Convert one of them with .float()."
        )
    x1, x2 = (x.to(dtypes.BY_NUMPY[kind]) for x in (x1, x2))
    if x1._array.shape != x2._array.shape:  # a dimension that is summed may be one of those that are broadcast
        shape = broadcast_shapes(x1._array.shape, x2._array.shape)
        x1, x2 = METHODS["expand"](x1, *shape), METHODS["expand"](x2, *shape)
    return (x1 / _norm(x1, dim, eps) * (x2 / _norm(x2, dim, eps))).sum(dim)


def _norm(x: Array, dim: int, eps: float) -> Array:
    norm = METHODS["norm"](x, 2, dim, True).clone()
    with no_grad():  # a norm below eps has the gradient of the norm all the same, as in PyTorch
        norm.clamp_min_(eps)
    return norm


# --- all pairs --------------------------------------------------------------------------------------------------------


def _pairs(xp: Namespace, count: int) -> tuple[Array, Array]:
    """Return the indices of the first and of the second row of each pair."""
    first, second = xp.triu_indices(count, 1)
    return first, second


def _norms(xp: Namespace, apart: Array, p: float) -> Array:
    """Return the p-norms of rows."""
    if p == 2:
        return xp.sqrt(xp.einsum("ij,ij->i", apart, apart))
    sizes = xp.absolute(apart)
    if p == 0:
        return xp.add.reduce(xp.minimum(xp.ceil(sizes), 1), axis=1)  # a NaN stays one
    if p == math.inf:
        return sizes.max(axis=1) if sizes.shape[1] else xp.zeros(sizes.shape[:1], dtype=sizes.dtype)
    if p == 1:
        return xp.add.reduce(sizes, axis=1)
    return xp.add.reduce(sizes**p, axis=1) ** (1.0 / p)


BLOCK = 1 << 15
"""Elements of differences that are made at once on the CPU."""


def _blocks(xp: Namespace, pairs: int, width: int, least: int = 1) -> Iterator[slice]:
    """Yield slices of the pairs whose differences stay in the cache; on a GPU one of all."""
    step = max(BLOCK // max(width, 1), least) if xp is device.numpy else max(pairs, 1)
    for start in range(0, pairs, step):
        yield slice(start, min(start + step, pairs))


_NAMES = {1: "manhattan", 2: "euclidean"}
_DIFFERENCES = 1 << 16


def are_many(a: Array, b: Array) -> bool:
    """Whether matrices on the CPU, of single precision, are so large that their rows' differences leave the cache."""
    are_single = type(a) is type(b) is numpy.ndarray and a.dtype.char == b.dtype.char == "f"
    return are_single and a.size * b.shape[-2] >= _DIFFERENCES


def has_compiled_loops(a: Array, b: Array, p: float) -> bool:
    """Whether loops are compiled for the distances of order `p` of many rows."""
    return p in _NAMES and are_many(a, b) and loading.compiled("distance_loops") is not None


def _loop(p: float, kind: str) -> Callable[..., None]:
    loop: Callable[..., None] = getattr(loading.compiled("distance_loops"), f"{_NAMES[int(p)]}_{kind}")
    return loop


_TINY = 1e-16
"""A distance below may be of differences whose squares underflow."""


def _write_distances(rows: Array, others: Array, p: float, result: Array) -> None:
    """Write the distances between the rows of two matrices by compiled loops, shared by threads."""
    loop, columns = _loop(p, "distances"), numpy.ascontiguousarray(others.T)
    threads.over(len(rows), lambda some: loop(rows[some], columns, result[some]), others.size)
    if p == 2:
        i, j = ((result < _TINY) | (result == math.inf)).nonzero()
        with numpy.errstate(invalid="ignore"):
            for some, apart in _differences(rows, others, i, j):  # in double precision no square under- or overflows
                result[i[some], j[some]] = numpy.sqrt(numpy.vecdot(apart, apart))


def _pulls_of(weights: Array, rows: Array, others: Array, p: float) -> Array:
    """Return the sum of slopes of the distances from each row to the others, each times its weight."""
    result, loop, columns = numpy.empty(rows.shape, rows.dtype), _loop(p, "pulls"), numpy.ascontiguousarray(others.T)
    threads.over(len(rows), lambda some: loop(weights[some], rows[some], columns, result[some]), others.size)
    return result


_LINES = 256
"""How many rows' distances are computed at once of which the upper half is wanted."""


def _pdist(xp: Namespace, self: Array, p: float = 2.0) -> Array:
    if has_compiled_loops(self, self, p):
        rows, lines = in_rows(xp, self), []
        for some in threads.blocks(slice(0, len(rows)), _LINES):
            found = numpy.empty((some.stop - some.start, len(rows)), rows.dtype)
            _write_distances(rows[some], rows, p, found)
            lines += [line[place + 1 :] for place, line in enumerate(found, some.start)]
        return numpy.concatenate(lines)
    first, second = _pairs(xp, self.shape[0])
    found = xp.empty(first.shape, dtype=self.dtype)
    for block in _blocks(xp, first.size, self.shape[1]):
        apart = self.take(first[block], axis=0)
        apart -= self.take(second[block], axis=0)
        found[block] = _norms(xp, apart, p)
    return found


def _slope(apart: Array, distance: Array, p: float, F: Namespace) -> Array:
    """Return the derivative of the p-norm of rows: 0 where the distance is, NaN where it is."""
    sign = F.where(apart == apart, F.sign(apart), apart)
    if p == 1:
        return sign
    sizes = F.abs(apart)
    if p == math.inf:
        less = sizes - distance  # NaN of infinities, as in PyTorch
        return F.where(less < 0, F.zeros_like(sign), F.where(less == 0, sign, less))
    near, still = distance == 0, apart == 0
    powers = F.where(still, F.ones_like(sizes), sizes) ** (p - 1)
    slope = sign * powers / F.where(near, F.ones_like(distance), distance) ** (p - 1)
    return F.where(near | still if p < 1 else near, F.zeros_like(apart), slope)


def _euclidean_backward(g: Gradient, self: Array, result: Array, first: Array, second: Array, F: Namespace) -> Gradient:
    """Return the gradient for p = 2: sums of differences, weighted with gradients of pairs over their distances."""
    count, width = self.shape
    shares = _over(g, result, F)
    above = F.gather_backward(shares, (count * count,), 0, first * count + second).reshape(count, count)
    square = above + F.transpose(above, 0, 1)
    xp = device.array_module(getattr(self, "_array", self))
    # Sums of the rows themselves, one product of matrices, would lose small rows beside a large one.
    parts = [
        F.matmul(F.unsqueeze(square[rows], 1), F.unsqueeze(self[rows], 1) - self)
        for rows in _blocks(xp, count, count * width)
    ]
    return F.cat(parts, 0).reshape(count, width)


def _pdist_backward(g: Gradient, self: Array, p: float, result: Array, F: Namespace) -> Gradient:
    if p == 0 or self.shape[0] < 2:
        return F.zeros_like(self)
    bare = getattr(self, "_array", self)
    # An infinite number less itself, of a row beside itself, would be NaN.
    if bare is self and has_compiled_loops(self, self, p) and numpy.isfinite(bare).all():
        return _pdist_pulls(g if p == 1 else _over(g, result, F), in_rows(numpy, self), p)
    first, second = _pairs(device.array_module(bare), self.shape[0])
    if bare is not self:
        first, second = self._wrap(first), self._wrap(second)
    if p == 2:
        return _euclidean_backward(g, self, result, first, second, F)
    count, width = self.shape
    total = F.zeros_like(self)
    # Each block adds to a copy of the sums: it is some times as large.
    for block in _blocks(device.array_module(bare), count * (count - 1) // 2, width, 8 * count):
        i, j = first[block], second[block]
        apart = F.index_select(self, 0, i) - F.index_select(self, 0, j)
        each = F.unsqueeze(g[block], 1) * _slope(apart, F.unsqueeze(result[block], 1), p, F)
        total = F.index_add(F.index_add(total, 0, i, each), 0, j, -each)
    return total


def _over(g: Gradient, result: Array, F: Namespace) -> Gradient:
    """Return a gradient over the distance, and 0 where there is none."""
    still = result == 0
    return F.where(still, F.zeros_like(g), g / F.where(still, F.ones_like(result), result))


def _pdist_pulls(shares: Gradient, rows: Array, p: float) -> Gradient:
    weights, begin, count = numpy.zeros((len(rows), len(rows)), rows.dtype), 0, len(rows)
    for place in range(count):
        end = begin + count - place - 1
        weights[place, place + 1 :] = shares[begin:end]
        begin = end
    return _pulls_of(weights + weights.T, rows, rows, p)


def _pdist_reference(self: Array, p: float = 2.0) -> Array:
    pairs = [numpy.abs(self[i] - self[j]) for i in range(len(self)) for j in range(i + 1, len(self))]
    if p in (0, math.inf):
        norms = [numpy.sum(numpy.where(d == d, d != 0, d)) if p == 0 else numpy.max(d, initial=0) for d in pairs]
        return numpy.array(norms, dtype=self.dtype)
    return numpy.array([(d**p).sum() ** (1 / p) for d in pairs], dtype=self.dtype)


operator(
    "pdist.rows(Tensor self, float p=2.0)",
    _pdist,
    method=False,
    node="PdistBackward0",
    derivatives={"self": _pdist_backward},
    doc="Return the p-norm distances between all pairs of rows.",
    samples=lambda make: (
        [((make(4, 3), p), {}) for p in (2.0, 1.0, 0.0, 1.5, 3.0, math.inf)]
        + [((make(1, 3),), {}), ((make(3, 0),), {})]
    ),
    reference=_pdist_reference,
    supports="f",
)


@public(method=False)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the `p`-norm distances between all pairs of rows: those above the diagonal of :func:`cdist`, in a row.

    Raises
    ------
    RuntimeError
        If the input is no matrix of floating-point numbers, or `p` is negative.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.pdist(gs.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if state.casting and autocast.covers("pdist", (input,)):
        return autocast.call("pdist", pdist, input, p)
    array = input._array
    if array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {array.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes\nConvert it with .float().")
    if array.dtype.itemsize < 4:
        kind = scalar_type(array.dtype)
        raise NotImplementedError(f"\"pdist\" not implemented for '{kind}'\nConvert it with .float().")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return OPERATORS["pdist.rows"].function(input, float(p))


# --- pairs of two matrices --------------------------------------------------------------------------------------------

_NEAR = 1e-6
"""Of the sum of two rows' squares: a smaller squared distance is computed from differences, not from products."""

_PAIRS = 1 << 17
"""How many are computed at once, and how many numbers of the differences of near ones."""


def _by_products(self: Array, other: Array) -> tuple[Array, Array] | None:
    """Return batches of matrices where products, in double precision, have the digits that differences have.

    None where they are of another dtype than float32, or not finite.
    """
    if not (type(self) is type(other) is numpy.ndarray and self.dtype.char == other.dtype.char == "f"):
        return None
    if not (numpy.isfinite(self).all() and numpy.isfinite(other).all()):
        return None
    return _matrices(self, other)


def _matrices(self: Array, other: Array) -> tuple[Array, Array]:
    """Return two batches of matrices that broadcast as ones with one dimension of batches."""
    lead = numpy.broadcast_shapes(self.shape[:-2], other.shape[:-2])
    a, b = (in_rows(numpy, numpy.broadcast_to(x, (*lead, *x.shape[-2:]))) for x in (self, other))
    return a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])


def _centred(x: Array, y: Array) -> tuple[Array, Array]:
    """Return both in double precision, as seen from the middle of `y`: a common offset would leave products no digits.

    What single precision holds of a small number beside a large offset is lost: near rows are taken as they were.
    """
    middle = y.mean(-2, float, keepdims=True)
    return x - middle, y - middle


def _rows(a: Array, b: Array) -> Iterator[tuple[int, slice, Array]]:
    """Yield a batch, some rows of `a` in it, and the sums of the squares of these and of the rows of `b`."""
    for batch, (of_a, of_b) in enumerate(zip(numpy.vecdot(a, a), numpy.vecdot(b, b), strict=True)):
        for rows in threads.blocks(slice(0, len(of_a)), max(_PAIRS // max(len(of_b), 1), 1)):
            yield batch, rows, of_a[rows, None] + of_b


def _differences(x: Array, y: Array, i: Array, j: Array) -> Iterator[tuple[slice, Array]]:
    """Yield parts of pairs of rows, and their differences in double precision."""
    for some in threads.blocks(slice(0, i.size), max(_PAIRS // x.shape[1], 1)):
        yield some, numpy.subtract(x[i[some]], y[j[some]], dtype=float)


def _distances(xp: Namespace, self: Array, other: Array, p: float = 2.0) -> Array:
    if has_compiled_loops(self, other, p):
        a, b = _matrices(self, other)
        found = numpy.empty((*a.shape[:2], b.shape[1]), self.dtype)
        for rows, others, to in zip(a, b, found, strict=True):
            _write_distances(rows, others, p, to)
        return found.reshape(*numpy.broadcast_shapes(self.shape[:-2], other.shape[:-2]), *found.shape[1:])
    products = _by_products(self, other) if p == 2 else None
    if products is None:
        apart = self[..., :, None, :] - other[..., None, :, :]
        return xp.add.reduce(abs(apart), axis=-1) if p == 1 else xp.sqrt(xp.add.reduce(apart * apart, axis=-1))
    x, y = products
    a, b = _centred(x, y)
    found = numpy.empty((*a.shape[:2], b.shape[1]), self.dtype)
    for batch, rows, squared in _rows(a, b):
        near = squared * _NEAR
        squared -= 2 * (a[batch, rows] @ b[batch].T)
        i, j = (squared <= near).nonzero()
        for some, apart in _differences(x[batch, rows], y[batch], i, j):
            squared[i[some], j[some]] = numpy.vecdot(apart, apart)
        found[batch, rows] = numpy.sqrt(squared, out=squared)
    return found.reshape(*numpy.broadcast_shapes(self.shape[:-2], other.shape[:-2]), *found.shape[1:])


def _pull(g: Gradient, self: Array, other: Array, p: float, result: Array, F: Namespace) -> Gradient:
    """Return the sums of differences from the other rows, each times its gradient over the distance, or 0.

    Of order 1 they are the differences' signs, each times its gradient.
    """
    weights = g if p == 1 else _over(g, result, F)
    if type(g) is numpy.ndarray and has_compiled_loops(self, other, p):
        a, b = _matrices(self, other)
        pairs = in_rows(numpy, weights).reshape(len(a), a.shape[1], b.shape[1])
        found = numpy.stack([_pulls_of(*each, p) for each in zip(pairs, a, b, strict=True)])
        return found.reshape(*weights.shape[:-1], self.shape[-1])
    products = _by_products(self, other) if p == 2 else None
    if products is not None:
        return _pull_by_products(weights, result, *products).reshape(*weights.shape[:-1], self.shape[-1])
    apart = F.unsqueeze(self, -2) - F.unsqueeze(other, -3)
    slope = F.where(apart == apart, F.sgn(apart), apart) if p == 1 else apart  # NaN stays
    return F.sum(F.unsqueeze(weights, -1) * slope, (-2,))


def _pull_by_products(weights: Array, distances: Array, x: Array, y: Array) -> Array:
    a, b = _centred(x, y)
    total, pairs = numpy.empty(a.shape), (len(a), a.shape[1], b.shape[1])
    weights, distances = weights.reshape(pairs), distances.reshape(pairs)
    for batch, rows, squares in _rows(a, b):
        each = weights[batch, rows].astype(float)
        i, j = ((numpy.square(distances[batch, rows], dtype=float) <= squares * _NEAR) & (each != 0)).nonzero()
        near, each[i, j] = each[i, j], 0
        numpy.multiply(a[batch, rows], each.sum(1)[:, None], out=total[batch, rows])
        total[batch, rows] -= each @ b[batch]
        for some, apart in _differences(x[batch, rows], y[batch], i, j):
            numpy.add.at(total[batch, rows], i[some], near[some, None] * apart)
    return total.astype(weights.dtype)


def _cdist_reference(self: Array, other: Array, p: float = 2.0) -> Array:
    apart = self[..., :, None, :] - other[..., None, :, :]
    return numpy.linalg.norm(apart, p, axis=-1)


operator(
    "cdist.rows(Tensor self, Tensor other, float p=2.0)",
    _distances,
    method=False,
    node="CdistBackward0",
    derivatives={
        "self": _pull,
        "other": lambda g, self, other, p, result, F: _pull(
            F.transpose(g, -1, -2), other, self, p, F.transpose(result, -1, -2), F
        ),
    },
    doc="Return the distances between the rows of batches of matrices.",
    samples=lambda make: [
        ((make(4, 3), make(2, 3)), {}),
        ((make(4, 3), make(2, 3), 1.0), {}),
        ((make(2, 1, 3, 2), make(4, 2)), {}),
    ],
    reference=_cdist_reference,
    supports="f",
)
