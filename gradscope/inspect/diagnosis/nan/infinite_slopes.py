"""Derivatives that will be infinite, seen in what nodes have saved before they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy

__all__ = ["InfiniteSlope", "infinite_slope", "may_be_infinite"]


class InfiniteSlope(NamedTuple):
    """A derivative that is infinite for some elements.

    Attributes
    ----------
    where : str
        Where it is: ``'result is 0'``.
    elements, total : int
        For how many elements, of how many.
    text, help : str
        What is infinite where, and what to do.
    """

    where: str
    elements: int
    total: int
    text: str
    help: str


class _Pole(NamedTuple):
    name: str
    where: str
    is_pole: Callable[[Any], Any]
    text: str
    help: str


_ROOT = "Add a small eps under the root, sqrt(x + eps), or keep x away from 0 with clamp(min=eps)."
_LOG = "Keep the argument above 0: clamp(min=eps), log1p(), or log_softmax() instead of softmax().log()."
_ENDS = "Keep the argument inside of -1 and 1: clamp(-1 + eps, 1 - eps)."


def _is_end(values: Any) -> Any:
    return numpy.abs(values) == 1


_POLES = {
    "Sqrt": _Pole("result", "result is 0", lambda x: x == 0, "the derivative of sqrt is infinite at 0", _ROOT),
    "Rsqrt": _Pole("result", "argument is 0", numpy.isinf, "rsqrt and its derivative are infinite at 0", _ROOT),
    "Log": _Pole("self", "argument is 0", lambda x: x == 0, "log and its derivative are infinite at 0", _LOG),
    "Log2": _Pole("self", "argument is 0", lambda x: x == 0, "log2 and its derivative are infinite at 0", _LOG),
    "Log10": _Pole("self", "argument is 0", lambda x: x == 0, "log10 and its derivative are infinite at 0", _LOG),
    "Log1P": _Pole("self", "argument is -1", lambda x: x == -1, "log1p and its derivative are infinite at -1", _LOG),
    "Asin": _Pole("self", "argument is -1 or 1", _is_end, "the derivative of asin is infinite at -1 and 1", _ENDS),
    "Acos": _Pole("self", "argument is -1 or 1", _is_end, "the derivative of acos is infinite at -1 and 1", _ENDS),
    "Atanh": _Pole("self", "argument is -1 or 1", _is_end, "atanh and its derivative are infinite at -1 and 1", _ENDS),
}
"""By operator where its derivative has a pole, in what it saves."""


def may_be_infinite(operator: str) -> bool:
    """Whether an operator has a derivative with a pole that its saved tensors show."""
    return operator in _POLES


def infinite_slope(operator: str, saved: Mapping[str, numpy.ndarray]) -> InfiniteSlope | None:
    """Return where the derivative of an operator is infinite, None if nowhere.

    Parameters
    ----------
    operator : str
        Its name as in its node's, ``'Sqrt'``.
    saved : mapping of str to array
        What it has saved.

    Examples
    --------
    >>> infinite_slope("Sqrt", {"result": numpy.array([0.0, 2.0])})[:4]
    ('result is 0', 1, 2, 'the derivative of sqrt is infinite at 0')
    >>> infinite_slope("Sqrt", {"result": numpy.array([1.0, 2.0])})
    """
    pole = _POLES.get(operator)
    values = None if pole is None else saved.get(pole.name)
    if pole is None or values is None:
        return None
    count = int(numpy.count_nonzero(pole.is_pole(values)))
    return InfiniteSlope(pole.where, count, values.size, pole.text, pole.help) if count else None
