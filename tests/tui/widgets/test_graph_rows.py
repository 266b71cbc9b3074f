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
        module = rows.module(row)
        if module:
            assert all(module in ancestors(names[index]) for index in rows.span(row))
            assert row == 0 or rows.module(row - 1) != module
        else:
            assert not folds & set(ancestors(names[rows.index(row)]))


def test_edges_inside_a_folded_module_are_not_drawn():
    outline = Outline.read(chain())
    rows = fold(outline.modules, frozenset({"layers.0"}))
    assert rows.graph(outline)[0] == (0, [1])
    assert len(lay_out(rows.graph(outline))) == 11


def test_a_node_before_the_first_match_has_no_row():
    assert Rows([3, 5]).row_of(2) == -1
    assert Rows([3, 5]).row_of(4) == 0


def test_a_filter_for_nan_looks_at_what_is_known():
    assert not any(map(node_filter("nan"), chain()))
    assert all(map(node_filter("!nan"), chain()))
