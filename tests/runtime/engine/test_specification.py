"""The engine's loop does what its specification does, bit for bit and in the same order, on random graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime import events
from gradscope.runtime.engine import specification
from gradscope.runtime.engine.graph_task import GraphTask
from gradscope.runtime.graph.accumulate_grad import AccumulateGrad
from gradscope.runtime.graph.edges import ends_of
from gradscope.runtime.graph.graph_node import Node
from gradscope.runtime.tensor.views import edge_of

# --- random graphs ----------------------------------------------------------------------------------------------------


class Crossed(gs.autograd.Function):
    """Two inputs, two outputs."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 3, y * x.detach().sum()

    @staticmethod
    def backward(ctx, g, h):
        return g * 3 + h.sum(), h


class Nothing(gs.autograd.Function):
    """What it is given gets no gradient, and yet waits for one."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return None


def written(x: gs.Tensor, y: gs.Tensor) -> gs.Tensor:
    """Write into a view of a copy, so that the history of both changes."""
    copy = x.expand(2, 3).clone()
    copy[0].mul_(y.sum())
    return copy


BINARY = [
    lambda x, y: [x * y],
    lambda x, y: [x + y],
    lambda x, y: [x - x * y],
    lambda x, y: [gs.cat([x.reshape(-1), y.reshape(-1), x.reshape(-1)])[:3]],
    lambda x, y: list(Crossed.apply(x, y)),
    lambda x, y: [written(x, y)],
    lambda x, y: [x.double() * y],
]
UNARY = [
    lambda x: [x.tanh()],
    lambda x: [x + x],
    lambda x: [x.sum()],
    lambda x: [x.expand(2, 3).sum(0)],
    lambda x: list(x.expand(2, 3).unbind()),
    lambda x: list(x.expand(2, 3).split(1)),
    lambda x: list(gs.var_mean(x.expand(2, 3), dim=0)),
    lambda x: [x.expand(2, 3).sort(dim=-1)[0]],
    lambda x: [x.detach()],
    lambda x: [Nothing.apply(x)],
]
SHAPES = [(3,), (1,), (), (2, 3)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[gs.Tensor], list[gs.Tensor], list[gs.Tensor]]:
    """Return leaves, roots and their gradients: leaves are used many times, the outputs of a node in part."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**16)))

    def values(shape: tuple[int, ...], kind: type) -> gs.Tensor:
        return gs.from_numpy(np.asarray(numbers.standard_normal(shape), kind))

    made = st.tuples(st.sampled_from(SHAPES), st.sampled_from([np.float32, np.float64]))
    leaves = [values(*one).requires_grad_() for one in draw(st.lists(made, min_size=1, max_size=3))]
    tensors = list(leaves)
    for operator in draw(st.lists(st.sampled_from(UNARY + BINARY), max_size=12)):
        operands = [draw(st.sampled_from(tensors)) for _ in range(1 if operator in UNARY else 2)]
        tensors += operator(*operands)
    connected = [tensor for tensor in tensors if tensor.requires_grad]
    roots = draw(st.lists(st.sampled_from(connected[-4:]), min_size=1, max_size=3))
    return leaves, roots, [values(tuple(root.shape), root.numpy(force=True).dtype) for root in roots]


# --- what the engine does ---------------------------------------------------------------------------------------------


@contextmanager
def logged(nodes: list[Node]) -> Iterator[list[Node]]:
    """Log which of `nodes` compute, by their classes' own methods: a hook or a listener would take other ways."""
    log: list[Node] = []

    def logging(method):
        def logged_method(node, grad):
            if node in nodes:
                log.append(node)
            return method(node, grad)

        return logged_method

    with ExitStack() as stack:
        for kind in {type(node) for node in nodes}:
            name = "accumulate" if kind is AccumulateGrad else "apply"
            stack.enter_context(patch.object(kind, name, logging(getattr(kind, name))))
        yield log


def bits(array: np.ndarray | gs.Tensor | None) -> tuple[object, ...] | None:
    """Return what two arrays have in common if they are the same bit for bit."""
    if array is None:
        return None
    array = np.asarray(array if not isinstance(array, gs.Tensor) else array.detach().numpy())
    return array.shape, array.dtype, array.tobytes()


@given(graphs())
def test_the_engine_runs_as_specified(graph):
    leaves, roots, grads = graph
    edges, arrays = [edge_of(root) for root in roots], [grad.numpy() for grad in grads]
    specified = list(specification.run(edges, arrays))
    order = [node for node, _ in specified]
    arrived = {node: gradients[0] for node, gradients in specified if type(node) is AccumulateGrad}
    expected = [bits(arrived.get(ends_of(edge_of(leaf))[0])) for leaf in leaves]
    # A node at which nothing has arrived runs, but a leaf's adds nothing then.
    computing = [node for node in order if arrived.get(node, node) is not None]

    with logged(order) as log:
        gs.autograd.backward(roots, grads, retain_graph=True)
    assert log == computing
    assert [bits(leaf.grad) for leaf in leaves] == expected

    task, stepped = GraphTask(edges, arrays, True), []
    while (node := task.step()) is not None:
        stepped.append(node)
    assert stepped == order

    entered: list[Node] = []
    with events.subscribe(lambda event: entered.append(event.node), events.NodeEntered):
        gs.autograd.backward(roots, grads)
    assert entered == order

    # Each of the three passes has added the same.
    totals = [arrived.get(ends_of(edge_of(leaf))[0]) for leaf in leaves]
    assert [bits(leaf.grad) for leaf in leaves] == [None if g is None else bits(g + g + g) for g in totals]


@given(graphs(), st.data())
def test_grad_captures_what_arrives(graph, data):
    leaves, roots, grads = graph
    targets = data.draw(st.lists(st.sampled_from([*leaves, *roots]), min_size=1, max_size=4))
    edges = [edge_of(root) for root in roots]
    arrived = dict(specification.run(edges, [grad.numpy() for grad in grads]))
    expected = []
    for target in targets:
        node, nr = ends_of(edge_of(target))
        expected.append(bits(arrived[node][nr] if node in arrived else None))

    def captured(**how: bool) -> list[tuple[object, ...] | None]:
        return [bits(g) for g in gs.autograd.grad(roots, targets, grads, allow_unused=True, **how)]

    assert captured(retain_graph=True) == expected
    recorded = captured(create_graph=True)
    assert [g and g[:2] for g in recorded] == [g and g[:2] for g in expected]
    with events.subscribe(lambda event: None, events.NodeEntered):
        assert captured(retain_graph=True) == expected
        assert captured(create_graph=True) == recorded
    assert [leaf.grad for leaf in leaves] == [None] * len(leaves)
    assert gs.is_grad_enabled()
    assert captured() == expected


# --- what PyTorch does ------------------------------------------------------------------------------------------------


def test_nodes_run_by_sequence_number_and_leaves_first():
    a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    y = (a * 2 + b.exp()) * a
    names = [node.name() for node, _ in specification.run([y.grad_fn], [np.ones(2, np.float32)])]
    assert names == [
        *("MulBackward0", "AddBackward0", "ExpBackward0", "AccumulateGrad", "MulBackward0", "AccumulateGrad"),
    ]


def test_nothing_is_changed():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    (_, _), (leaf, gradients) = specification.run([y.grad_fn], [np.full(2, 3, np.float32)])
    assert (leaf.variable is x, x.grad) == (True, None)
    assert np.array_equal(gradients[0], 3 * y.detach().numpy())
    y.backward(gs.ones(2))


def test_a_node_of_several_outputs_may_get_no_gradient_at_all():
    x = gs.ones(3, requires_grad=True)
    first, *_ = x.unbind()
    (Nothing.apply(first) + x.sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    (gradient,) = gs.autograd.grad(Nothing.apply(gs.var_mean(x)[1]), x, create_graph=True, allow_unused=True)
    assert gradient is None


def test_a_root_that_leads_to_no_target_is_passed_over(torch):
    def told(lib):
        seen = []
        x, y = (lib.ones(3, requires_grad=True) for _ in range(2))
        x.register_hook(lambda grad: seen.append("leaf"))
        product = x * 2
        product.register_hook(lambda grad: seen.append("result"))
        product.grad_fn.register_hook(lambda *grads: seen.append("node"))
        grads = lib.autograd.grad([x, product, y * 3], [y], [lib.ones(3)] * 3)
        return seen, [grad.tolist() for grad in grads]

    assert told(gs) == told(torch) == ([], [[3.0] * 3])


@pytest.mark.parametrize("of_leaf", [False, True])
def test_the_only_root_has_its_tensor_hooks_run(torch, of_leaf):
    def told(lib):
        seen = []
        x, y = (lib.ones((), requires_grad=True) for _ in range(2))
        root = x if of_leaf else x * 2
        root.register_hook(lambda grad: seen.append("tensor"))
        if not of_leaf:
            root.retain_grad()
            root.grad_fn.register_prehook(lambda grads: seen.append("before the node"))
            root.grad_fn.register_hook(lambda *grads: seen.append("after the node"))
        lib.autograd.backward(root, inputs=[y])
        first = lib.autograd.grad(root, [y], allow_unused=True)
        return seen, first, None if root.grad is None else root.grad.item(), y.grad

    assert told(gs) == told(torch) == (["tensor", "tensor"], (None,), None if of_leaf else 2.0, None)
