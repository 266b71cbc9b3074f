"""A part of a tensor, an element that is looked for, two tensors compared: nothing of a large tensor need be copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from .records import Index, TensorPage

__all__ = ["MEASURES", "SOUGHT", "compare", "find_element", "flat_page", "page_of"]

MEASURES = ("difference", "relative error")
"""What two tensors can be compared by."""

SOUGHT = ("not finite", "largest", "smallest")
"""What can be looked for in a tensor."""

LARGEST_PAGE = 1 << 20

_BLOCK = 1 << 20


def page_of(array: Any, index: Sequence[Index], against: Any = None, measure: str = "") -> TensorPage:
    """Return some numbers of an array.

    Parameters
    ----------
    array : ndarray
        Of any numeric or boolean dtype.
    index : sequence of int or (int, int)
        For each dimension one place, or where the page begins and ends there; what goes beyond the end is cut.
    against : ndarray, optional
        Of the same shape: what it is compared with.
    measure : str
        By what, one of `MEASURES`.

    Raises
    ------
    ValueError
        If the page does not fit the array, or the two arrays do not fit each other.

    Examples
    --------
    >>> import numpy
    >>> page_of(numpy.arange(12.0).reshape(3, 4), (1, (1, 3))).values
    (5.0, 6.0)
    """
    if len(index) != array.ndim:
        raise ValueError(f"a page of a tensor of shape {array.shape} has {array.ndim} places, got {len(index)}")
    where = tuple(_place(place, size) for place, size in zip(index, array.shape))
    part = array[where]
    if part.size > LARGEST_PAGE:
        raise ValueError(f"a page has at most {LARGEST_PAGE:,} elements, this one would have {part.size:,}")
    if against is not None:
        _check_shapes(array, against)
        part = compare(part, against[where], measure)
    return TensorPage(tuple(array.shape), part.dtype.name, _numbers(part))


def _place(place: Index, size: int) -> int | slice:
    if not isinstance(place, int):
        return slice(max(0, place[0]), max(0, place[1]))
    if not 0 <= place < size:
        raise ValueError(f"there is no place {place} in a dimension of {size}")
    return place


def flat_page(array: Any, start: int, stop: int) -> TensorPage:
    """Return the elements from `start` to `stop`, in C order.

    Raises
    ------
    ValueError
        If `stop` lies before `start`, or the page is too large.
    """
    if not 0 <= start <= stop <= start + LARGEST_PAGE:
        raise ValueError(f"a page has 0 to {LARGEST_PAGE:,} elements, got {start} to {stop}")
    return TensorPage(tuple(array.shape), array.dtype.name, _numbers(array.flat[start:stop]))


def _numbers(part: Any) -> tuple[Any, ...]:
    numbers = part.reshape(-1).tolist()
    return tuple((number.real, number.imag) for number in numbers) if part.dtype.kind == "c" else tuple(numbers)


def compare(left: Any, right: Any, measure: str) -> Any:
    """Return how two arrays differ, element by element.

    Parameters
    ----------
    measure : str
        ``'difference'``, `left` less `right`, or ``'relative error'``: the magnitude of the difference, divided by the
        larger of the two magnitudes; 0 where both are equal.

    Returns
    -------
    ndarray
        Of float64 or complex128.

    Examples
    --------
    >>> import numpy
    >>> compare(numpy.array([1.0, 0.0, 2.0]), numpy.array([2.0, 0.0, 2.0]), "relative error").tolist()
    [0.5, 0.0, 0.0]
    """
    if measure not in MEASURES:
        raise ValueError(f"tensors are compared by {' or '.join(MEASURES)}, got {measure!r}")
    _check_shapes(left, right)
    wide = numpy.complex128 if "c" in (left.dtype.kind, right.dtype.kind) else numpy.float64
    one, other = left.astype(wide), right.astype(wide)
    with numpy.errstate(all="ignore"):
        difference = one - other
        if measure == "difference":
            return difference
        error = numpy.abs(difference) / numpy.maximum(numpy.abs(one), numpy.abs(other))
    return numpy.where(one == other, 0.0, error)


def _check_shapes(left: Any, right: Any) -> None:
    if left.shape != right.shape:
        raise ValueError(
            f"tensors of shapes {left.shape} and {right.shape} cannot be compared\nCompare with one of the same shape."
        )


def find_element(array: Any, sought: str, after: int = -1, against: Any = None, measure: str = "") -> int | None:
    """Return the place of an element, in C order; None if there is none.

    Parameters
    ----------
    sought : str
        ``'not finite'``: the next NaN or infinity after the element `after`, or else the first one; ``'largest'``: the
        first of the largest magnitude, NaN left out; ``'smallest'``: of the smallest that is not zero.
    against, measure
        As for :func:`page_of`.

    Examples
    --------
    >>> import numpy
    >>> values = numpy.array([[0.5, numpy.nan], [-3.0, 0.0]])
    >>> [find_element(values, sought) for sought in SOUGHT]
    [1, 2, 0]
    """
    if sought not in SOUGHT:
        raise ValueError(f"what is looked for is one of {', '.join(SOUGHT)}, got {sought!r}")
    if against is not None:
        _check_shapes(array, against)
    blocks = _blocks(array, against, measure)
    return _next_not_finite(blocks, after) if sought == "not finite" else _extreme(blocks, sought == "largest")


def _blocks(array: Any, against: Any, measure: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements in C order, some at a time, each time with the place of the first."""
    for start in range(0, array.size, _BLOCK):
        part = array.flat[start : start + _BLOCK]
        yield start, part if against is None else compare(part, against.flat[start : start + _BLOCK], measure)


def _next_not_finite(blocks: Iterator[tuple[int, Any]], after: int) -> int | None:
    first = None
    for start, part in blocks:
        found = numpy.flatnonzero(~numpy.isfinite(part)) + start
        if found.size and first is None:
            first = int(found[0])
        later = found[found > after]
        if later.size:
            return int(later[0])
    return first


def _extreme(blocks: Iterator[tuple[int, Any]], largest: bool) -> int | None:
    best, place = None, None
    for start, part in blocks:
        magnitudes = numpy.abs(part.astype(numpy.complex128 if part.dtype.kind == "c" else numpy.float64))
        compared = numpy.flatnonzero(~numpy.isnan(magnitudes) if largest else magnitudes > 0)
        if not compared.size:
            continue
        here = compared[magnitudes[compared].argmax() if largest else magnitudes[compared].argmin()]
        value = float(magnitudes[here])
        if best is None or (value > best if largest else value < best):
            best, place = value, start + int(here)
    return place
