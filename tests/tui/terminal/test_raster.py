from __future__ import annotations

import re
import struct
import zlib
from base64 import standard_b64decode
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.terminal.raster import Raster, kitty_deletion, kitty_sequence, sixel_sequence

PALETTE = [(0, 0, 0), (255, 0, 0), (51, 102, 153), (255, 255, 255)]


@st.composite
def rasters(draw):
    width = draw(st.integers(1, 40))
    row = st.lists(st.integers(0, len(PALETTE) - 1), min_size=width, max_size=width).map(bytes)
    return Raster(PALETTE, draw(st.lists(row, min_size=1, max_size=20)))


def colors(raster):
    return [[raster.palette[dot] for dot in row] for row in raster.rows]


def decoded_png(data):
    """Return the colours of a PNG with a palette."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(name + body),)
        chunks[name] = body
        at += 12 + size
    width, height, *kind = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kind == [8, 3, 0, 0, 0]
    palette = [tuple(chunks[b"PLTE"][i : i + 3]) for i in range(0, len(chunks[b"PLTE"]), 3)]
    lines = zlib.decompress(chunks[b"IDAT"])
    rows = [lines[y * (width + 1) : (y + 1) * (width + 1)] for y in range(height)]
    assert all(row[0] == 0 for row in rows)
    return [[palette[dot] for dot in row[1:]] for row in rows]


def decoded_sixel(text):
    """Return the colours that a VT340 would draw, in hundredths."""
    width, height, body = re.fullmatch(r'\x1bP0;1;0q"1;1;(\d+);(\d+)(.*)\x1b\\', text, re.DOTALL).groups()
    dots = [[None] * int(width) for _ in range(int(height))]
    palette, color, x, top = {}, None, 0, 0
    token = r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|([?-~])|([$-])"
    for define, red, green, blue, select, times, repeated, single, move in re.findall(token, body):
        if define:
            palette[int(define)] = int(red), int(green), int(blue)
        elif select:
            color = palette[int(select)]
        elif move:
            x, top = 0, top + 6 * (move == "-")
        else:
            bits, count = ord(repeated or single) - 63, int(times or 1)
            for at, bit in product(range(x, x + count), range(6)):
                if bits >> bit & 1:
                    dots[top + bit][at] = color
            x += count
    return dots


@given(rasters())
def test_a_png_has_the_dots(raster):
    assert decoded_png(raster.png()) == colors(raster)


@pytest.mark.slow
@given(rasters())
def test_sixel_draws_every_dot_once_in_its_colour(raster):
    hundredths = [[tuple(round(part / 2.55) for part in color) for color in row] for row in colors(raster)]
    assert decoded_sixel(sixel_sequence(raster)) == hundredths


@given(rasters())
def test_kitty_gets_the_file_in_chunks(raster):
    parts = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", kitty_sequence(raster, 5))
    assert "".join(f"\x1b_G{keys};{data}\x1b\\" for keys, data in parts) == kitty_sequence(raster, 5)
    assert all(len(data) <= 4096 for _, data in parts)
    assert [keys[-3:] for keys, _ in parts] == ["m=1"] * (len(parts) - 1) + ["m=0"[-3:]]
    assert parts[0][0].startswith("a=T,f=100,i=5,")
    assert decoded_png(standard_b64decode("".join(data for _, data in parts))) == colors(raster)
    assert "i=5" in kitty_deletion(5)


@given(rasters(), st.data())
def test_a_difference_is_the_least_part_that_must_be_drawn(raster, data):
    rows = [bytearray(row) for row in raster.rows]
    for _ in range(data.draw(st.integers(0, 4))):
        line, column = data.draw(st.tuples(st.integers(0, raster.height - 1), st.integers(0, raster.width - 1)))
        rows[line][column] = data.draw(st.integers(0, 3))
    other = Raster(PALETTE, [bytes(row) for row in rows])
    found = raster.difference(other)
    changed = [
        (y, x) for y in range(raster.height) for x in range(raster.width) if raster.rows[y][x] != other.rows[y][x]
    ]
    if not changed:
        assert found is None
        return
    lines, columns = [y for y, _ in changed], [x for _, x in changed]
    assert found == (min(columns), min(lines), max(columns) + 1, max(lines) + 1)
    part = raster.crop(*found)
    assert colors(part) == [row[found[0] : found[2]] for row in colors(raster)[found[1] : found[3]]]


def test_other_colours_are_another_picture():
    dots = [bytes(3)]
    assert Raster([(1, 1, 1)], dots).difference(Raster([(2, 2, 2)], dots)) == (0, 0, 3, 1)
