from __future__ import annotations

from math import inf, nan

import pytest

from gradscope_tui.widgets.heat_map import heat_lines, heat_raster, level_of

LINES = [[1.0, -1.0, 0.0], [nan, inf, 1e-9], [1e-3, 0.0, (0.6, 0.8)]]


def colors(text):
    return [(span.style.color, span.style.bgcolor) for span in text.spans]


def test_two_lines_of_numbers_share_a_line_and_signs_have_colours():
    first, second = heat_lines(LINES, 1.0, (2, 0))
    assert first.plain == second.plain == "▀▀▀"
    (positive, not_a_number), (negative, infinite), (zero, tiny) = colors(first)
    assert positive.triplet.red == negative.triplet.blue == 255
    assert len({positive, not_a_number, negative, infinite, zero}) == 5
    assert tiny != zero
    assert colors(second)[0][0].triplet == (255, 255, 255)
    assert colors(second)[0][1] is None


def dot(raster, x, y):
    return raster.palette[raster.rows[y][x]]


@pytest.mark.parametrize("size", [3, 8])
def test_a_picture_has_the_colours_of_the_half_blocks(size):
    raster = heat_raster(LINES, 1.0, (2, 0), size)
    assert (raster.width, raster.height) == (3 * size, 3 * size)
    middle = size // 2
    seen = [[dot(raster, x * size + middle, y * size + middle) for x in range(3)] for y in range(3)]
    first, _ = heat_lines(LINES, 1.0, (2, 1))
    assert [(upper, lower) for upper, lower in zip(seen[0], seen[1])] == [
        (tuple(above.triplet), tuple(below.triplet)) for above, below in colors(first)
    ]
    assert len(raster.palette) <= 256


def test_what_is_marked_has_a_frame_and_large_numbers_a_gap():
    raster = heat_raster(LINES, 1.0, (1, 2), 8)
    white, black = (255, 255, 255), (0, 0, 0)
    assert [dot(raster, x, 8) for x in range(16, 23)] == [white] * 7
    assert [dot(raster, x, 12) == white for x in range(16, 23)] == [True, False, False, False, False, False, True]
    assert {dot(raster, x, 7) for x in range(24)} == {dot(raster, 7, y) for y in range(24)} == {black}
    assert dot(heat_raster(LINES, 1.0, (1, 2), 3), 6, 3) == white


def test_a_small_slice_is_drawn_larger():
    lines = heat_lines([[1.0, 2.0]], 2.0, (0, 0), zoom=4)
    assert [line.plain for line in lines] == ["▀" * 8] * 2


def test_without_colours_there_are_characters():
    lines = heat_lines(LINES, 1.0, (0, 0), plain=True)
    assert [line.plain for line in lines] == ["@@ ", "NI.", "= @"]


@pytest.mark.parametrize(("value", "level"), [(5.0, 1.0), (-0.005, 0.5), (0.0, 0.0)])
def test_levels_go_by_powers_of_ten(value, level):
    assert level_of(value, 5.0) == pytest.approx(level)
