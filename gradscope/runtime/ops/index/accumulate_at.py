"""``ufunc.at`` for every dtype: CuPy has it for those that a GPU has atomic operations for."""

from __future__ import annotations

from ...memory import device
from ..declaration.annotations import Array, Namespace

__all__ = ["accumulate_at"]

# The dtypes for which CuPy 13 has atomic operations.
_ATOMIC = frozenset(["int32", "uint32", "uint64", "float32", "float64"])
_TAKEN = {"add": _ATOMIC | {"float16"}, "maximum": _ATOMIC, "minimum": _ATOMIC}

_SIGN = 1 << 63


def accumulate_at(xp: Namespace, name: str, target: Array, key: Array, values: Array) -> None:
    """Combine `values` with the places of `target` that an index key names, once for each time it names them.

    Parameters
    ----------
    name : {"add", "maximum", "minimum"}
        The ufunc.
    target : ndarray
        Written to.
    values : ndarray
        Of the dtype of `target`, or one that is converted to it.

    Examples
    --------
    >>> import numpy
    >>> counts = numpy.zeros(3, int)
    >>> accumulate_at(numpy, "add", counts, numpy.array([0, 2, 2]), numpy.array([1, 1, 1]))
    >>> counts
    array([1, 0, 2])
    """
    kind = target.dtype
    if type(target) is device.ndarray or kind.name in _TAKEN[name]:
        getattr(xp, name).at(target, key, values)
    elif kind.kind == "c":
        for part in ("real", "imag"):
            accumulate_at(xp, name, getattr(target, part), key, getattr(values, part))
    elif kind.name == "int64":
        _of_long(xp, name, target, key, values.astype(kind))
    else:
        wide = target.astype("float32" if kind.kind == "f" else "int32")
        getattr(xp, name).at(wide, key, values.astype(wide.dtype))
        target[...] = wide.astype(kind)


def _of_long(xp: Namespace, name: str, target: Array, key: Array, values: Array) -> None:
    """Accumulate int64 as uint64: sums have the same bits, and with the sign flipped the order is the same."""
    bits, given = target.view("uint64"), values.view("uint64")
    if name == "add":
        xp.add.at(bits, key, given)
        return
    sign = xp.uint64(_SIGN)
    flipped = bits ^ sign
    getattr(xp, name).at(flipped, key, given ^ sign)
    bits[...] = flipped ^ sign
