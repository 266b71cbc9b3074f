from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.widgets.lane_layout import MAX_LANES, draw_row, lay_out


def draw(graph, lanes=6):
    return [draw_row(row, "●", lanes) for row in lay_out(graph)]


def test_a_chain_is_one_lane():
    assert draw([(1, [2]), (2, [3]), (3, [])]) == ["●", "●", "●"]


def test_the_trunk_goes_straight_down_and_leaves_open_to_the_right():
    addmm = [(1, [2, 3, 4]), (2, []), (3, []), (4, [5]), (5, [])]
    assert draw(addmm) == ["●─┬─╮", "│ │ ●", "│ ●", "●", "●"]


def test_a_residual_connection_joins_its_lane():
    assert draw([(1, [2, 3]), (2, [3]), (3, [])]) == ["●─╮", "├─●", "●"]


def test_an_edge_passes_behind_the_lanes_between():
    graph = [(1, [5, 3, 2]), (2, [5]), (3, [5]), (5, [])]
    assert draw(graph) == ["●─┬─╮", "├─│─●", "├─●", "●"]


def test_an_edge_used_twice_and_edges_out_of_the_graph_are_drawn_once_or_not_at_all():
    assert draw([(1, [2, 2, None, 99]), (2, [1])]) == ["●", "●"]


def test_two_roots_have_lanes_of_their_own():
    assert draw([(1, [3]), (2, [3]), (3, [])]) == ["●", "├─●", "●"]


def test_lanes_beyond_the_last_are_counted_and_their_nodes_still_drawn():
    rows = lay_out([(0, range(1, 101)), *((i, []) for i in range(1, 101))])
    assert rows[0].hidden == 100 - MAX_LANES
    assert draw_row(rows[0], "●", 4) == "●─┬─┬─┬─"
    assert draw_row(rows[1], "●", 4) == "│ │ │ …●"
    assert draw_row(rows[100], "●", 4) == "●"


@st.composite
def graphs(draw_from):
    count = draw_from(st.integers(1, 30))
    edges = [
        draw_from(st.lists(st.integers(index + 1, count - 1), max_size=4)) if index + 1 < count else []
        for index in range(count)
    ]
    return list(enumerate(edges))


@given(graphs(), st.integers(1, MAX_LANES))
def test_every_row_shows_its_node_once_and_keeps_its_width(graph, lanes):
    for row in lay_out(graph):
        text = draw_row(row, "●", lanes)
        assert text.count("●") == 1
        assert len(text) <= 2 * lanes


@given(graphs())
def test_every_edge_that_waits_has_a_lane_and_nothing_else_has(graph):
    rows = lay_out(graph)
    waiting = set()
    for (key, edges), row in zip(graph, rows):
        waiting.discard(key)
        waiting.update(edges)
        assert row.below.bit_count() + row.hidden == len(waiting)
        assert all(target < MAX_LANES or row.hidden for target in row.targets)
    assert not waiting
