from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.widgets.norm_columns import norm_bar, norm_columns

norms = st.none() | st.just(math.nan) | st.floats(min_value=0)


@given(norms, norms, st.integers(1, 30))
def test_columns_stand_below_each_other_whatever_the_numbers(norm, before, bar):
    assert len("".join(text for text, _ in norm_columns(norm, before, bar))) == 7 + 1 + bar + 7
    assert len("".join(text for text, _ in norm_columns(norm, before, 0))) == 7


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.integers(1, 30))
def test_a_larger_norm_has_no_shorter_bar(one, other, width):
    small, large = (norm_bar(norm, width) for norm in sorted((one, other)))
    assert 1 <= len(small) <= len(large) <= width


def test_a_bar_grows_by_as_much_with_each_decade():
    lengths = [len(norm_bar(10.0**power, 110)) for power in range(-7, 4)]
    assert lengths == [10 * (step + 1) for step in range(11)]


def test_what_is_not_finite_and_what_vanishes_or_explodes_is_coloured():
    colours = [norm_columns(norm, 1.0, 5)[0][1] for norm in (math.nan, math.inf, 0.0, 1e-8, 1.0, 1e4, None)]
    assert colours == ["bad", "bad", "warn", "warn", "", "warn", ""]


def test_a_ratio_is_told_where_there_is_one():
    def ratio(norm, before):
        return norm_columns(norm, before, 5)[2][0].strip()

    assert [ratio(1.0, 2.0), ratio(3e-5, 1.0), ratio(1e9, 1.0)] == ["×0.5", "×3e-5", "×1e9"]
    assert [ratio(1.0, 0.0), ratio(math.nan, 1.0), ratio(1.0, None), ratio(None, 1.0)] == [""] * 4
    assert ratio(1e300, 1e-300) == ""
