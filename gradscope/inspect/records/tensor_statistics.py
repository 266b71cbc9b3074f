"""A tensor in numbers: norm, range, zeros, NaN and Inf, and how its magnitudes are distributed."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Iterable
from typing import Any

import numpy

from .records import TensorSummary

__all__ = ["combined_norm", "count_bad", "dot_in_pieces", "norm_of", "quick_norm", "quick_norm_of_row", "summarize"]

_PREVIEW = 6


def summarize(
    array: Any, name: str = "", *, dtype: str = "", device: str = "cpu", shape: tuple[int, ...] | None = None
) -> TensorSummary:
    """Return the summary of an array.

    Parameters
    ----------
    array : array_like
        Of any numeric or boolean dtype and any shape. A tensor is read through ``__array__``.
    name : str
        What to call it.
    dtype : str, optional
        The framework's name of the dtype, where NumPy's is another.
    device : str
        Where the tensor lives (the array itself is on the host).
    shape : tuple of int, optional
        The tensor's, where the array has not all of its elements (nested, huge and sparse, or without values).

    See Also
    --------
    plot_histogram

    Examples
    --------
    >>> import numpy
    >>> s = summarize(numpy.array([3.0, -4.0, 0.0, numpy.nan]), "grad")
    >>> s.nans, s.zeros, s.min, s.max, s.histogram, s.norm
    (1, 1, -4.0, 3.0, ((1, 1), (2, 1)), nan)
    """
    values = numpy.asarray(array)
    facts: dict[str, Any] = {
        "name": name,
        "shape": tuple(values.shape) if shape is None else shape,
        "dtype": dtype or values.dtype.name,
        "device": device,
        "numel": int(values.size),
        "nbytes": int(values.nbytes),
        "preview": _preview(values),
    }
    with numpy.errstate(all="ignore"):
        facts.update(_numbers(values))
    return TensorSummary(**facts)


def _numbers(values: Any) -> dict[str, Any]:
    magnitudes = _magnitudes(values)
    signed = magnitudes if values.dtype.kind == "c" else _wide(values)
    finite = numpy.isfinite(magnitudes)
    good = magnitudes.size if finite.all() else int(numpy.count_nonzero(finite))
    nans = 0 if good == magnitudes.size else int(numpy.count_nonzero(numpy.isnan(magnitudes)))
    if good != magnitudes.size:
        signed, kept = signed[finite], magnitudes[finite]
    else:
        kept = magnitudes.reshape(-1)
    histogram, zeros = _histogram(kept)
    some = bool(good)
    mean = _mean(signed) if some else None
    return {
        "norm": _norm(magnitudes),
        "min": float(signed.min()) if some else None,
        "max": float(signed.max()) if some else None,
        "mean": mean,
        "std": _std(signed, mean) if mean is not None else None,
        "zeros": zeros,
        "nans": nans,
        "infs": magnitudes.size - good - nans,
        "histogram": histogram,
        "negatives": None if values.dtype.kind == "c" else _histogram(-signed[signed < 0])[0],
    }


def _wide(values: Any) -> Any:
    """Return the values as float64: enough for every sum below, and wide enough not to overflow float32's squares."""
    return values if values.dtype == numpy.float64 else values.astype(numpy.float64)


def _magnitudes(values: Any) -> Any:
    return numpy.abs(values.astype(numpy.complex128) if values.dtype.kind == "c" else _wide(values))


# A sum of squares between these has lost none of them to float64's range, and needs no look at the largest.
_LEAST_SQUARES, _MOST_SQUARES = 1e-280, 1e300


def _norm(magnitudes: Any) -> float:
    if not magnitudes.size:
        return 0.0
    largest = float(magnitudes.max())
    if not 1e150 > largest > 1e-150:  # its square leaves float64's range, or it is 0, Inf or NaN
        if largest == 0.0 or not numpy.isfinite(largest):
            return largest
        scaled = (magnitudes / largest).reshape(-1)
        return largest * float(numpy.sqrt(dot_in_pieces(scaled, scaled)))
    flat = magnitudes.reshape(-1)
    return float(numpy.sqrt(dot_in_pieces(flat, flat)))


def _mean(values: Any) -> float:
    mean = float(values.mean())
    # The sum can overflow where the mean does not.
    return mean if numpy.isfinite(mean) else float((values / values.size).sum())


def _std(values: Any, mean: float) -> float:
    deviation: float = _norm(numpy.abs(values - mean)) / float(values.size) ** 0.5
    return deviation


def _histogram(magnitudes: Any) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the counts by power of two of the non-zero magnitudes, and how many are zero."""
    nonzero = magnitudes[magnitudes != 0]
    zeros = int(magnitudes.size - nonzero.size)
    if not nonzero.size:
        return (), zeros
    exponents = numpy.frexp(nonzero)[1] - 1
    lowest = int(exponents.min())
    counts = numpy.bincount(exponents - lowest)
    return tuple((lowest + i, int(n)) for i, n in enumerate(counts.tolist()) if n), zeros


def _preview(values: Any) -> str:
    first = values.flat[:_PREVIEW]
    text = ", ".join(_element(v) for v in first.tolist())
    return f"[{text}{', ...' if values.size > _PREVIEW else ''}]"


def _element(value: Any) -> str:
    if isinstance(value, (float, complex)):
        return f"{value:.4g}"
    return str(value)


_PIECE = 8_192

# NumPy's errstate() would be entered and left in Python.
_unwarned = contextvars.Context()
_unwarned.run(numpy.seterr, all="ignore")


def dot_in_pieces(one: numpy.ndarray, two: numpy.ndarray) -> float:
    """Return a dot product in pieces so short that no BLAS sets other threads to them, which would spin on.

    It does not warn where that leaves the range of the dtype.

    Examples
    --------
    >>> dot_in_pieces(numpy.ones(10_000), numpy.full(10_000, 2.0))
    20000.0
    """
    size = one.size
    if size <= _PIECE:
        return float(numpy.vdot(one, two))  # unlike dot() it does not warn
    whole = size - size % _PIECE
    left = one[:whole].reshape(-1, _PIECE)
    right = left if two is one else two[:whole].reshape(-1, _PIECE)
    pieces = _unwarned.copy().run(numpy.vecdot, left, right)
    total = float(sum(pieces.tolist()))  # they are few, and Python's numbers are float64
    return total if whole == size else total + float(numpy.vdot(one[whole:], two[whole:]))


def norm_of(array: Any) -> float:
    """Return the 2-norm of an array, computed in float64.

    Examples
    --------
    >>> norm_of([3.0, 4.0])
    5.0
    """
    values = numpy.asarray(array)
    with numpy.errstate(all="ignore"):
        if values.dtype.kind != "c":
            flat = _wide(values).reshape(-1)
            squares = dot_in_pieces(flat, flat)
            if _LEAST_SQUARES < squares < _MOST_SQUARES:
                return math.sqrt(squares)
        return _norm(_magnitudes(values))


# A sum of squares between these has lost none of them that counts to float32's range.
_LEAST_NARROW, _MOST_NARROW = 1e-30, 1e30
_FEW = 16


def quick_norm(array: numpy.ndarray) -> float:
    """Return the 2-norm of an array in one pass over it, to the precision of its dtype.

    Examples
    --------
    >>> f"{quick_norm(numpy.float32([3e-30, 4e-30])):.6g}", quick_norm(numpy.float32([3.0, numpy.inf]))
    ('5e-30', inf)
    """
    if array.dtype.char in "fd":
        if array.size <= _FEW:  # for these Python is quicker than a call of BLAS
            norm = math.hypot(*(array if array.ndim == 1 else array.ravel()).tolist())
            if norm < math.inf:
                return norm
        # A transposed array's elements are read where they lie.
        return quick_norm_of_row(array if array.ndim == 1 else array.ravel("K"))
    return norm_of(array)


def quick_norm_of_row(row: numpy.ndarray) -> float:
    """Return the same of an array of float32 or float64 that has one dimension.

    Examples
    --------
    >>> quick_norm_of_row(numpy.float32([3, 4])), f"{quick_norm_of_row(numpy.float32([3e30, 4e30])):.3g}"
    (5.0, '5e+30')
    """
    squares = dot_in_pieces(row, row)
    if _LEAST_NARROW < squares < _MOST_NARROW:
        return math.sqrt(squares)
    return squares if math.isnan(squares) or not (squares or row.any()) else norm_of(row)


def is_finite(norm: float | None) -> bool:
    """Whether a tensor with this norm has neither NaN nor infinity in it; None is that of an undefined gradient.

    Examples
    --------
    >>> is_finite(3.0), is_finite(None), is_finite(math.nan)
    (True, True, False)
    """
    return norm is None or math.isfinite(norm)


def combined_norm(norms: Iterable[float | None]) -> float | None:
    """Return the 2-norm over all elements of several tensors from theirs; None is that of an undefined gradient.

    Examples
    --------
    >>> combined_norm([3.0, None, 4.0]), combined_norm([None]), combined_norm([float("inf"), float("nan")])
    (5.0, None, nan)
    """
    defined = [norm for norm in norms if norm is not None]
    if any(map(math.isnan, defined)):  # hypot() lets an infinity win
        return math.nan
    return math.hypot(*defined) if defined else None


def makes_bad(given: Iterable[Any], made: Iterable[Any]) -> bool:
    """Whether there is a NaN in what has been made out of arrays without one, or an infinity.

    Examples
    --------
    >>> inf, nan = [math.inf], [math.nan]
    >>> makes_bad([inf], [inf]), makes_bad([inf], [nan]), makes_bad([nan, inf], [nan])
    (False, True, False)
    """
    arrived, left = ([sum(counts) for counts in zip((0, 0), *map(count_bad, arrays))] for arrays in (given, made))
    return any(after and not before for before, after in zip(arrived, left))


def count_bad(array: Any) -> tuple[int, int]:
    """Return how many elements are NaN, and how many infinite.

    Examples
    --------
    >>> count_bad([1.0, float("nan"), float("inf")])
    (1, 1)
    """
    values = numpy.asarray(array)
    if values.dtype.kind not in "fc" or bool(numpy.isfinite(values).all()):
        return 0, 0
    return int(numpy.count_nonzero(numpy.isnan(values))), int(numpy.count_nonzero(numpy.isinf(values)))
