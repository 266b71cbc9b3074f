"""References written out, for operators that no library has: slow, plain, and run by tests alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy

from .annotations import Array, Formula, Gradient, Index, Ints, Operand, Shape, Sizes

__all__ = [
    "adaptive_windows",
    "adjoint",
    "by_lines",
    "columns",
    "convolved",
    "each_matrix",
    "from_library",
    "gathered_at",
    "largest",
    "mean_of",
    "padded",
    "placed",
    "pooled",
    "reduced_losses",
    "reduced_slices",
    "resampled",
    "resampling_matrix",
    "slices_at",
    "solved",
    "windows_along",
]


def adjoint(linear: Callable[[Array], Array], shape: Shape, g: Gradient) -> Gradient:
    """Return what the adjoint of a linear map of arrays of `shape` makes of `g`: its matrix, transposed, times `g`."""
    shape = tuple(shape)
    units = numpy.eye(int(numpy.prod(shape)), dtype=numpy.result_type(g, numpy.float64))
    columns = [linear(unit.reshape(shape)) for unit in units]
    found = numpy.zeros(len(units), dtype=units.dtype)
    for place, column in enumerate(columns):
        taken = column != 0  # of the others 0 times inf would be NaN
        found[place] = (column[taken] * g[taken]).sum()
    return found.reshape(shape)


def by_lines(
    function: Callable[[Array], tuple[Array, ...]], self: Array, dim: int, keepdim: bool | None = None
) -> list[Array]:
    """Return what a function makes of each line along a dimension, put together.

    Parameters
    ----------
    function : callable
        Takes a line; returns a tuple of numbers where `keepdim` is given, and of lines where it is not.
    """
    whole = numpy.moveaxis(numpy.atleast_1d(self), dim, -1)
    results = [function(line) for line in whole.reshape(-1, whole.shape[-1])]
    if not results:
        return [self.copy(), self.astype(numpy.int64)]
    parts = []
    for part in zip(*results):
        lines = numpy.array(part).reshape(*whole.shape[:-1], -1)
        lines = numpy.moveaxis(lines, -1, dim)
        keep = keepdim is not False and self.ndim
        parts.append(lines if keep else lines.reshape(self.shape) if not self.ndim else numpy.squeeze(lines, dim))
    return parts


def from_library(path: str) -> Formula:
    """Return a function of a library by its dotted name, imported now."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def gathered_at(index: Array, dim: int) -> tuple[Array, ...]:
    """Return the index arrays of the elements that ``gather(dim, index)`` takes."""
    places = list(numpy.indices(index.shape))
    places[dim] = index
    return tuple(places)


def slices_at(ndim: int, dim: int, index: Array) -> tuple[Array, ...]:
    """Return the index of the slices that ``index_select(dim, index)`` takes."""
    return (*[slice(None)] * (dim % ndim), numpy.atleast_1d(index))


def placed(array: Array, index: Index, values: Operand, *, add: bool = False) -> Array:
    """Return a copy of `array` with `values` written (or added) at `index`, one after the other."""
    result = numpy.array(array)
    if add:
        numpy.add.at(result, index, values)
    else:
        result[index] = values
    return result


_COMBINES: dict[str, Formula] = {
    "sum": numpy.sum,
    "prod": numpy.prod,
    "mean": numpy.mean,
    "amax": numpy.max,
    "amin": numpy.min,
}


def reduced_slices(
    self: Array, places: Iterable[tuple[Index, Index]], values: Array, reduce: str, include_self: bool
) -> Array:
    """Return a copy of `self` in which the values that go to one place are combined, one place after the other.

    Parameters
    ----------
    places : iterable of (index into `self`, index into `values`)
        In the order in which the values are combined.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    """
    arrivals: dict[Index, list[Array]] = {}
    for target, source in places:
        arrivals.setdefault(target, []).append(values[source])
    result = numpy.array(self)
    for target, arrived in arrivals.items():
        taken = [self[target], *arrived] if include_self else arrived
        result[target] = _COMBINES[reduce](numpy.array(taken))
    return result


def padded(self: Array, padding: Sizes, mode: Literal["constant", "edge", "reflect"], **options: Any) -> Array:
    """Return an array padded (or cut, where a width is negative) as PyTorch writes it: the last dimension first."""
    widths = [(0, 0)] * self.ndim
    for number in range(len(padding) // 2):
        widths[-1 - number] = (padding[2 * number], padding[2 * number + 1])
    found = numpy.pad(self, [(max(0, before), max(0, after)) for before, after in widths], mode, **options)
    cut = (slice(max(0, -before), -max(0, -after) or None) for before, after in widths)
    return found[tuple(cut)]


def columns(self: Array, kernel_size: Ints, dilation: Ints, padding: Sizes, stride: Ints) -> Array:
    """Return the windows of images as columns, one window after the other (Chellapilla et al. 2006, im2col)."""
    images = self if self.ndim == 4 else self[None]
    images = padded(images, (padding[1], padding[1], padding[0], padding[0]), "constant")
    rows, lines = (
        (images.shape[2 + axis] - dilation[axis] * (kernel_size[axis] - 1) - 1) // stride[axis] + 1 for axis in (0, 1)
    )
    found = numpy.empty((images.shape[0], images.shape[1], *kernel_size, rows, lines), dtype=self.dtype)
    for i, j in numpy.ndindex(*kernel_size):
        top, left = i * dilation[0], j * dilation[1]
        window = images[:, :, top : top + rows * stride[0], left : left + lines * stride[1]]
        found[:, :, i, j] = window[:, :, :: stride[0], :: stride[1]]
    found = found.reshape(images.shape[0], -1, rows * lines)
    return found if self.ndim == 4 else found[0]


def solved(A: Array, B: Array, left: bool = True) -> Array:
    """Return X of ``A @ X = B``, or of ``X @ A = B``; B may be a vector, or a batch of them."""
    if not left:
        return numpy.swapaxes(solved(numpy.swapaxes(A, -1, -2), numpy.swapaxes(B, -1, -2)), -1, -2)
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    found = numpy.linalg.solve(A, B[..., None] if vector else B)
    return found[..., 0] if vector else found


def each_matrix(function: Formula, *batches: Array) -> list[Array]:
    """Return what a function of single matrices (the last of `batches` may be vectors) makes of each of a batch."""
    lead = batches[0].shape[:-2]
    results = [function(*(batch[place] for batch in batches)) for place in numpy.ndindex(lead)]
    return [numpy.array(parts).reshape((*lead, *numpy.shape(parts[0]))) for parts in zip(*results)]


def reduced_losses(losses: Array, reduction: int) -> Array:
    """Return losses as they are (0), their mean (1) or their sum (2)."""
    return (lambda x: x, numpy.mean, numpy.sum)[reduction](losses)


def convolved(
    input: Array, weight: Array, bias: Array, stride: Ints, padding: Sizes, dilation: Ints, groups: int
) -> Array:
    """Return a convolution (a cross-correlation), one output position and one group of channels at a time."""
    spatial = len(stride)
    image = padded(input, [width for size in reversed(padding) for width in (size, size)], "constant")
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:])]
    size = [(n - r) // s + 1 for n, r, s in zip(image.shape[2:], reach, stride)]
    result = numpy.zeros((len(input), len(weight), *size), numpy.result_type(input, weight))
    out, taken = len(weight) // groups, weight.shape[1]
    for place in numpy.ndindex(*size):
        window = image[(..., *(slice(i * s, i * s + r, d) for i, s, r, d in zip(place, stride, reach, dilation)))]
        for group in range(groups):
            part = window[:, group * taken : (group + 1) * taken]
            kernel = weight[group * out : (group + 1) * out]
            axes = tuple(range(1, spatial + 2))
            filters = slice(group * out, (group + 1) * out)
            result[(slice(None), filters, *place)] = numpy.tensordot(part, kernel, (axes, axes))
    return result if bias is None else result + bias.reshape(-1, *[1] * spatial)


def pooled(reduce: Callable[[Array, Array], tuple[Array, ...]], self: Array, windows: list[list[range]]) -> list[Array]:
    """Return what a function makes of the elements in each window of the last dimensions.

    Parameters
    ----------
    reduce : callable
        Takes the places of a window and the array's elements there, a row for each of the leading dimensions.
    windows : list of list of range
        For each dimension, the indices that each of its windows covers.
    """
    size = [len(ranges) for ranges in windows]
    lead = self.shape[: self.ndim - len(windows)]
    places = numpy.arange(int(numpy.prod(self.shape[len(lead) :]))).reshape(self.shape[len(lead) :])
    flat = self.reshape(int(numpy.prod(lead)), places.size)
    parts = []
    for window in numpy.ndindex(*size):
        inside = places[numpy.ix_(*(ranges[i] for ranges, i in zip(windows, window)))].reshape(-1)
        parts.append(reduce(inside, flat[:, inside]))
    return [numpy.stack(part, -1).reshape(*lead, *size) for part in zip(*parts)]


def windows_along(size: int, kernel: int, stride: int, padding: int, dilation: int, hangs_over: bool) -> list[range]:
    """Return what each window covers of a dimension and its padding; the last one may hang over (`hangs_over`)."""
    reach = dilation * (kernel - 1) + 1
    room = size + 2 * padding - reach
    count = (-(-room // stride) if hangs_over else room // stride) + 1
    starts = [i * stride - padding for i in range(count) if i * stride < size + padding]
    return [range(start, start + reach, dilation) for start in starts]


def adaptive_windows(shape: Shape, output_size: Sizes) -> list[list[range]]:
    """Return the windows of adaptive pooling: as even as may be, from ``floor(i n / m)`` to ``ceil((i + 1) n / m)``."""
    return [[range(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(shape, output_size)]


def mean_of(places: Array, values: Array) -> tuple[Array]:
    """Return the means of rows."""
    return (values.mean(1),)


def largest(places: Array, values: Array) -> tuple[Array, Array]:
    """Return the largest values of rows, NaN before all, and where they are: the first of equal ones, the last NaN."""
    nan = numpy.isnan(values)
    last = values.shape[1] - 1 - nan[:, ::-1].argmax(1)
    best = numpy.where(nan.any(1), last, numpy.where(nan, -numpy.inf, values).argmax(1))
    return values[numpy.arange(len(values)), best], places[best]


def resampled(self: Array, matrices: list[Array]) -> Array:
    """Return an array whose last dimensions have each been multiplied by a matrix."""
    for number, matrix in enumerate(reversed(matrices)):
        moved = numpy.moveaxis(self, -1 - number, -1)
        columns = [sum_of_taken(moved, row) for row in matrix]
        self = numpy.moveaxis(numpy.stack(columns, -1), -1, -1 - number)
    return self


def resampling_matrix(kind: str, n: int, m: int, align_corners: bool, scale: float | None) -> Array:
    """Return the weights with which each of `m` outputs takes the `n` inputs, by the definition of the kernel.

    Keys 1981 for cubics (a = -0.75, and -0.5 where the kernel is widened), Duchon 1979 for Lanczos' kernel.
    """
    step = 1 / scale if scale else n / m
    if align_corners:
        step = (n - 1) / (m - 1) if m > 1 else 0
    matrix = numpy.zeros((m, n))
    for i in range(m):
        if kind.startswith("nearest"):
            matrix[i, min(int(numpy.float32(i + 0.5 * (kind == "nearest_exact")) * numpy.float32(step)), n - 1)] = 1
        elif kind.endswith("_aa"):
            matrix[i] = _widened_weights(kind.removesuffix("_aa"), n, (i + 0.5) * step, max(step, 1))
        else:
            at = i * step if align_corners else (i + 0.5) * step - 0.5
            at = max(at, 0) if kind == "linear" else at
            for j in range(int(numpy.floor(at)) - 1, int(numpy.floor(at)) + 3):
                matrix[i, min(max(j, 0), n - 1)] += _kernel(kind, at - j, -0.75)
    return matrix


def _widened_weights(kind: str, n: int, centre: float, width: float) -> Array:
    reach = {"linear": 1, "cubic": 2, "lanczos": 3}[kind] * width
    weights = numpy.zeros(n)
    for j in range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), n)):
        weights[j] = _kernel(kind, (j - centre + 0.5) / width, -0.5)
    return weights / weights.sum()


def _kernel(kind: str, x: float, a: float) -> float:
    x = abs(x)
    if kind == "linear":
        return max(0.0, 1 - x)
    if kind == "lanczos":
        return float(numpy.sinc(x) * numpy.sinc(x / 3)) if x < 3 else 0.0
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def sum_of_taken(lines: Array, weights: Array) -> Array:
    """Return the weighted sum of the last dimension; what weighs nothing is left out, were it infinite."""
    taken = weights != 0
    return (lines[..., taken] * weights[taken]).sum(-1)
