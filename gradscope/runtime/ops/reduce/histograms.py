"""Histograms of one and of several variables."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence

import numpy

from ...memory import device as devices
from ...memory.dtype import finfo, scalar_type
from ...memory.elements import as_element
from ...tensor import creation
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Namespace, Results, Sizes
from ..declaration.registry import not_implemented, operator, public
from ..execution.array_errors import refuse_kinds
from ..execution.inplace_and_out import into
from ..linalg.lu import into_each

_Histogram = namedtuple("histogram", ["hist", "bin_edges"])  # type: ignore[name-match]
_NAME = "gradscope.histogramdd"  # so PyTorch's messages call it, of histogram() too
_HistogramDD = namedtuple("histogramdd", ["hist", "bin_edges"])  # type: ignore[name-match]


def _counts(xp: Namespace, self: Array, weight: Array, edges: tuple[Array, ...], density: bool) -> Array:
    """Return how many points, or what weight of them, lies in each bin; `self` has a point in each row."""
    sizes = [edge.shape[0] - 1 for edge in edges]
    total = math.prod(sizes)
    place, inside = xp.zeros(self.shape[0], dtype="int64"), xp.ones(self.shape[0], dtype=bool)
    for column, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        x = xp.ascontiguousarray(self[:, column])
        inside &= (x >= edge[0]) & (x <= edge[-1])
        own = xp.minimum(xp.searchsorted(edge, x, side="right") - 1, size - 1)  # the last bin has its upper edge too
        place = place * size + own
    # What lies outside is counted in one bin more.
    found = xp.bincount(xp.where(inside, place, total), weights=weight, minlength=total + 1)[:total]
    found = found.astype(self.dtype).reshape(sizes)
    if density:
        found = found / found.sum()
        for column, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            found = found / widths.reshape([-1 if axis == column else 1 for axis in range(len(edges))])
    return found


_count = operator(
    "histogramdd.edges(Tensor self, Tensor? weight, array[] edges, bool density)",
    lambda xp, self, weight, edges, density: _counts(xp, self, weight, edges, density),
    method=False,
    node="NotImplemented",
    derivatives=not_implemented("histogramdd", "self", "weight"),
    doc="Return the histogram of the points in the rows of `self`, given the edges of the bins.",
).function


def _points(self: Array, weight: Array) -> tuple[Tensor, Tensor | None]:
    """Return the points as rows, and their weights as a vector, after PyTorch's checks."""
    refuse_kinds("histogramdd", self._array, "biuc")
    if weight is not None:
        if weight.dtype is not self.dtype:
            kinds = scalar_type(self._dtype).lower(), scalar_type(weight._dtype).lower()
            raise RuntimeError(
                f"{_NAME}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
                f"but got input({kinds[0]}), and weight({kinds[1]})"
            )
        if weight.shape != self.shape[:-1]:
            raise RuntimeError(
                f"{_NAME}: if weight tensor is provided it should have the same shape as the input tensor excluding "
                f"its innermost dimension, but got input with shape {list(self.shape)} and weight with shape "
                f"{list(weight.shape)}"
            )
        weight = weight.reshape(-1)
    return self.reshape(-1, self.shape[-1]), weight


def _given_edges(self: Array, bins: Sequence[Tensor]) -> list[Tensor]:
    """Return the edges that a caller gave."""
    for axis, edge in enumerate(bins):
        if edge.dim() != 1:
            raise RuntimeError(
                f"{_NAME}: bins tensor should have one dimension, but got {edge.dim()} dimensions in the bins tensor "
                f"for dimension {axis}"
            )
        if edge.dtype is not self.dtype:
            kinds = scalar_type(self._dtype).lower(), scalar_type(edge._dtype).lower()
            raise RuntimeError(
                f"{_NAME}: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{kinds[0]} and bins for dimension {axis} with dtype {kinds[1]}"
            )
        _check_bins(edge.shape[0] - 1, axis)
    return list(bins)


def _check_bins(count: int, axis: int) -> None:
    if count <= 0:
        raise RuntimeError(
            f"gradscope.histogram(): bins must be > 0, but got {max(count, 0)} for dimension {axis}\n"
            "Give a number of bins, or two edges at least."
        )


def _even_edges(points: Tensor, bins: Sequence[int], range: Sequence[float] | None) -> list[Tensor]:
    """Return edges at even distances over a range, or over that of all points."""
    if range is not None and len(range) != 2 * len(bins):
        raise RuntimeError(
            f"{_NAME}: for a {len(bins)}-dimensional histogram range should have {2 * len(bins)} elements, but got "
            f"{len(range)}"
        )
    found = []
    for axis, count in enumerate(bins):
        _check_bins(count, axis)
        low, high = range[2 * axis : 2 * axis + 2] if range is not None else _limits(points._array[:, axis])
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(
                f"{_NAME}: dimension {axis}'s range [{low:g}, {high:g}] is not finite\n"
                "Give a range=, or take infinities and NaN out of the tensor."
            )
        if low > high:
            text = f"but got min {low:g} max {high:g} for dimension {axis}"
            raise RuntimeError(f"{_NAME}: min should not exceed max, {text}\nGive the lower edge first.")
        if low == high:
            low, high = low - 0.5, high + 0.5
        found.append(creation.linspace(low, high, count + 1, dtype=points.dtype, device=points.device))
    return found


def _limits(array: Array) -> tuple[float, float]:
    """Return the least and the greatest number; 0 and 1 if there is none."""
    if not array.size:
        return 0.0, 1.0
    return float(devices.to_host(array.min())), float(devices.to_host(array.max()))


@public
def histogram(
    self: Tensor,
    bins: int | Tensor,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Tensor | None = None,
) -> Results:
    """Return how many elements lie in each bin, and the edges of the bins.

    Parameters
    ----------
    self : Tensor
        Of any shape, in floating point. There is no gradient.
    bins : int or Tensor
        The number of bins of one width, or their edges in rising order. The last bin holds its upper edge too.
    range : tuple of float, optional
        The lowest and highest edge of `bins` bins; those of all elements unless given.
    weight : Tensor, optional
        What each element counts; of the shape of `self`.
    density : bool
        Return the density: the integral over all bins is 1.

    Returns
    -------
    histogram
        A named tuple of hist and bin_edges.

    Raises
    ------
    RuntimeError
        If there are no bins, the range is not finite, or shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.histogram(gs.tensor([1.0, 2.0, 2.5, 4.0]), 3, range=(1.0, 4.0)).hist
    tensor([1., 2., 1.])
    """
    flat = None if weight is None else weight.reshape(-1)
    points, weight = _points(self.reshape(-1, 1), flat)
    if isinstance(bins, int):
        edges = _even_edges(points, [bins], range)
    else:
        edges = _given_edges(self, [bins])
    found = _Histogram(_count(points, weight, tuple(e._array for e in edges), density), edges[0])
    return found if out is None else into_each(out, "histogram", [self], found)


@public(method=False)
def histogramdd(
    self: Tensor,
    bins: Sizes,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Results:
    """Return how many points lie in each bin of several variables, and the edges of the bins of each.

    Parameters
    ----------
    self : Tensor
        Points of N coordinates, of shape (..., N) in floating point. There is no gradient.
    bins : int or sequence of int or sequence of Tensor
        For each coordinate, the number of bins of one width, or their edges in rising order.
    range : sequence of float, optional
        The lowest and highest edge for each coordinate in turn; those of all points unless given.
    weight : Tensor, optional
        What each point counts; of the shape of `self` without its last dimension.
    density : bool
        Return the density: the integral over all bins is 1.

    Returns
    -------
    histogramdd
        A named tuple of hist, of N dimensions, and bin_edges, a tuple of N tensors.

    Raises
    ------
    RuntimeError
        If there are no bins, a range is not finite, or shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> points = gs.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> gs.histogramdd(points, bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    if self.dim() < 2:
        raise RuntimeError(f"{_NAME}: input tensor should have at least 2 dimensions\nIts shape is {list(self.shape)}.")
    bins = [bins] * self.shape[-1] if isinstance(bins, int) else list(bins)
    if len(bins) != self.shape[-1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input.\n"
            f"They are {len(bins)} and {self.shape[-1]}."
        )
    points, weight = _points(self, weight)
    given = all(isinstance(count, int) for count in bins)
    edges = _even_edges(points, bins, range) if given else _given_edges(self, bins)
    return _HistogramDD(_count(points, weight, tuple(edge._array for edge in edges), density), tuple(edges))


@public
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """Return how many elements lie in each of `bins` equal parts of [min, max].

    Parameters
    ----------
    self : Tensor
        Of any shape, in floating point. There is no gradient.
    bins : int
        The number of bins; the last one holds its upper edge too.
    min, max : float
        The range; that of all elements where the two are equal.

    Returns
    -------
    Tensor
        Of shape (bins,), in the dtype of `self`.

    Raises
    ------
    NotImplementedError
        If the elements are not in floating point.
    RuntimeError
        If there are no bins, the range is not finite, or `max` is below `min`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.histc(gs.tensor([1.0, 2.0, 2.5, 4.0]), 3)
    tensor([1., 2., 1.])
    """
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    if out is not None:
        return into(out, "histc", [self], lambda: histc(self, bins, min, max))
    refuse_kinds("histogram_cpu", self._array, "biuc")
    low, high = _range(self._array, float(min), float(max))
    xp = devices.array_module(self._array)
    counts = xp.bincount(_even_places(xp, self, low, high, bins), minlength=bins)
    return self.__class__._wrap(counts.astype(self._dtype))


def _range(array: Array, low: float, high: float) -> tuple[float, float]:
    """Return the edges of a histogram as elements of the array."""
    if low == high:
        low, high = _limits(array)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"gradscope.histc: range of [{low:g}, {high:g}] is not finite\n"
            "Give min= and max=, or take infinities and NaN out of the tensor."
        )
    if low > high:
        raise RuntimeError(f"gradscope.histc: max must be larger than min\nThey are {high:g} and {low:g}.")
    if low == high:
        low, high = low - 1, high + 1
    low, high = _rounded(array, as_element(low, array), as_element(high, array))
    return low, high


def _rounded(array: Array, *numbers: float) -> list[float]:
    """Return numbers as they are in the precision of an array."""
    return numpy.array(numbers, float).astype(array.dtype).astype(float).tolist()


def _even_places(xp: Namespace, self: Array, low: float, high: float, bins: int) -> Array:
    """Return in which of the bins each element between the edges lies."""
    x = self._array.reshape(-1)
    x = x[(x >= low) & (x <= high)]
    # PyTorch rounds to the precision of the elements at each step. What would overflow is in double precision here.
    if max(high - low, 1.0) * bins > finfo(self.dtype).max:
        x, low, high = x.astype("float64") / (2 * bins), low / (2 * bins), high / (2 * bins)
    count, width = _rounded(x, bins, high - low)
    return xp.minimum(((x - low) * count / width).astype("int64"), bins - 1)
