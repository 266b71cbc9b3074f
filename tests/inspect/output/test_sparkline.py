"""Norms over time in a line."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.output.sparkline import sparkline

NORMS = st.lists(st.floats(min_value=0) | st.just(math.nan), max_size=30)


@given(NORMS, st.integers(0, 12))
def test_there_is_a_cell_for_each_of_the_latest_norms(norms, width):
    drawn = sparkline(norms, width)
    shown = norms[-width:] if width else []
    assert len(drawn) == len(shown)
    for cell, norm in zip(drawn, shown):
        assert (cell == "!") == (not math.isfinite(norm))
        assert (cell == ".") == (norm == 0)


@given(st.lists(st.floats(1e-30, 1e30), min_size=2, max_size=12))
def test_a_larger_norm_is_never_drawn_lower(norms):
    cells = dict(zip(norms, sparkline(norms, 12)))
    ordered = [cells[norm] for norm in sorted(cells)]
    assert ordered == sorted(ordered)


def test_a_scale_is_at_least_a_decade_wide():
    assert sparkline([1.0, 1.2, 1.1], 9) == "▁▂▁"
