"""Sends the terminal the cells that have changed, and no others: Textual sends whole lines of what may have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual._compositor import CompositorUpdate
from textual.strip import Strip

from gradscope_tui.terminal.pixel_graphics import Picture, PixelGraphics
from gradscope_tui.terminal.style_changes import write_runs

__all__ = ["ChangedCells", "ShownFrame", "changed_runs"]

_GAP = 10
"""Cells between two that have changed which are sent again: to move the cursor past them takes as many bytes."""

Cell = tuple[str, Style | None]
"""What is written there, and in which style; what a style links to is no part of what is seen."""


class ShownFrame:
    """What stands on the terminal, as far as is known."""

    def __init__(self) -> None:
        self._lines: list[Strip] = []
        self._unknown: frozenset[int] = frozenset()

    def forget(self) -> None:
        """Know of nothing: somebody else has written there."""
        self._lines = []

    def forget_rows(self, rows: Iterable[int]) -> None:
        """Know nothing of some rows: there is more in their cells than has been written."""
        self._unknown |= frozenset(rows)

    def replace(self, lines: Sequence[Strip]) -> Iterator[tuple[int, int, Strip]]:
        """Yield what must be written for other lines to stand there: row, column and cells."""
        before, self._lines = self._lines, list(lines)
        unknown, self._unknown = self._unknown, frozenset()
        if [line.cell_length for line in before] != [line.cell_length for line in lines]:
            yield from ((row, 0, line) for row, line in enumerate(lines))
            return
        for row, (old, new) in enumerate(zip(before, lines)):
            if row in unknown:
                yield row, 0, new
            elif old != new:
                yield from ((row, start, new.crop(start, stop)) for start, stop in changed_runs(old, new))


class ChangedCells(CompositorUpdate):
    """An update of the terminal; it is worked out when it is written.

    Parameters
    ----------
    frame : ShownFrame
        What stands there.
    lines : callable
        Returns what is to stand there.
    graphics : PixelGraphics
        Draws the picture that lies on the cells, if there is one.
    """

    def __init__(self, frame: ShownFrame, lines: Callable[[], Sequence[Strip]], graphics: PixelGraphics) -> None:
        self._frame, self._lines, self._graphics = frame, lines, graphics

    def render_segments(self, console: Console) -> str:
        """Return the escape sequences and the text."""
        lines = self._lines()
        self._frame.forget_rows(self._graphics.rows_to_clear())
        runs = list(self._frame.replace(lines))
        text = write_runs(runs, COLOR_SYSTEMS[console.color_system or "truecolor"])
        written = [(row, column, column + cells.cell_length) for row, column, cells in runs]
        return text + self._graphics.update(written, covered=_is_covered(self._graphics.picture, lines))


def _is_covered(picture: Picture | None, lines: Sequence[Strip]) -> bool:
    """Whether there is text where a picture is to lie: a message, a question."""
    if picture is None:
        return False
    cells = (
        line.crop(picture.column, picture.column + picture.columns) for line in lines[picture.row :][: picture.rows]
    )
    return any(strip.text.strip() for strip in cells)


def changed_runs(old: Strip, new: Strip) -> list[tuple[int, int]]:
    """Return the first cell and the one behind the last of each run in which two lines of one width differ.

    Examples
    --------
    >>> from rich.segment import Segment
    >>> before = Strip([Segment("norm 1.0" + " " * 20 + "wait")])
    >>> after = Strip([Segment("norm 2.5" + " " * 20 + "done")])
    >>> changed_runs(before, after)
    [(5, 8), (28, 32)]
    """
    before, after = _cells(old), _cells(new)
    if before is None or after is None:
        return [(0, new.cell_length)]
    changed = [place for place, (one, other) in enumerate(zip(before, after)) if one != other]
    runs: list[tuple[int, int]] = []
    for place in changed:
        if runs and place - runs[-1][1] <= _GAP:
            runs[-1] = runs[-1][0], place + 1
        else:
            runs.append((place, place + 1))
    return runs


@lru_cache(maxsize=4096)
def _seen(style: Style | None) -> Style | None:
    """Return a style without what a mouse finds there."""
    return style.clear_meta_and_links() if style is not None and (style.meta or style.link) else style


def _cells(strip: Strip) -> list[Cell] | None:
    """Return each cell; both of a character that is two wide have it, so that they change together.

    None stands for a line with characters that are written over others: it cannot be cut anywhere.
    """
    cells: list[Cell] = []
    for text, full_style, _ in strip:
        style = _seen(full_style)
        if text.isascii():
            cells += [(character, style) for character in text]
            continue
        for character in text:
            width = cell_len(character)
            if not width:
                return None
            cells += [(character * (half + 1), style) for half in range(width)]
    return cells
