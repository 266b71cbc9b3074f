"""Histograms of magnitudes with their signs, in block characters, of several tensors on one axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradscope.inspect.records.records import TensorSummary

__all__ = ["HistogramAxis"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_GUTTER = 5


class HistogramAxis:
    """An axis of powers of two, from the largest negative number through 0 to the largest positive one.

    Beside the bins stand gutters: one for 0 in the middle, and one each for NaN and infinities at the right where there
    are any. Where the sign of the numbers is not known there is no negative half.

    Parameters
    ----------
    tensors : iterable of TensorSummary
        All that is drawn on it.
    width : int
        Cells of a line.

    Examples
    --------
    >>> from gradscope.inspect import TensorSummary
    >>> facts = dict(norm=1.0, min=-2.0, max=2.0, mean=0.0, std=1.0, zeros=1, nans=0, infs=0, preview="")
    >>> tensor = TensorSummary(
    ...     "g", (7,), "float32", "cpu", 7, 28, **facts, histogram=((0, 4), (1, 2)), negatives=((0, 1),)
    ... )
    >>> axis = HistogramAxis([tensor], 25)
    >>> for line in [*axis.bars(tensor), axis.labels()]:
    ...     print(line)
         ▃▃▃▃▃  ▃  █████▅▅▅▅▅
    -2^1  -2^0  0  2^0    2^1
    """

    def __init__(self, tensors: Iterable[TensorSummary], width: int) -> None:
        drawn = list(tensors)
        exponents = [exponent for tensor in drawn for exponent, count in tensor.histogram if count > 0] or [0]
        self._low, self._high = min(exponents), max(exponents)
        self._signed = any(tensor.negatives is not None for tensor in drawn)
        self._others = [name for name in ("nans", "infs") if any(getattr(tensor, name) for tensor in drawn)]
        room = width - _GUTTER * (1 + len(self._others))
        self._side = max(1, room // 2 if self._signed else room)
        count = self._high - self._low + 1
        self._step = -(-count // self._side)
        self._bins = -(-count // self._step)

    def bars(self, tensor: TensorSummary, height: int = 1) -> list[str]:
        """Return the bars of a tensor, `height` lines of them; what is counted at all is seen.

        Bars of the bins are as high as the fullest bin; those of the gutters are cut there.
        """
        counted, negatives = dict(tensor.histogram), dict(tensor.negatives or ())
        above = self._columns({exponent: n - negatives.get(exponent, 0) for exponent, n in counted.items()})
        below = self._columns(negatives)[::-1] if self._signed else []
        peak = max([*above, *below, 1])
        lines = []
        for row in range(height - 1, -1, -1):
            parts = [self._spread([_bar(n, peak, row, height) for n in below])] if self._signed else []
            gutters = [tensor.zeros, *(getattr(tensor, name) for name in self._others)]
            zero, *rest = (_bar(min(n, peak), peak, row, height).center(_GUTTER) for n in gutters)
            parts += [zero, self._spread([_bar(n, peak, row, height) for n in above]), *rest]
            lines.append("".join(parts).rstrip())
        return lines

    def labels(self) -> str:
        """Return the line below the bars."""
        low, high = f"2^{self._low}", f"2^{self._high}"
        above = _ends(low, high, self._side)
        below = _ends(f"-{high}", f"-{low}", self._side) if self._signed else ""
        names = {"nans": "NaN", "infs": "Inf"}
        return (below + "0".center(_GUTTER) + above + "".join(names[o].center(_GUTTER) for o in self._others)).rstrip()

    def _columns(self, counts: dict[int, int]) -> list[int]:
        starts = range(self._low, self._high + 1, self._step)
        return [sum(counts.get(start + k, 0) for k in range(self._step)) for start in starts]

    def _spread(self, cells: Sequence[str]) -> str:
        """Return bars that are as wide together as the side of the axis."""
        return "".join(cells[at * self._bins // self._side] for at in range(self._side))


def _bar(count: int, peak: int, row: int, height: int) -> str:
    """Return the cell at height `row` of the bar for `count`."""
    eighths = max(1, round(count * height * 8 / peak)) if count > 0 else 0
    return _EIGHTHS[min(8, max(0, eighths - row * 8))]


def _ends(left: str, right: str, room: int) -> str:
    """Return a label for each end of a side, as far as there is room."""
    if left == right:
        return left.center(room) if len(left) <= room else " " * room
    if len(left) + len(right) < room:
        return left + right.rjust(room - len(left))
    return right.rjust(room) if len(right) <= room else " " * room
