"""References written out, for operators that no library has: slow, plain, and run by tests alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

__all__ = ["adjoint", "placed"]


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


def placed(array: Any, index: Any, values: Any, *, add: bool = False) -> Any:
    """Return a copy of `array` with `values` written (or added) at `index`, one after the other."""
    result = numpy.array(array)
    if add:
        numpy.add.at(result, index, values)
    else:
        result[index] = values
    return result
