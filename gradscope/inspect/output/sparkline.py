"""Norms and other numbers over time in one line of block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["linear_sparkline", "sparkline"]

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(norms: Sequence[float], width: int) -> str:
    """Draw the latest norms on a logarithmic scale of at least one decade, so that noise does not look like a trend.

    Parameters
    ----------
    norms : sequence of float
        The oldest first; not negative.
    width : int
        Cells at most: where there are more norms, the oldest are left out.

    Returns
    -------
    str
        ``!`` stands for NaN and Inf, ``.`` for zero.

    Examples
    --------
    >>> sparkline([1e-4, 1e-3, 1e-2, 1e-1, float("nan"), 0.0], 8)
    '▁▃▆█!.'
    >>> sparkline([1.0, 1.1, 1.0], 8)
    '▁▁▁'
    """
    shown = norms[-width:] if width > 0 else []
    logs = [math.log10(norm) for norm in shown if 0 < norm < math.inf]
    low = min(logs, default=0.0)
    span = max(1.0, max(logs, default=0.0) - low)
    return "".join(_cell(norm, low, span) for norm in shown)


def linear_sparkline(values: Sequence[float], width: int) -> str:
    """Draw the latest of some numbers, which may be negative, between the smallest and the largest of them.

    Parameters
    ----------
    values : sequence of float
        The oldest first.
    width : int
        Cells at most: where there are more numbers, the oldest are left out.

    Returns
    -------
    str
        ``!`` stands for NaN and Inf.

    Examples
    --------
    >>> linear_sparkline([-2.0, 0.0, 5.0, float("nan"), 1.0], 8), linear_sparkline([3.0, 3.0], 8)
    ('▁▃█!▄', '▁▁')
    """
    shown = values[-width:] if width > 0 else []
    finite = [value for value in shown if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    steps = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[int((value - low) * steps + 0.5)] if math.isfinite(value) else "!" for value in shown)


def _cell(norm: float, low: float, span: float) -> str:
    if not math.isfinite(norm):
        return "!"
    return _BLOCKS[int((math.log10(norm) - low) / span * (len(_BLOCKS) - 1) + 0.5)] if norm else "."
