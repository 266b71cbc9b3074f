"""autograd.graph: nodes and edges, hooks on saved tensors, writing what is saved."""

from __future__ import annotations

import gc
import weakref

import pytest

import gradscope as gs
from tests.autograd.compare import Programs, leaf

program = Programs()


# --- nodes and edges --------------------------------------------------------------------------------------------------


@program(
    returns=["SumBackward0", 0, [["AccumulateGrad", 0], ["AccumulateGrad", 0]], True, True, True, True, [[3]]],
    since="2.8",
)
def nodes(m):
    x = leaf(m)
    y = (x * x).sum()
    node = y.grad_fn
    below = node.next_functions[0][0]
    return (
        node.name(),
        node.next_functions[0][1],
        [(edge[0].name(), edge[1]) for edge in below.next_functions],
        below.next_functions[0][0].variable is x,
        isinstance(node, m.autograd.graph.Node),
        node._sequence_nr() > below._sequence_nr(),
        below.next_functions[0][0]._sequence_nr() == 2**64 - 1,
        [list(meta.shape) for meta in below._input_metadata],
    )


@program(
    returns=[
        "MulBackward0",
        0,
        "AccumulateGrad",
        [[1.0, 1.0, 1.0], [2.0, 4.0, 6.0]],
        [[2.0, 4.0, 6.0]],
        [2.0, 4.0, 6.0],
    ],
    since="2.8",
)
def gradient_edges(m):
    x = leaf(m)
    y = x * x
    of_y, of_x = m.autograd.graph.get_gradient_edge(y), m.autograd.graph.get_gradient_edge(x)
    loss = y.sum()
    gradients = m.autograd.grad(loss, [of_y, of_x], retain_graph=True)
    from_edge = m.autograd.grad(of_y, x, grad_outputs=m.ones(3), retain_graph=True)
    m.autograd.backward(loss, inputs=[of_x])
    return of_y.node, of_y.output_nr, of_x.node, gradients, from_edge, x.grad


@program(raises=(RuntimeError, "It is not possible to get the gradient edge for a Tensor that does not require grad"))
def a_gradient_edge_where_none_is(m):
    m.autograd.graph.get_gradient_edge(m.ones(2))


@program(returns=[["hook"], True])
def the_edge_of_a_leaf_keeps_hooks(m):
    log = []
    x = leaf(m)
    node = m.autograd.graph.get_gradient_edge(x).node
    node.register_prehook(lambda g: log.append("hook"))
    x.sum().backward()
    return log, node is m.autograd.graph.get_gradient_edge(x).node


@program(returns=[2, 1], since="2.8")
def increment_version(m):
    x, y = m.ones(2), m.ones(2)
    m.autograd.graph.increment_version(x)
    m.autograd.graph.increment_version([x, y])
    return x._version, y._version


@program(raises=(RuntimeError, "is at version 1; expected version 0 instead"))
def an_incremented_version_is_noticed(m):
    x = leaf(m) * 1
    y = x * x
    m.autograd.graph.increment_version(x)
    y.sum().backward()


# --- saved tensors hooks ----------------------------------------------------------------------------------------------


def recording(m, log):
    return m.autograd.graph.saved_tensors_hooks(
        lambda t: (log.append(("pack", t.tolist())), t)[1], lambda t: (log.append(("unpack", t.tolist())), t)[1]
    )


@program(returns=[[["pack", [1.0, 0.0, -1.0]], ["unpack", [1.0, 0.0, -1.0]]], [2.7183, 0.0, -0.0498]])
def saved_tensors_hooks(m):
    log = []
    x, w = leaf(m), m.tensor([1.0, 0.0, -1.0])
    with recording(m, log):
        y = x * w
    z = y.exp()
    z.sum().backward()
    return log, x.grad


@program(returns=[[["pack", [1.0]], ["unpack", [1.0]], ["unpack", [1.0]]], [1.0], [1.0]])
def saved_outputs_are_packed(m):
    log = []
    x = leaf(m, 0.0)
    with recording(m, log):
        y = x.exp()
    (first,) = m.autograd.grad(y, x, create_graph=True)
    (second,) = m.autograd.grad(first, x)
    return log, first, second


@program(returns=[2, 4])
def only_the_innermost_pair_applies(m):
    outer, inner = [], []
    x = leaf(m)
    with recording(m, outer):
        with recording(m, inner):
            (x * x).sum().backward()
        (x.exp()).sum().backward()
    return len(outer), len(inner)


@program(returns=None)
def packed_tensors_are_not_checked(m):
    x = leaf(m) * 1
    with m.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    x.add_(1)
    (gradient,) = m.autograd.grad(y.sum(), x, allow_unused=True)
    return gradient


@program(raises=(RuntimeError, "A saved tensor pack hook is modifying its input in place."))
def a_pack_hook_that_writes(m):
    with m.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        (leaf(m) * 1).exp().sin()


@program(raises=(TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type"))
def an_unpack_hook_that_returns_no_tensor(m):
    with m.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        leaf(m).exp().sum().backward()


@program(returns=[2.0, 4.0, 6.0])
def saving_on_the_cpu(m):
    x = leaf(m)
    with m.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    return x.grad


@program(raises=(RuntimeError, "not here"))
def disabled_hooks(m):
    with m.autograd.graph.disable_saved_tensors_hooks("not here"):
        with m.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


@program(returns=1)
def hooks_after_a_disabled_block(m):
    with m.autograd.graph.disable_saved_tensors_hooks("not here"):
        pass
    log = []
    with recording(m, log):
        leaf(m).exp()
    return len(log)


@program(returns=[27.1828, 73.8906, 200.8554])
def hooks_of_one_saved_tensor(m):
    x = leaf(m)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 10, lambda t: t)
    y.sum().backward()
    return x.grad


# --- writing what is saved --------------------------------------------------------------------------------------------


@program(returns=[[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]])
def mutation_of_saved_tensors(m):
    x = leaf(m)
    with m.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y**2).sum()
        y.sin_()
        y.zero_()
        z.backward()
    return x.grad, y


@program(returns=[0.0, 0.0, 20.0855])
def mutation_through_views_and_of_outputs(m):
    x = leaf(m)
    with m.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y.exp()
        v = z[:2]
        v.mul_(0)
        z.sum().backward()
    return x.grad


@program(returns=[24.0, 28.0, 32.0])
def mutation_of_what_was_saved_at_two_versions(m):
    x = leaf(m)
    with m.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        a = y * y
        y.add_(10)
        b = y * y
        y.zero_()
        (a + b).sum().backward()
    return x.grad


@program(raises=(RuntimeError, "allow_mutation_on_saved_tensors contexts cannot be nested"))
def nested_mutation(m):
    with m.autograd.graph.allow_mutation_on_saved_tensors():
        with m.autograd.graph.allow_mutation_on_saved_tensors():
            pass


@program(raises=(AssertionError, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"))
def backward_outside_of_the_block(m):
    with m.autograd.graph.allow_mutation_on_saved_tensors():
        y = leaf(m).exp()
    y.sum().backward()


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)


def test_saved_tensors_are_copied_only_when_written():
    x = leaf(gs)
    with gs.autograd.graph.allow_mutation_on_saved_tensors():
        y = (x * 1).clone()
        z = y * y
        kept = z.grad_fn.s_self.packed
        assert kept.tensor is y
        y.zero_()
        assert kept.tensor is not y
        assert kept.tensor.tolist() == [1.0, 2.0, 3.0]


def test_what_hooks_packed_is_freed_with_the_node():
    gc.collect()
    gc.disable()
    try:
        with gs.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            y = (leaf(gs) * 1).exp()
        gone = weakref.ref(y.grad_fn.s_result.packed)
        y.sum().backward()
        assert gone() is None
    finally:
        gc.enable()
