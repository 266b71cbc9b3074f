from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.widgets.graph_rows import Outline, Rows, ancestors, fold, node_filter
from gradscope_tui.widgets.lane_layout import lay_out
from tests.tui.fake import chain

modules = st.lists(st.sampled_from(["", "a", "a.b", "a.b.c", "a.d", "e", "ab"]), max_size=30)
folded = st.frozensets(st.sampled_from(["a", "a.b", "a.b.c", "a.d", "e", "missing"]))


@given(modules, folded)
def test_every_node_is_in_exactly_one_row_in_order(names, folds):
    rows = fold(names, folds)
    assert [index for row in range(len(rows)) for index in rows.span(row)] == list(range(len(names)))
    assert all(index in rows.span(rows.row_of(index)) for index in range(len(names)))


@given(modules, folded)
def test_a_folded_row_holds_nodes_of_its_module_only_and_no_neighbour_of_it(names, folds):
    rows = fold(names, folds)
    for row in range(len(rows)):
        module = rows.folded(row)
        if module:
            assert all(module in ancestors(names[index]) for index in rows.span(row))
            assert row == 0 or rows.folded(row - 1) != module
        else:
            assert not folds & set(ancestors(names[rows.index(row)]))


@given(modules, folded)
def test_a_heading_stands_above_neighbours_of_its_module_that_are_not_folded(names, folds):
    rows, plain = fold(names, folds, headings=True), fold(names, folds)
    headings = [row for row in range(len(rows)) if rows.heading(row)]
    assert len(rows) == len(plain) + len(headings)
    for row in headings:
        span = rows.span(row)
        assert len(span) > 1
        assert [rows.index(below) for below in range(row + 1, row + 1 + len(span))] == list(span)
        assert {names[index] for index in span} == {rows.heading(row)}
    for index in range(len(names)):
        assert not rows.heading(rows.row_of(index))
        assert index in rows.span(rows.row_of(index))


@given(modules, folded)
def test_lanes_run_past_headings(names, folds):
    targets = [(index + 1,) if index + 1 < len(names) else () for index in range(len(names))]
    outline = Outline(names, targets, (), {})
    rows = fold(names, folds, headings=True)
    layout = rows.lanes(outline)
    assert len(layout) == len(rows)
    assert [lane for row, lane in enumerate(layout) if not rows.heading(row)] == fold(names, folds).lanes(outline)
    for row, lane in enumerate(layout):
        if rows.heading(row):
            assert lane.above == lane.below == (layout[row - 1].below if row else 0)


def test_edges_inside_a_folded_module_are_not_drawn():
    outline = Outline.read(chain())
    rows = fold(outline.modules, frozenset({"layers.0"}))
    layout = rows.lanes(outline)
    assert len(layout) == 11
    assert layout[0] == lay_out([(0, [1]), (1, [])])[0]


def test_a_node_before_the_first_match_has_no_row():
    assert Rows([3, 5]).row_of(2) == -1
    assert Rows([3, 5]).row_of(4) == 0


def test_a_filter_for_nan_looks_at_what_is_known():
    assert not any(map(node_filter("nan"), chain()))
    assert all(map(node_filter("!nan"), chain()))
