"""Paths and dominators: against walking every path."""

import itertools

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.graphs.node_selection import roots_of
from tests.inspect.random_graphs import backward_graphs


def every_path(graph, start, end):
    """Walk all paths, recursively, over each of parallel edges."""
    if start == end:
        return [(end,)]
    return [(start, *rest) for _, child, _ in graph.edges(start, keys=True) for rest in every_path(graph, child, end)]


@given(backward_graphs(), st.data())
def test_counts_and_paths_are_those_of_a_walk(graph, data):
    end = data.draw(st.sampled_from(list(graph)))
    expected = [path for root in roots_of(graph) for path in every_path(graph, root, end)]
    assert gi.count_paths(graph, end) == len(expected)
    assert sorted(gi.paths(graph, end)) == sorted(expected)
    shortest = gi.shortest_path(graph, end)
    assert len(shortest) == min(map(len, expected), default=0)
    assert shortest in expected or not expected
    start = data.draw(st.sampled_from(list(graph)))
    between = every_path(graph, start, end)
    assert gi.count_paths(graph, end, start) == len(between)
    assert sorted(gi.paths(graph, end, start)) == sorted(between)


@given(backward_graphs(), st.data())
def test_dominators_lie_on_every_path(graph, data):
    end = data.draw(st.sampled_from(list(graph)))
    everything = [set(path) for root in roots_of(graph) for path in every_path(graph, root, end)]
    found = gi.dominators(graph, end)
    assert set(found) == set.intersection(*everything)
    assert found == sorted(found)  # edges lead to higher keys
    assert found[-1] == end


@given(backward_graphs(), st.data())
def test_folding_keeps_the_number_of_paths_between_what_is_not_folded(graph, data):
    end = data.draw(st.sampled_from(list(graph)))
    folded = gi.fold(graph, "chains")
    if end in folded:
        assert gi.count_paths(folded, end) == gi.count_paths(graph, end)


def test_a_deep_graph_has_more_paths_than_anyone_can_walk_and_the_first_comes_at_once():
    x = y = gs.ones((), requires_grad=True)
    for _ in range(3000):
        y = y + y
    graph = gi.graph(y, params={"x": x})
    assert gi.count_paths(graph, "x") == 2**3000
    first = next(gi.paths(graph, "x"))
    assert len(first) == 3001
    assert len(list(itertools.islice(gi.paths(graph, "x"), 5))) == 5
    assert len(gi.dominators(graph, "x")) == 3001


def test_where_no_gradient_arrives():
    a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    graph = gi.graph([a.exp(), b.tanh()], params={"a": a, "b": b})
    assert gi.count_paths(graph, "b", "Exp") == 0
    assert list(gi.paths(graph, "b", "Exp")) == []
    assert gi.shortest_path(graph, "b", "Exp") == ()
    assert gi.dominators(graph, "b", "Exp") == []
    with pytest.raises(ValueError, match=r"no gradient of ExpBackward0 .* comes to AccumulateGrad"):
        gi.subgraph(graph, "Exp", "b")


@given(backward_graphs(), st.data())
def test_a_subgraph_is_what_lies_on_the_paths(graph, data):
    end = data.draw(st.sampled_from(list(graph)))
    part = gi.subgraph(graph, None, end)
    walked = {key for root in roots_of(graph) for path in every_path(graph, root, end) for key in path}
    assert set(part) == walked
    assert list(part) == [key for key in graph if key in walked]
    assert networkx.is_directed_acyclic_graph(part)
    assert gi.count_paths(part, end) == gi.count_paths(graph, end)
