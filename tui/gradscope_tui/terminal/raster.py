"""Pictures of dots in a few colours, as terminals take them: Kitty's graphics protocol, and DEC's Sixel.

The protocols are described at https://sw.kovidgoyal.net/kitty/graphics-protocol/ and in the VT330/VT340 Programmer
Reference Manual, volume 2, chapter 14 (https://vt100.net/docs/vt3xx-gp/chapter14.html).
"""

from __future__ import annotations

import struct
import zlib
from base64 import standard_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["Raster", "kitty_deletion", "kitty_sequence", "sixel_sequence"]

Rgb = tuple[int, int, int]

_CHUNK = 4096
"""Bytes that Kitty takes in one escape sequence."""

_BAND = 6
"""Dots of a column that Sixel writes as one character."""


@dataclass(frozen=True, slots=True)
class Raster:
    """A picture.

    Attributes
    ----------
    palette : sequence of (int, int, int)
        Red, green and blue of each colour, from 0 to 255; at most 256 colours.
    rows : sequence of bytes
        Each line from above, the places in the palette of its dots.
    """

    palette: Sequence[Rgb]
    rows: Sequence[bytes]

    @property
    def width(self) -> int:
        """Dots of a line."""
        return len(self.rows[0]) if self.rows else 0

    @property
    def height(self) -> int:
        """Lines."""
        return len(self.rows)

    def crop(self, left: int, top: int, right: int, bottom: int) -> Raster:
        """Return a part of the picture."""
        return Raster(self.palette, [row[left:right] for row in self.rows[top:bottom]])

    def difference(self, other: Raster) -> tuple[int, int, int, int] | None:
        """Return the part in which another picture of the same size differs: left, top, right, bottom; None for none.

        Examples
        --------
        >>> black = Raster([(0, 0, 0), (9, 9, 9)], [bytes(4)] * 3)
        >>> black.difference(Raster(black.palette, [bytes(4), bytes([0, 1, 1, 0]), bytes(4)]))
        (1, 1, 3, 2)
        """
        if list(self.palette) != list(other.palette):
            return 0, 0, self.width, self.height
        lines = [line for line, (one, another) in enumerate(zip(self.rows, other.rows)) if one != another]
        if not lines:
            return None
        pairs = {(self.rows[line], other.rows[line]) for line in lines}
        columns = [column for pair in pairs for column, (one, another) in enumerate(zip(*pair)) if one != another]
        return min(columns), lines[0], max(columns) + 1, lines[-1] + 1

    def png(self) -> bytes:
        """Return the file of the picture."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 3, 0, 0, 0)
        lines = b"".join(b"\0" + row for row in self.rows)
        palette = bytes(part for color in self.palette for part in color)
        chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def kitty_sequence(raster: Raster, number: int) -> str:
    r"""Return what draws a picture at the cursor, in place of the one that has had its number.

    Examples
    --------
    >>> kitty_sequence(Raster([(255, 0, 0)], [bytes(2)]), 7)[:40]
    '\x1b_Ga=T,f=100,i=7,p=1,C=1,q=2,m=0;iVBORw0'
    """
    data = standard_b64encode(raster.png()).decode("ascii")
    chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    parts = []
    for place, chunk in enumerate(chunks):
        keys = f"a=T,f=100,i={number},p=1,C=1,q=2," if not place else ""
        parts.append(f"\x1b_G{keys}m={int(place < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(parts)


def kitty_deletion(number: int) -> str:
    """Return what takes a picture away."""
    return f"\x1b_Ga=d,d=I,i={number},q=2\x1b\\"


def sixel_sequence(raster: Raster) -> str:
    r"""Return what draws a picture at the cursor.

    Examples
    --------
    >>> sixel_sequence(Raster([(255, 0, 0)], [bytes(5)] * 2))
    '\x1bP0;1;0q"1;1;5;2#0;2;100;0;0#0!5B\x1b\\'
    """
    used = sorted({index for row in set(raster.rows) for index in row})
    colors = "".join(f"#{i};2;{';'.join(str(round(part / 2.55)) for part in raster.palette[i])}" for i in used)
    bands, known = [], {}
    for top in range(0, raster.height, _BAND):
        rows = tuple(raster.rows[top : top + _BAND])
        if rows not in known:
            known[rows] = "$".join(_band(rows))
        bands.append(known[rows])
    return f'\x1bP0;1;0q"1;1;{raster.width};{raster.height}{colors}{"-".join(bands)}\x1b\\'


def _band(rows: Sequence[bytes]) -> Iterator[str]:
    """Yield, for each colour in a few lines, the characters that draw its dots."""
    runs = [(dots, sum(1 for _ in run)) for dots, run in groupby(zip(*rows))]
    drawn: dict[int, list[str]] = {}
    ends: dict[int, int] = {}
    at = 0
    for dots, length in runs:
        for color in set(dots):
            bits = sum(1 << row for row, dot in enumerate(dots) if dot == color)
            out = drawn.setdefault(color, [f"#{color}"])
            out.append(_repeated("?", at - ends.get(color, 0)))
            out.append(_repeated(chr(63 + bits), length))
            ends[color] = at + length
        at += length
    yield from ("".join(out) for out in drawn.values())


def _repeated(character: str, times: int) -> str:
    return f"!{times}{character}" if times > 3 else character * times
