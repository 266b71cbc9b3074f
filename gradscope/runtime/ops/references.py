"""References written out, for operators that no library has: slow, plain, and run by tests alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy

__all__ = [
    "adjoint",
    "by_lines",
    "columns",
    "each_matrix",
    "from_library",
    "gathered_at",
    "padded",
    "placed",
    "reduced_losses",
    "reduced_slices",
    "slices_at",
    "solved",
]


def adjoint(linear: Callable[[Any], Any], shape: Any, g: Any) -> Any:
    """Return what the adjoint of a linear map of arrays of `shape` makes of `g`: its matrix, transposed, times `g`."""
    shape = tuple(shape)
    units = numpy.eye(int(numpy.prod(shape)), dtype=numpy.result_type(g, numpy.float64))
    columns = [linear(unit.reshape(shape)) for unit in units]
    found = numpy.zeros(len(units), dtype=units.dtype)
    for place, column in enumerate(columns):
        taken = column != 0  # of the others 0 times inf would be NaN
        found[place] = (column[taken] * g[taken]).sum()
    return found.reshape(shape)


def by_lines(function: Callable[[Any], Any], self: Any, dim: int, keepdim: bool | None = None) -> list[Any]:
    """Return what a function makes of each line along a dimension, put together.

    Parameters
    ----------
    function : callable
        Takes a line; returns a tuple of numbers where `keepdim` is given, and of lines where it is not.
    self : array
    dim : int
    keepdim : bool, optional
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


def from_library(path: str) -> Any:
    """Return a function of a library by its dotted name, imported now."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def gathered_at(index: Any, dim: int) -> tuple[Any, ...]:
    """Return the index arrays of the elements that ``gather(dim, index)`` takes."""
    places = list(numpy.indices(index.shape))
    places[dim] = index
    return tuple(places)


def slices_at(ndim: int, dim: int, index: Any) -> tuple[Any, ...]:
    """Return the index of the slices that ``index_select(dim, index)`` takes."""
    return (*[slice(None)] * (dim % ndim), numpy.atleast_1d(index))


def placed(array: Any, index: Any, values: Any, *, add: bool = False) -> Any:
    """Return a copy of `array` with `values` written (or added) at `index`, one after the other."""
    result = numpy.array(array)
    if add:
        numpy.add.at(result, index, values)
    else:
        result[index] = values
    return result


def reduced_slices(self: Any, places: Any, values: Any, reduce: str, include_self: bool) -> Any:
    """Return a copy of `self` in which the values that go to one place are combined, one place after the other.

    Parameters
    ----------
    self, values : array
    places : iterable of (index into `self`, index into `values`)
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    include_self : bool
    """
    arrivals: dict[Any, list[Any]] = {}
    for target, source in places:
        arrivals.setdefault(target, []).append(values[source])
    combine: Any = {"sum": numpy.sum, "prod": numpy.prod, "mean": numpy.mean, "amax": numpy.max, "amin": numpy.min}[
        reduce
    ]
    result = numpy.array(self)
    for target, arrived in arrivals.items():
        taken = [self[target], *arrived] if include_self else arrived
        result[target] = combine(numpy.array(taken))
    return result


def padded(self: Any, padding: Any, mode: str) -> Any:
    """Return an array padded (or cut, where a width is negative) as PyTorch writes it: the last dimension first."""
    widths = [(0, 0)] * self.ndim
    for number in range(len(padding) // 2):
        widths[-1 - number] = (padding[2 * number], padding[2 * number + 1])
    found = numpy.pad(self, [(max(0, before), max(0, after)) for before, after in widths], mode)  # type: ignore[call-overload]
    cut = (slice(max(0, -before), -max(0, -after) or None) for before, after in widths)
    return found[tuple(cut)]


def columns(self: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
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


def solved(A: Any, B: Any, left: bool = True) -> Any:
    """Return X of ``A @ X = B``, or of ``X @ A = B``; B may be a vector, or a batch of them."""
    if not left:
        return numpy.swapaxes(solved(numpy.swapaxes(A, -1, -2), numpy.swapaxes(B, -1, -2)), -1, -2)
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    found = numpy.linalg.solve(A, B[..., None] if vector else B)
    return found[..., 0] if vector else found


def each_matrix(function: Callable[..., Any], *batches: Any) -> list[Any]:
    """Return what a function of single matrices (the last of `batches` may be vectors) makes of each of a batch."""
    lead = batches[0].shape[:-2]
    results = [function(*(batch[place] for batch in batches)) for place in numpy.ndindex(lead)]
    return [numpy.array(parts).reshape((*lead, *numpy.shape(parts[0]))) for parts in zip(*results)]


def reduced_losses(losses: Any, reduction: int) -> Any:
    """Return losses as they are (0), their mean (1) or their sum (2)."""
    return (lambda x: x, numpy.mean, numpy.sum)[reduction](losses)
