"""Folding: never a cycle, nothing lost, and the way back."""

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.graphs.folding import FOLDS
from gradscope.inspect.graphs.quotient import members_of
from tests.inspect.random_graphs import backward_graphs, graph_from, node


@given(backward_graphs(most=14), st.sampled_from(FOLDS), st.integers(1, 3), st.integers(1, 5))
def test_folding_keeps_reachability_and_makes_no_cycle(graph, by, depth, size):
    folded = gi.fold(graph, by, depth=depth, size=size)
    assert networkx.is_directed_acyclic_graph(folded)
    owner = {member: key for key in folded for member in members_of(folded, key)}
    assert sorted(owner) == sorted(graph)
    for key in graph:
        below = networkx.descendants(folded, owner[key]) | {owner[key]}
        assert {owner[other] for other in networkx.descendants(graph, key)} <= below
    inner = sum(1 for a, b in graph.edges() if owner[a] == owner[b])
    counted = sum(data.get("count", 1) for _, _, data in folded.edges(data=True))
    assert counted == graph.number_of_edges() - inner
    assert sum(data.get("count", 1) for _, data in folded.nodes(data=True)) == len(graph)


@given(backward_graphs(most=14), st.sampled_from(FOLDS), st.data())
def test_unfolding_is_the_way_back(graph, by, data):
    folded = gi.fold(graph, by, size=3)
    groups = [key for key, facts in folded.nodes(data=True) if "members" in facts]
    while groups:
        folded = gi.unfold(folded, data.draw(st.sampled_from(groups)))
        assert networkx.is_directed_acyclic_graph(folded)
        groups = [key for key, facts in folded.nodes(data=True) if "members" in facts]
    assert dict(folded.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted(folded.edges(keys=True)) == sorted(graph.edges(keys=True))


@given(backward_graphs(most=14))
def test_chains_keep_what_is_reached_exactly(graph):
    folded = gi.fold(graph, "chains")
    owner = {member: key for key in folded for member in members_of(folded, key)}
    for key, data in folded.nodes(data=True):
        last = data["members"][-1] if "members" in data else key
        reached = {owner[other] for other in networkx.descendants(graph, last)} - {key}
        assert reached == networkx.descendants(folded, key)


@given(backward_graphs(most=30), st.integers(1, 12))
def test_any_graph_can_be_folded_to_fit(graph, most):
    folded = gi.fold_to_fit(graph, most)
    assert len(folded) <= most
    assert networkx.is_directed_acyclic_graph(folded)
    assert sum(data.get("count", 1) for _, data in folded.nodes(data=True)) == len(graph)


class Block(gs.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = gs.nn.Linear(width, 2 * width), gs.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


class Net(gs.nn.Module):
    def __init__(self, depth=5):
        super().__init__()
        self.embed = gs.nn.Linear(2, 4)
        self.layers = gs.nn.ModuleList([Block(4) for _ in range(depth)])
        self.head = gs.nn.Linear(4, 1)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def tracked(net, *inputs):
    with gi.track():
        loss = net(*inputs).sum()
    return gi.graph(loss, params=net)


def names(graph):
    return [data["name"] for _, data in graph.nodes(data=True)]


def test_modules_are_nested():
    graph = tracked(Net(), gs.ones(3, 2))
    assert names(gi.fold(graph)) == ["SumBackward0", "head", "layers", "embed"]
    assert names(gi.fold(graph, depth=2)) == [
        "SumBackward0", "head", *(f"layers.{i}" for i in range(4, -1, -1)), "embed",
    ]  # fmt: skip
    folded = gi.fold(graph)
    layers = folded.nodes["layers"]
    assert (layers["kind"], layers["count"], layers["parameters"]) == ("module", 40, 20)
    assert layers["saved_bytes"] == sum(s.nbytes for _, d in graph.nodes(data=True) if "layers" in d["module"] for s in d["saved"])  # fmt: skip  # noqa: E501
    assert layers["operators"]["AccumulateGrad"] == 20
    opened = gi.unfold(folded, "layers")
    assert names(opened)[2:-1] == [f"layers.{i}" for i in range(4, -1, -1)]
    assert "layers.2.up" in gi.unfold(opened, "layers.2")


def test_repeated_blocks_become_one():
    graph = tracked(Net(), gs.ones(3, 2))
    folded = gi.fold(graph, "blocks")
    assert [name for name in names(folded) if "layers" in name] == ["layers.[0-4] ×5"]
    assert folded.nodes["layers.[0-4] ×5"]["count"] == 40


def test_a_block_of_another_structure_stands_alone():
    net = Net()
    net.layers[2] = gs.nn.Linear(4, 4)
    folded = gi.fold(tracked(net, gs.ones(3, 2)), "blocks")
    groups = [name for name in names(folded) if name.startswith("layers")]
    assert groups == ["layers.[3-4] ×2", "layers.2", "layers.[0-1] ×2"]


def test_blocks_that_alternate_are_repeated_together():
    net = gs.nn.Sequential(*(m for _ in range(6) for m in (gs.nn.Linear(2, 2), gs.nn.ReLU())))
    folded = gi.fold(tracked(net, gs.ones(1, 2)), "blocks")
    assert names(folded) == ["SumBackward0", "[0-11] ×6"]


def test_a_module_that_runs_twice_with_something_between_becomes_two_groups():
    class Twice(gs.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.between = gs.nn.Linear(2, 2), gs.nn.Linear(2, 2)

        def forward(self, x):
            return self.cell(self.between(self.cell(x)))

    folded = gi.fold(tracked(Twice(), gs.ones(1, 2)))
    assert networkx.is_directed_acyclic_graph(folded)
    assert names(folded) == ["SumBackward0", "AddmmBackward0", "between", "cell (1 of 2)"]


def test_a_mark_shows_through_a_fold():
    datas = [node(0), node(1, module="a"), node(2, module="a", mark="nonfinite"), node(3, module="a", parameter="a.w")]
    folded = gi.fold(graph_from([(0, 1), (1, 2), (2, 3)], datas))
    assert folded.nodes["a"]["mark"] == "nonfinite"


def test_the_graph_is_not_changed_by_folding():
    graph = tracked(Net(), gs.ones(3, 2))
    before = {key: dict(data) for key, data in graph.nodes(data=True)}, sorted(graph.edges(keys=True))
    for by in FOLDS:
        gi.fold(gi.fold(graph, by), "chains")
    assert before == ({key: dict(data) for key, data in graph.nodes(data=True)}, sorted(graph.edges(keys=True)))


def test_wrong_arguments():
    graph = tracked(Net(), gs.ones(3, 2))
    with pytest.raises(ValueError, match="no folding by 'module_'"):
        gi.fold(graph, "module_")
    with pytest.raises(ValueError, match="positive depth"):
        gi.fold(graph, depth=0)
    with pytest.raises(ValueError, match="has not been folded"):
        gi.unfold(graph)
    with pytest.raises(ValueError, match="no group 'nope'"):
        gi.unfold(gi.fold(graph), "nope")
    assert gi.unfold(gi.fold(graph, "chains")) is graph
