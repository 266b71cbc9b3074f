"""Naming nodes."""

import pytest

import gradscope as gs
import gradscope.inspect as gi


@pytest.fixture
def graph():
    net = gs.nn.Sequential(gs.nn.Linear(3, 3), gs.nn.Tanh(), gs.nn.Linear(3, 3))
    with gi.track():
        loss = net(gs.ones(1, 3)).sum()
    return gi.graph(loss, params=net)


def test_a_node_has_many_names(graph):
    tanh = next(key for key, data in graph.nodes(data=True) if data["operator"] == "Tanh")
    index = graph.nodes[tanh]["index"]
    for name in (tanh, str(index), f"node:{index}", "Tanh", "op:Tanh", "TanhBackward0", "op:Tan*"):
        assert gi.find_node(graph, name) == tanh
    assert graph.nodes[gi.find_node(graph, "0.weight")]["parameter"] == "0.weight"
    assert graph.nodes[gi.find_node(graph, "param:2.w*")]["parameter"] == "2.weight"


def test_a_group_is_found_by_its_name(graph):
    folded = gi.fold(graph)
    assert gi.find_node(folded, "0") == "0"
    assert folded.nodes[gi.find_node(folded, "group:2")]["name"] == "2"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Addmm", r"'Addmm' means 2 nodes\nName one by its number .*: 1, 5"),
        ("*.weight", "means 2 nodes"),
        ("0.weigth", "Did you mean '0.weight'"),
        ("99", "It takes a number from 0 to 7"),
        ("op:0.weight", "there is no node"),
        (12345678, "no node with key 12345678"),
    ],
)
def test_what_names_no_node_or_several(graph, name, message):
    with pytest.raises(gi.NodeNotFoundError, match=message):
        gi.find_node(graph, name)
