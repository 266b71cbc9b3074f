from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.widgets.histogram import histogram_lines


def test_nothing_is_drawn_for_nothing():
    assert histogram_lines([], 20) == []
    assert histogram_lines([(3, 0)], 20) == []


def test_one_bin_names_itself_once():
    assert histogram_lines([(-4, 16)], 30) == ["16 ██", "   2^-4 log2|x|"]


def test_a_tall_histogram_stands_on_its_axis():
    assert histogram_lines([(0, 1), (1, 2)], 30, 2) == ["2   ██", "  ████", "  2^0…2^1 log2|x|"]


def test_large_counts_are_shortened():
    assert histogram_lines([(0, 2_000_000)], 30)[0].startswith("2000k ██")


bins = st.lists(st.tuples(st.integers(-60, 40), st.integers(1, 10**9)), min_size=1, unique_by=lambda pair: pair[0])


@given(bins, st.integers(24, 120), st.integers(1, 6))
def test_every_bin_is_seen_and_the_width_is_kept(pairs, width, height):
    lines = histogram_lines(pairs, width, height)
    assert len(lines) == height + 1
    assert max(map(len, lines)) <= width
    assert any(block in lines[height - 1] for block in "▁▂▃▄▅▆▇█")
    assert "█" in lines[0] or height > 1
