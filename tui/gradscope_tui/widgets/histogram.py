"""A histogram of magnitudes in block characters, with labelled axes."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["histogram_lines"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def histogram_lines(bins: Sequence[tuple[int, int]], width: int, height: int = 1) -> list[str]:
    """Draw counts over powers of two.

    Parameters
    ----------
    bins : sequence of (int, int)
        Pairs of ``floor(log2|x|)`` and how many elements fall there; in any order, empty bins may be missing.
    width : int
        Cells that the drawing may take, axis labels included.
    height : int
        Rows of bars.

    Returns
    -------
    list of str
        `height` rows of bars with the highest count at the left of the first, then the axis with its two ends; no
        lines for no bins. Neighbouring bins are added up where `width` is too small for one cell each.

    Examples
    --------
    >>> for line in histogram_lines([(-3, 1), (-2, 4), (-1, 8)], width=24):
    ...     print(line)
    8 ▁▁▄▄██
      2^-3…2^-1 log2|x|
    """
    counted = {exponent: count for exponent, count in bins if count > 0}
    if not counted:
        return []
    low, high = min(counted), max(counted)
    gutter, label = 0, _short(max(counted.values()))
    # The label of bins that are added up may be wider than that of any of them.
    while len(label) >= gutter:
        gutter = len(label) + 1
        room = max(1, width - gutter)
        step = -(-(high - low + 1) // room)
        columns = [sum(counted.get(e + k, 0) for k in range(step)) for e in range(low, high + 1, step)]
        peak = max(columns)
        label = _short(peak)
    stretch = max(1, min(2, room // len(columns)))
    lines = []
    for row in range(height - 1, -1, -1):
        bars = "".join(_bar(count, peak, row, height) * stretch for count in columns)
        lines.append(f"{label if row == height - 1 else '':>{gutter - 1}} {bars}".rstrip())
    lines.append(" " * gutter + _axis(low, high, len(columns) * stretch, room))
    return lines


def _bar(count: int, peak: int, row: int, height: int) -> str:
    """Return the cell at height `row` of the bar for `count`; whatever is counted at all is seen."""
    eighths = max(1, round(count * height * 8 / peak)) if count else 0
    return _EIGHTHS[min(8, max(0, eighths - row * 8))]


def _axis(low: int, high: int, bars: int, room: int) -> str:
    """Return the axis below the bars: its ends and, where there is room, what it counts."""
    left, right = f"2^{low}", f"2^{high}"
    if low == high:
        axis = left
    elif bars > len(left) + len(right):
        axis = left + right.rjust(bars - len(left))
    else:
        axis = f"{left}…{right}"
    named = f"{axis} log2|x|"
    return named if len(named) <= room else axis


def _short(count: int) -> str:
    """Write a count in at most five cells."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit * 10:
            return f"{count / limit:.0f}{unit}"
    return str(count)
