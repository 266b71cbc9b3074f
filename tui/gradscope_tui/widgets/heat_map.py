"""Numbers as colours, two to a cell; where there are no colours, as characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from math import isfinite, isnan, log10

from rich.color import Color
from rich.style import Style
from rich.text import Text

from gradscope_tui.terminal.raster import Raster

__all__ = ["DECADES", "LEGEND", "heat_lines", "heat_raster", "level_of", "magnitude_of"]

DECADES = 6
"""Powers of ten below the largest magnitude that are told apart."""

LEGEND = "red above 0, blue below, brighter is larger: six powers of ten; yellow NaN, violet infinite"
PLAIN_LEGEND = "larger magnitudes are darker: six powers of ten; N is NaN, I infinite"

Rgb = tuple[int, int, int]
Number = bool | int | float | tuple[float, float]

_RAMP = " .:-=+*#%@"
_SHADES = 64
"""Shades of a colour that a picture has: terminals may have no more than 256 colours for one."""
_SPACED = 6
"""Dots of a number from which on there is a gap behind it."""
_NAN, _INF, _ZERO, _CURSOR, _NOTHING = (255, 215, 0), (200, 80, 255), (28, 28, 28), (255, 255, 255), None
_BLACK = (0, 0, 0)


def magnitude_of(value: Number) -> float:
    """Return the magnitude of a number; a complex one is a pair."""
    return abs(complex(*value)) if isinstance(value, tuple) else abs(float(value))


def level_of(value: Number, largest: float) -> float:
    """Return how large a number is, from 0 for nothing to 1 for the largest, by its logarithm.

    Examples
    --------
    >>> level_of(-10.0, 10.0), level_of(0.01, 10.0), level_of(1e-9, 10.0), level_of(0.0, 10.0)
    (1.0, 0.5, 0.0, 0.0)
    """
    magnitude = magnitude_of(value)
    if not magnitude or not largest:
        return 0.0
    return max(0.0, min(1.0, 1.0 + (log10(magnitude) - log10(largest)) / DECADES))


def heat_lines(
    lines: Sequence[Sequence[Number]], largest: float, cursor: tuple[int, int], *, zoom: int = 1, plain: bool = False
) -> list[Text]:
    """Draw numbers.

    Parameters
    ----------
    lines : sequence of sequence of number
        The numbers, line by line.
    largest : float
        The largest magnitude of the whole tensor.
    cursor : (int, int)
        Line and column of the number that is marked.
    zoom : int
        How many dots wide and high a number is; two dots stand in a cell, one above the other.
    plain : bool
        Write characters instead, a line of numbers to a line of text.

    Returns
    -------
    list of Text
        The drawing.
    """
    if plain:
        return [_plain_line(line, largest, cursor[1] if at == cursor[0] else -1) for at, line in enumerate(lines)]
    colors = [
        [_CURSOR if (at, column) == cursor else _color(value, largest) for column, value in enumerate(line)]
        for at, line in enumerate(lines)
    ]
    dots = [line for line in colors for _ in range(zoom)]
    return [
        _cells(dots[at], dots[at + 1] if at + 1 < len(dots) else [_NOTHING] * len(dots[at]), zoom)
        for at in range(0, len(dots), 2)
    ]


def heat_raster(lines: Sequence[Sequence[Number]], largest: float, cursor: tuple[int, int], dot: int) -> Raster:
    """Draw numbers as a picture.

    Parameters
    ----------
    lines, largest, cursor
        As for `heat_lines`; what is marked has a frame.
    dot : int
        How many dots wide and high a number is.

    Returns
    -------
    Raster
        The picture.
    """
    places: dict[Rgb, int] = {_BLACK: 0, _CURSOR: 1}
    gap = int(dot >= _SPACED)
    rows: list[bytes] = []
    for at, line in enumerate(lines):
        colors = (_color(value, largest, _SHADES) for value in line)
        numbers = [places.setdefault(color, len(places)) for color in colors]
        plain = b"".join(bytes([place]) * (dot - gap) + bytes(gap) for place in numbers)
        marked = cursor[1] if at == cursor[0] and 0 <= cursor[1] < len(line) else -1
        rows += [plain] * (dot - gap) if marked < 0 else _framed(plain, numbers[marked], marked * dot, dot - gap)
        rows += [bytes(len(plain))] * gap
    return Raster(list(places), rows)


def _framed(row: bytes, place: int, start: int, size: int) -> Iterator[bytes]:
    """Yield the rows of a line of numbers, of which one has a frame."""
    edge = max(1, size // 6)
    inner = max(0, size - 2 * edge)
    full = bytes([1]) * size
    sides = bytes([1]) * edge + bytes([place]) * inner + bytes([1]) * edge if inner else full
    for middle in chain(repeat(full, edge), repeat(sides, inner), repeat(full, size - inner - edge)):
        yield row[:start] + middle + row[start + size :]


def _cells(upper: Sequence[Rgb | None], lower: Sequence[Rgb | None], zoom: int) -> Text:
    text = Text(end="")
    for above, below in zip(upper, lower):
        text.append("▀" * zoom, _style(above, below))
    return text


def _plain_line(line: Sequence[Number], largest: float, marked: int) -> Text:
    text = Text(end="")
    for column, value in enumerate(line):
        text.append(_character(value, largest), Style(reverse=True) if column == marked else None)
    return text


def _character(value: Number, largest: float) -> str:
    magnitude = magnitude_of(value)
    if not isfinite(magnitude):
        return "N" if isnan(magnitude) else "I"
    # A value that is not zero is seen, however small.
    least = 1 if magnitude else 0
    return _RAMP[max(least, round(level_of(value, largest) * (len(_RAMP) - 1)))]


def _color(value: Number, largest: float, shades: int = 0) -> Rgb:
    """Return the colour of a number, where `shades` are given one of so many."""
    magnitude = magnitude_of(value)
    if not isfinite(magnitude):
        return _NAN if isnan(magnitude) else _INF
    if not magnitude:
        return _ZERO
    level = level_of(value, largest)
    bright = 60 + round(195 * (round(level * shades) / shades if shades else level))
    return (30, bright // 2, bright) if not isinstance(value, tuple) and value < 0 else (bright, bright // 4, 30)


def _style(above: Rgb | None, below: Rgb | None) -> Style:
    colors = (None if rgb is None else Color.from_rgb(*rgb) for rgb in (above, below))
    return Style(color=next(colors), bgcolor=next(colors))
