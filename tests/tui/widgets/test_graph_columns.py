from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.widgets.graph_columns import COLUMNS, GraphView, column_widths, ordered
from gradscope_tui.widgets.graph_rows import Outline
from tests.tui.fake import chain

names = [column.id for column in COLUMNS]
sortable = [column.id for column in COLUMNS if column.sorts]


@given(st.integers(0, 300), st.none() | st.sets(st.sampled_from(names)))
def test_what_is_shown_has_room_and_is_what_was_chosen(width, chosen):
    widths = column_widths(width, chosen)
    assert list(widths) == [name for name in names if name in widths]
    if chosen is not None:
        assert set(widths) <= chosen
        assert not widths or sum(widths.values()) <= width - 25


@given(st.integers(0, 300))
def test_a_wider_pane_has_no_fewer_columns(width):
    assert set(column_widths(width)) <= set(column_widths(width + 1))


@given(st.lists(st.none() | st.just(math.nan) | st.floats(0, 1e9), max_size=30), st.sampled_from(["norm", "-norm"]))
def test_rows_stand_in_the_order_of_a_column(norms, order):
    nodes = [replace(node, norm=norm) for node, norm in zip(chain(len(norms)), norms)]
    found = ordered(nodes, Outline.read(nodes), order)
    assert sorted(found) == list(range(len(norms)))
    values = [norms[index] for index in found]
    finite = [value for value in values if value is not None and not math.isnan(value)]
    assert finite == sorted(finite, reverse=order == "norm")
    kinds = [2 if value is None else 0 if math.isnan(value) else 1 for value in values]
    assert kinds == sorted(kinds)


def test_rows_are_sorted_by_the_time_and_by_the_ratio():
    nodes = [replace(node, norm=norm, duration=time) for node, norm, time in zip(chain(3), (1.0, 8.0, 2.0), (5, 9, 7))]
    outline = Outline.read(nodes)
    assert ordered(nodes, outline, "time") == [1, 2, 0]
    assert outline.sources[2] == (1,)
    assert ordered(nodes, outline, "ratio") == [1, 2, 0]


@given(st.sampled_from(sortable))
def test_sorting_three_times_leads_back(column):
    view = GraphView(("norm",))
    turned = view.sorted(column).sorted(column)
    assert turned.order == f"-{column}"
    assert turned.sorted(column) == view


@pytest.mark.parametrize("column", names)
def test_switching_twice_leads_back(column):
    shown = list(column_widths(120))
    view = GraphView().switched(column, shown)
    assert view.columns is not None
    assert (column in view.columns) != (column in shown)
    assert view.switched(column, view.columns).columns == tuple(shown)
