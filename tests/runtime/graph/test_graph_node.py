"""Nodes, edges and saved tensors, as an instrument sees them."""

from __future__ import annotations

import gradscope as gs
from gradscope.runtime.graph.accumulate_grad import AccumulateGrad
from gradscope.runtime.graph.graph_node import GradientEdge


def make():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    w = gs.tensor([3.0, 4.0], requires_grad=True)
    return x, w, x * w


def test_names_edges_and_variable():
    x, w, y = make()
    node = y.grad_fn
    assert node.name() == "MulBackward0"
    (left, left_nr), (right, right_nr) = node.next_functions
    assert isinstance(left, AccumulateGrad)
    assert (left.variable, right.variable) == (x, w)
    assert (left_nr, right_nr) == (0, 0)
    assert left.name() == "AccumulateGrad"
    assert left._sequence_nr() == 2**64 - 1


def test_an_edge_that_leads_nowhere_is_none():
    x = gs.ones(2, requires_grad=True)
    assert (x * 2).grad_fn.next_functions[1] == (None, 0)


def test_sequence_numbers_rise_and_topological_numbers_count_to_the_leaves():
    _, _, y = make()
    z = y.exp().sum()
    assert z.grad_fn._sequence_nr() > z.grad_fn.next_functions[0][0]._sequence_nr()
    assert z.grad_fn.topological_nr() == 3
    assert y.grad_fn.topological_nr() == 1


def test_metadata_lives_with_the_node():
    _, _, y = make()
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_input_metadata():
    _, _, y = make()
    (meta,) = y.grad_fn._input_metadata
    assert (meta.shape, meta.dtype, str(meta.device)) == ((2,), gs.float32, "cpu")


def test_gradient_edge_as_target_and_as_root():
    x, _, y = make()
    edge = gs.autograd.graph.get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    z = y.exp().sum()
    (by_edge,) = gs.autograd.grad(z, [edge], retain_graph=True)
    (by_tensor,) = gs.autograd.grad(z, [y], retain_graph=True)
    assert by_edge.tolist() == by_tensor.tolist()
    gs.autograd.backward([edge], [gs.ones(2)])
    assert x.grad.tolist() == [3.0, 4.0]


def test_running_one_node_alone():
    _, _, y = make()
    left, right = y.grad_fn(gs.ones(2))
    assert left.tolist() == [3.0, 4.0]
    assert right.tolist() == [1.0, 2.0]


def test_a_leaf_nobody_holds_still_gets_its_hooks():
    seen = []

    def loss():
        x = gs.ones(2, requires_grad=True)
        x.register_hook(lambda grad: seen.append(grad.tolist()))
        return (x * 2).sum()

    loss().backward()
    assert seen == [[2.0, 2.0]]


def test_variable_of_a_leaf_nobody_holds():
    x = gs.ones(2, requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    del x
    (node.variable * 3).sum().backward()
    assert node.variable.grad.tolist() == [3.0, 3.0]
