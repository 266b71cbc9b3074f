from __future__ import annotations

from math import inf, nan

import pytest

from gradscope_tui.widgets.heat_map import heat_lines, level_of

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


def test_a_small_slice_is_drawn_larger():
    lines = heat_lines([[1.0, 2.0]], 2.0, (0, 0), zoom=4)
    assert [line.plain for line in lines] == ["▀" * 8] * 2


def test_without_colours_there_are_characters():
    lines = heat_lines(LINES, 1.0, (0, 0), plain=True)
    assert [line.plain for line in lines] == ["@@ ", "NI.", "= @"]


@pytest.mark.parametrize(("value", "level"), [(5.0, 1.0), (-0.005, 0.5), (0.0, 0.0)])
def test_levels_go_by_powers_of_ten(value, level):
    assert level_of(value, 5.0) == pytest.approx(level)
