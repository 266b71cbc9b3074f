from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.records.records import EdgeRecord, NodeRecord
from gradscope_tui.sessions.session_protocol import known_norms
from gradscope_tui.widgets.graph_rows import Outline, ancestors
from gradscope_tui.widgets.module_diagram import containers, diagram_of, norms_of, opened_to_fit
from tests.tui.fake import summary

PATHS = ["", "net", "net.0", "net.0.fc", "net.0.act", "net.1", "head", "head.fc"]


@st.composite
def backwards(draw):
    """Return the nodes of a backward: each exchanges gradients with nodes that run after it."""
    count = draw(st.integers(1, 14))
    nodes = []
    for index in range(count):
        later = st.integers(index + 1, count - 1)
        targets = draw(st.sets(later, max_size=3)) if index + 1 < count else set()
        edges = tuple(EdgeRecord(100 + target, 0) for target in sorted(targets))
        module = draw(st.sampled_from(PATHS))
        norm = draw(st.none() | st.floats(0, 1e6))
        nodes.append(NodeRecord(index, 100 + index, "MulBackward0", "Mul", 0, module, "", None, edges, norm=norm))
    return nodes


@pytest.mark.slow
@given(backwards(), st.sets(st.sampled_from(PATHS[1:])), st.integers(8, 20))
def test_every_node_stands_in_one_box_and_every_edge_between_boxes_in_one_arrow(nodes, opened, most):
    outline = Outline.read(nodes)
    diagram = diagram_of(outline, nodes, frozenset(opened), most)
    assert sorted(index for box in diagram.boxes for index in box.members) == list(range(len(nodes)))
    assert all(index in diagram.boxes[diagram.box_of(index)].members for index in range(len(nodes)))
    between = {
        (source, target)
        for source, targets in enumerate(outline.targets)
        for target in targets
        if diagram.box_of(source) != diagram.box_of(target)
    }
    found = [edge for edges in diagram.arrows.values() for edge in edges]
    assert sorted(found) == sorted(between)
    assert len(diagram.boxes) <= most
    for box in diagram.boxes:
        for index in box.members:
            around = [a for a in ancestors(nodes[index].module) if a not in opened]
            assert box.module == (around[0] if around else "")


@given(backwards())
def test_norms_are_those_of_the_edges_into_a_box(nodes):
    nodes = [replace(node, norm=1.0, grad_inputs=tuple(summary() for _ in node.edges)) for node in nodes]
    diagram = diagram_of(Outline.read(nodes), nodes, frozenset(), 300)
    norms, arrows = norms_of(diagram, known_norms(nodes), nodes.__getitem__)
    for place, box in enumerate(diagram.boxes):
        entries = [
            i
            for i in box.members
            if not diagram.sources[i] or {diagram.box_of(s) for s in diagram.sources[i]} != {place}
        ]
        assert norms[place] == (math.sqrt(len(entries)) if entries else None)
    assert all(norm is not None and norm > 0 for norm in arrows.values())


def test_what_nobody_has_seen_has_no_norm():
    first = NodeRecord(0, 10, "AddBackward0", "Add", 1, "a", "", None, (EdgeRecord(11, 0), EdgeRecord(12, 0)), norm=2.0)
    second = NodeRecord(1, 11, "MulBackward0", "Mul", 0, "b", "", None, (EdgeRecord(12, 0),), norm=3.0)
    third = NodeRecord(2, 12, "ExpBackward0", "Exp", 0, "c", "", None, (), norm=4.0)
    nodes = [first, second, third]
    diagram = diagram_of(Outline.read(nodes), nodes, frozenset(), 300)
    norms, arrows = norms_of(diagram, known_norms(nodes), nodes.__getitem__)
    assert norms == [2.0, 3.0, 4.0]
    # What comes to the third node from each of the others is not known: only their sum is.
    assert arrows == {(0, 1): 3.0, (0, 2): None, (1, 2): None}


def test_records_are_read_of_nodes_alone_that_have_run_and_bring_a_part():
    to = [(11, 12), (12,), (13,), (14, 15), (15,), ()]
    nodes = [
        NodeRecord(
            i, 10 + i, "AddBackward0", "Add", 0, "abcdef"[i], "", None, tuple(EdgeRecord(key, 0) for key in keys),
            norm=float(i) if i < 4 else None, grad_inputs=tuple(summary() for _ in keys),
        )
        for i, keys in enumerate(to)
    ]  # fmt: skip
    read = []

    def record(index):
        read.append(index)
        return nodes[index]

    diagram = diagram_of(Outline.read(nodes), nodes, frozenset(), 300)
    _, arrows = norms_of(diagram, known_norms(nodes), record)
    assert read == [0, 1, 3]
    assert (arrows[0, 2], arrows[1, 2], arrows[2, 3], arrows[3, 5], arrows[4, 5]) == (0.5, 0.5, 3.0, 0.5, None)


def test_what_several_edges_of_a_box_bring_one_node_is_their_sum():
    edges = [(EdgeRecord(11, 0), EdgeRecord(12, 0)), (EdgeRecord(12, 0),), ()]
    modules, norms = ["a", "a", "b"], [2.0, 3.0, 4.0]
    nodes = [
        NodeRecord(i, 10 + i, "AddBackward0", "Add", 0, module, "", None, into, norm=norm)
        for i, (module, into, norm) in enumerate(zip(modules, edges, norms))
    ]
    diagram = diagram_of(Outline.read(nodes), nodes, frozenset(), 300)
    assert norms_of(diagram, known_norms(nodes), nodes.__getitem__) == ([2.0, 4.0], {(0, 1): 4.0})


def test_nodes_without_a_module_that_follow_each_other_are_one_box_and_a_parameter_is_its_own():
    edges = [(EdgeRecord(11, 0),), (EdgeRecord(12, 0),), (EdgeRecord(13, 0), EdgeRecord(14, 0)), (), ()]
    operators = ["Sum", "Mul", "Mul", "AccumulateGrad", "AccumulateGrad"]
    parameters = ["", "", "", "w", "b"]
    nodes = [
        NodeRecord(index, 10 + index, operator, operator, 0, "", parameter, None, into)
        for index, (operator, parameter, into) in enumerate(zip(operators, parameters, edges))
    ]
    diagram = diagram_of(Outline.read(nodes), nodes, frozenset(), 300)
    assert [box.title for box in diagram.boxes] == ["Sum → Mul ×2", "w", "b"]
    assert set(diagram.arrows) == {(0, 1), (0, 2)}


@given(st.lists(st.sampled_from(PATHS), min_size=1), st.integers(1, 10))
def test_what_is_open_contains_something_and_stands_in_what_is_open(modules, most):
    opened = opened_to_fit(modules, most, 300)
    assert opened <= containers(modules)
    assert all(around in opened for module in opened for around in ancestors(module))
