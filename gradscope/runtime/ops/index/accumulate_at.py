"""``ufunc.at`` for every dtype: CuPy has it for those that a GPU has atomic operations for."""

from __future__ import annotations

from ...memory import device
from ..declaration.annotations import Array, DType, Namespace

__all__ = ["accumulate_at"]

# The dtypes for which CuPy has atomic operations. Its extremes of floats are fmaxf() and fminf(), also of doubles (in
# 14.2), which are rounded to single precision by that, and lose a NaN.
_INTEGERS = frozenset(["int32", "uint32", "uint64"])
_TAKEN = {"add": _INTEGERS | {"float16", "float32", "float64"}, "maximum": _INTEGERS, "minimum": _INTEGERS}

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
    elif kind.name in ("float32", "float64"):
        _extremes_of_floats(xp, name, target, key, values.astype(kind))
    elif kind.kind == "f":
        wide = target.astype("float32")
        accumulate_at(xp, name, wide, key, values)
        target[...] = wide.astype(kind)
    else:
        wide = target.astype("int32")
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


def _extremes_of_floats(xp: Namespace, name: str, target: Array, key: Array, values: Array) -> None:
    """Find extremes of floats as integers in the same order; a NaN among the values is the extreme."""
    ordered = _in_order(xp, target)
    getattr(xp, name).at(ordered, key, _in_order(xp, values))
    spoilt = xp.isnan(target).astype("int32")
    xp.maximum.at(spoilt, key, xp.isnan(values).astype("int32"))
    target[...] = xp.where(spoilt > 0, xp.nan, _from_order(xp, ordered, target.dtype))


def _in_order(xp: Namespace, array: Array) -> Array:
    """Return unsigned integers in the order of floats: with the sign bit set, or all bits turned where it is."""
    bits = array.view(f"uint{8 * array.itemsize}")
    sign = bits.dtype.type(1 << (8 * array.itemsize - 1))
    return xp.where((bits & sign) != 0, ~bits, bits | sign)


def _from_order(xp: Namespace, ordered: Array, kind: DType) -> Array:
    sign = ordered.dtype.type(1 << (8 * ordered.itemsize - 1))
    return xp.where((ordered & sign) != 0, ordered ^ sign, ~ordered).view(kind)
