from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.widgets.histogram import HistogramAxis
from tests.tui.fake import summary

BLOCKS = "▁▂▃▄▅▆▇█"


def drawn(tensor, width, height=1, others=()):
    axis = HistogramAxis([tensor, *others], width)
    return [*axis.bars(tensor, height), axis.labels()]


def test_a_magnitude_without_sign_has_one_side():
    tensor = replace(summary(), histogram=((0, 1), (1, 2)), zeros=0)
    assert drawn(tensor, 25, 2) == [" " * 15 + "█" * 10, " " * 5 + "█" * 20, "  0  2^0              2^1"]


def test_negative_numbers_stand_on_the_left_largest_first():
    tensor = replace(summary(), histogram=((0, 4), (3, 8)), negatives=((3, 8),), zeros=4)
    left, zero, right = (line.ljust(45) for line in drawn(tensor, 45)[0].partition("  ▄  "))
    assert left.strip() == "█" * 5
    assert left.startswith("█")
    assert zero.strip() == "▄"
    assert right.strip() == "▄" * 5
    labels = drawn(tensor, 45)[1]
    assert labels.split() == ["-2^3", "-2^0", "0", "2^0", "2^3"]


def test_nan_and_infinities_have_gutters_where_there_are_any():
    tensor = replace(summary(nans=2), infs=1)
    bars, labels = drawn(tensor, 40)
    assert labels.endswith("NaN  Inf")
    assert bars[labels.index("NaN") + 1] in BLOCKS
    assert bars[labels.index("Inf") + 1] in BLOCKS
    assert "NaN" not in drawn(summary(), 40)[1]


def test_two_tensors_stand_on_one_axis():
    small, large = (replace(summary(), histogram=((k, 3),), zeros=0) for k in (-8, 0))
    axis = HistogramAxis([small, large], 60)
    assert axis.bars(small)[0].rstrip().endswith("█")
    assert len(axis.bars(small)[0]) < len(axis.bars(large)[0])
    assert axis.labels().split() == ["0", "2^-8", "2^0"]


bins = st.lists(st.tuples(st.integers(-60, 40), st.integers(1, 10**9)), min_size=1, unique_by=lambda pair: pair[0])


@given(bins, st.booleans(), st.integers(24, 120), st.integers(1, 6))
def test_every_line_fits_and_every_tensor_is_seen(pairs, signed, width, height):
    tensor = replace(summary(), histogram=tuple(pairs), negatives=tuple(pairs[:1]) if signed else None)
    lines = drawn(tensor, width, height)
    assert len(lines) == height + 1
    assert max(map(len, lines)) <= width
    assert any(block in lines[height - 1] for block in BLOCKS)
    assert "█" in lines[0] or height > 1
