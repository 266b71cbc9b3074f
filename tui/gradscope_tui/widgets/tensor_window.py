"""Which part of a tensor is seen: two of its dimensions, the others held at a place, and a cursor in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradscope.inspect.records.records import Index

__all__ = ["TensorWindow"]


class TensorWindow:
    """A window on a tensor; a tensor of one dimension is broken into lines.

    Parameters
    ----------
    shape : sequence of int
        Of the tensor.

    Attributes
    ----------
    place : list of int
        Where the cursor is, in each dimension.
    top, left : int
        The first line and column that are seen.

    Examples
    --------
    >>> window = TensorWindow((2, 3, 4))
    >>> window.fit(2, 4)
    >>> window.title, window.index()
    ('[0, ↓, →]', (0, (0, 2), (0, 4)))
    >>> window.go(23)
    >>> window.title, window.place, window.index()
    ('[1, ↓, →]', [1, 2, 3], (1, (1, 3), (0, 4)))
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.place = [0] * len(self.shape)
        self.top = self.left = 0
        last = len(self.shape)
        self._pairs = sorted(permutations(range(last), 2), key=lambda pair: (pair != (last - 2, last - 1), pair))
        self._pair = 0
        self._height = self._width = 1

    @property
    def empty(self) -> bool:
        """Whether the tensor has no elements."""
        return prod(self.shape) == 0

    @property
    def _dimensions(self) -> tuple[int, int] | None:
        """The dimensions of the lines and the columns; None where the tensor has fewer."""
        return self._pairs[self._pair] if self._pairs else None

    @property
    def title(self) -> str:
        """Which slice is seen: ``[2, ↓, →]``, lines along the second dimension and columns along the third."""
        lines, columns = self._dimensions or (-1, 0)
        signs = ("↓" if d == lines else "→" if d == columns else str(at) for d, at in enumerate(self.place))
        return f"[{', '.join(signs)}]"

    @property
    def extent(self) -> tuple[int, int]:
        """Lines and columns of the slice."""
        if self._dimensions is not None:
            lines, columns = self._dimensions
            return self.shape[lines], self.shape[columns]
        size = prod(self.shape)
        width = max(1, min(self._width, size))
        return -(-size // width), width

    @property
    def size(self) -> int:
        """How many numbers the slice has; the last line of a tensor of one dimension need not be full."""
        return prod(self.shape if self._dimensions is None else self.extent)

    @property
    def cursor(self) -> tuple[int, int]:
        """Line and column of the cursor in the slice."""
        if self._dimensions is not None:
            lines, columns = self._dimensions
            return self.place[lines], self.place[columns]
        return divmod(self.place[0] if self.place else 0, self.extent[1])

    @property
    def seen(self) -> tuple[range, range]:
        """Lines and columns that are seen."""
        lines, columns = self.extent
        return (
            range(self.top, min(lines, self.top + self._height)),
            range(self.left, min(columns, self.left + self._width)),
        )

    def fit(self, height: int, width: int) -> None:
        """Make room for so many lines and columns, and bring the cursor into view."""
        self._height, self._width = max(1, height), max(1, width)
        self._reveal()

    def move(self, lines: int, columns: int) -> None:
        """Move the cursor in the slice."""
        if self._dimensions is None:
            if self.place:
                self.place[0] = _within(self.place[0] + lines * self.extent[1] + columns, self.shape[0])
        else:
            for dimension, step in zip(self._dimensions, (lines, columns)):
                self.place[dimension] = _within(self.place[dimension] + step, self.shape[dimension])
        self._reveal()

    def page(self, lines: int, columns: int) -> None:
        """Move by half of what is seen."""
        self.move(lines * max(1, self._height // 2), columns * max(1, self._width // 2))

    def step_slice(self, step: int) -> bool:
        """Go to the next slice, or the one before; return whether there is one."""
        shown = self._dimensions or (0,)
        others = [dimension for dimension in range(len(self.shape)) if dimension not in shown]
        number = 0
        for dimension in others:
            number = number * self.shape[dimension] + self.place[dimension]
        number += step
        if not 0 <= number < prod(self.shape[dimension] for dimension in others):
            return False
        for dimension in reversed(others):
            number, self.place[dimension] = divmod(number, self.shape[dimension])
        return True

    def turn(self) -> bool:
        """Show another two dimensions; return whether there are others."""
        if len(self._pairs) < 2:
            return False
        self._pair = (self._pair + 1) % len(self._pairs)
        self._reveal()
        return True

    def go(self, element: int) -> None:
        """Put the cursor on an element, by its place in C order."""
        for dimension in reversed(range(len(self.shape))):
            element, self.place[dimension] = divmod(element, self.shape[dimension])
        self._reveal()

    @property
    def element(self) -> int:
        """The place of the cursor in C order."""
        number = 0
        for size, at in zip(self.shape, self.place):
            number = number * size + at
        return number

    def index(self) -> tuple[Index, ...]:
        """Return what is seen as the page of a tensor."""
        lines, columns = self.seen
        if self._dimensions is None:
            start, stop = lines.start * self.extent[1], lines.stop * self.extent[1]
            return ((start, min(stop, self.shape[0])),) if self.shape else ()
        return self._index(lines, columns)

    def slice(self) -> tuple[Index, ...]:
        """Return the whole slice as the page of a tensor."""
        if self._dimensions is None:
            return tuple((0, size) for size in self.shape)
        return self._index(*map(range, self.extent))

    def _index(self, lines: range, columns: range) -> tuple[Index, ...]:
        assert self._dimensions is not None
        cut = dict(zip(self._dimensions, ((lines.start, lines.stop), (columns.start, columns.stop))))
        return tuple(cut.get(dimension, at) for dimension, at in enumerate(self.place))

    def lines_of(self, values: Sequence[Any], columns: int) -> list[list[Any]]:
        """Return the values of a page as lines of so many columns."""
        if self._dimensions is None or self._dimensions[0] < self._dimensions[1]:
            return [list(values[at : at + columns]) for at in range(0, len(values), max(1, columns))]
        height = len(values) // max(1, columns)
        return [list(values[line::height]) for line in range(height)]

    def _reveal(self) -> None:
        (line, column), (lines, columns) = self.cursor, self.extent
        self.top = _around(line, self.top, self._height, lines)
        self.left = _around(column, self.left, self._width, columns)


def _within(place: int, size: int) -> int:
    return max(0, min(place, size - 1))


def _around(place: int, first: int, room: int, size: int) -> int:
    """Return where a view of so much room begins, so that a place is in it and no room is wasted."""
    return max(0, min(max(first, place - room + 1), place, size - room if size > room else 0))
