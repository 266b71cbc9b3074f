"""References written out, for operators that no library has: slow, plain, and run by tests alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

__all__ = ["adjoint", "by_lines", "gathered_at", "placed", "reduced_slices", "slices_at"]


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
