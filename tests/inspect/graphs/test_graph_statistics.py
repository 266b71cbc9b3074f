"""Graphs in numbers."""

import networkx
from hypothesis import given

import gradscope as gs
import gradscope.inspect as gi
from tests.inspect.random_graphs import backward_graphs


@given(backward_graphs())
def test_depth_is_the_longest_path_and_folding_keeps_sums(graph):
    numbers = gi.graph_statistics(graph)
    assert numbers.depth == len(networkx.dag_longest_path(networkx.DiGraph(graph.edges()) if graph.size() else graph))
    assert 1 <= numbers.width <= len(graph)
    assert sum(numbers.operators.values()) == sum(numbers.modules.values()) == len(graph)
    folded = gi.graph_statistics(gi.fold(graph, "order", size=3))
    assert folded.saved_bytes == numbers.saved_bytes
    assert folded.operators == numbers.operators


def test_parameters_reached_and_not():
    net = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.Linear(2, 2))
    numbers = gi.graph_statistics(gi.graph(net[0](gs.ones(1, 3)).sum(), params=net))
    assert numbers.reached == ("0.weight", "0.bias")
    assert numbers.not_reached == ("1.weight", "1.bias")
    assert "2 reached, 2 not reached: 1.weight, 1.bias" in str(numbers)


def test_a_modified_saved_tensor_is_counted():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sum()
    with gs.no_grad():
        y.mul_(2)
    numbers = gi.graph_statistics(gi.graph(z))
    assert (numbers.saved_tensors, numbers.saved_bytes, numbers.modified) == (1, 8, 1)
