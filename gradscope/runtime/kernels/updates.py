"""Which steps of optimizers are taken in one compiled pass over memory, in the place of several of NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import cuda_kernels, loading, threads

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["LEAST", "run", "vectors"]

LEAST = 1 << 15
"""Elements of all arrays together from which on one pass is worth the call."""


def vectors(*arrays: Array) -> list[Array] | None:
    """Return arrays as vectors of the same memory; None where they are not for a compiled pass.

    Parameters
    ----------
    *arrays : ndarray
        A parameter, its gradient, which is only read, and what the optimizer keeps of it: of one shape.

    Examples
    --------
    >>> vectors(numpy.zeros(8, "f")) is None, vectors(numpy.zeros((128, 64))) is None
    (True, True)
    """
    first = arrays[0]
    if type(first) is not numpy.ndarray:
        return [array.reshape(-1) for array in arrays] if cuda_kernels.take_alike(arrays) else None
    if first.size * len(arrays) < LEAST or loading.compiled("update_loops") is None:
        return None
    if not all(_fits(array, first) for array in arrays) or not all(a.flags.writeable for a in (first, *arrays[2:])):
        return None
    return [array.reshape(-1) for array in arrays]


def _fits(array: Any, first: Array) -> bool:
    if type(array) is not numpy.ndarray or array.dtype.char != "f" or not array.dtype.isnative:
        return False
    return array.shape == first.shape and array.flags.c_contiguous and array.flags.aligned


def run(name: str, arrays: Sequence[Array], *numbers: float) -> None:
    """Take a step: the arrays are changed in place.

    Parameters
    ----------
    name : str
        The kernel: a function of `compiled.update_loops`.
    arrays : sequence of ndarray
        From :func:`vectors`.
    *numbers : float
        What it is given after them.
    """
    if type(arrays[0]) is not numpy.ndarray:
        cuda_kernels.step(name, arrays, numbers)
        return
    loop = getattr(loading.compiled("update_loops"), name)
    threads.over(arrays[0].size, lambda part: loop(*[array[part] for array in arrays], *numbers))
