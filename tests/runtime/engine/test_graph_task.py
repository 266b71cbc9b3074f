"""The engine's bookkeeping: order, taking gradients over, failure, nesting, long graphs, memory."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime import events
from gradscope.runtime.engine.graph_task import GraphTask
from tests.side_by_side import complaint


def test_a_gradient_only_its_leaf_holds_is_taken_over():
    y = gs.ones(100, requires_grad=True)
    produced = []
    multiply = y * gs.full((100,), 2.0)
    original = type(multiply.grad_fn).spend

    def spying(node, grad):
        results = original(node, grad)
        produced.append(results[0].__array_interface__["data"][0])
        return results

    type(multiply.grad_fn).spend = spying
    try:
        multiply.backward(gs.ones(100))
    finally:
        type(multiply.grad_fn).spend = original
    assert y.grad.data_ptr() == produced[0]


def gradient_of(view, monkeypatch):
    """Return where the gradient of a leaf lies whose node returns `view(arrays)`, and what that put into the list."""
    arrays = []
    x = gs.ones(2, 3, requires_grad=True)
    y = x.exp()
    monkeypatch.setattr(type(y.grad_fn), "spend", lambda node, grad: (view(arrays),))
    y.backward(gs.ones(2, 3))
    return x.grad.data_ptr(), arrays


def test_a_formula_that_reshapes_what_it_returns_gives_it_away(monkeypatch):
    def view(arrays):
        flat = np.arange(6, dtype="f")
        arrays.append(flat.__array_interface__["data"][0])
        return flat.reshape(2, 3)

    taken, (made,) = gradient_of(view, monkeypatch)
    assert taken == made


def test_a_view_of_an_array_that_somebody_holds_is_copied(monkeypatch):
    def view(arrays):
        arrays.append(np.arange(6, dtype="f"))
        return arrays[0].reshape(2, 3)

    taken, (held,) = gradient_of(view, monkeypatch)
    assert taken != held.__array_interface__["data"][0]


def test_a_part_of_an_array_is_copied_so_that_the_rest_can_go(monkeypatch):
    def view(arrays):
        many = np.zeros(600, dtype="f")
        arrays.append(many.__array_interface__["data"][0])
        return many[:6].reshape(2, 3)

    taken, (made,) = gradient_of(view, monkeypatch)
    assert taken != made


def test_a_callers_gradient_that_is_a_view_is_not_aliased():
    seed = gs.ones(6).view(2, 3)
    x = gs.ones(6, requires_grad=True)
    x.view(2, 3).backward(seed)
    x.grad.mul_(5)
    assert seed.tolist() == [[1.0] * 3] * 2


def test_the_callers_gradient_is_never_aliased():
    x = gs.ones(3, requires_grad=True)
    seed = gs.ones(3)
    x.clone().backward(seed)
    assert x.grad.data_ptr() != seed.data_ptr()


def test_two_leaves_of_a_sum_do_not_share_a_gradient():
    x, y = gs.ones(3, requires_grad=True), gs.ones(3, requires_grad=True)
    (x + y).sum().backward()
    x.grad.mul_(5)
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


def test_accumulation_is_in_place():
    x = gs.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.tolist() == [5.0, 5.0, 5.0]
    assert first._version == 1


def test_highest_sequence_number_first_and_leaves_at_once():
    a, b = gs.ones(1, requires_grad=True), gs.ones(1, requires_grad=True)
    left = a.exp()
    right = b.exp().sin()
    order = []
    with events.subscribe(lambda e: order.append(e.node.name()), events.NodeEntered):
        (left + right).backward()
    assert order == [
        "AddBackward0", "SinBackward0", "ExpBackward0", "AccumulateGrad", "ExpBackward0", "AccumulateGrad",
    ]  # fmt: skip


def test_failure_keeps_finished_leaves_and_leaves_the_runtime_usable():
    early, late = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    y = late.exp()
    z = y * early
    y.add_(1)
    with pytest.raises(gs.SavedTensorModifiedError) as caught:
        z.sum().backward()
    assert any("while running MulBackward0" in note for note in caught.value.__notes__)
    (late * 2).sum().backward()
    assert late.grad.tolist() == [2.0, 2.0]
    assert early.grad is None


def test_failure_in_the_middle_keeps_what_was_accumulated():
    first, second = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    saved = second.exp()
    total = saved.sin() + first * 2
    saved_again = saved
    saved_again.mul_(2)
    with pytest.raises(gs.SavedTensorModifiedError):
        total.sum().backward()
    assert first.grad.tolist() == [2.0, 2.0]
    assert second.grad is None


@pytest.mark.parametrize("depth", [5, 300])
def test_backward_inside_backward(depth):
    x = gs.tensor(1.0, requires_grad=True)

    def nest(remaining):
        with gs.enable_grad():
            y = x * 1.0
            if remaining:
                y.register_hook(lambda grad: nest(remaining - 1))
            y.backward()

    nest(depth)
    assert x.grad.item() == depth + 1


def test_threads_accumulate_into_one_leaf():
    x = gs.zeros(10, requires_grad=True)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [400.0] * 10


@pytest.mark.slow
def test_a_long_chain_runs_and_is_freed():
    x = gs.ones(1, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_saved_tensors_go_as_soon_as_their_node_has_run():
    x = gs.ones(1000, requires_grad=True)
    y = x.exp()
    alive = weakref.ref(y)
    z = y.sin()
    del y
    assert alive() is not None
    z.sum().backward()
    assert alive() is None


def test_training_does_not_grow_without_the_cyclic_collector():
    w = gs.ones(4, 4, requires_grad=True)

    def step():
        loss = (gs.ones(2, 4) @ w).tanh().sum()
        loss.backward()
        w.grad = None

    step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            step()
        assert len(gc.get_objects()) - before < 10
    finally:
        gc.enable()


def test_nested_task_restores_grad_mode():
    x = gs.ones(1, requires_grad=True)
    modes = []
    y = x * 2
    y.register_hook(lambda grad: modes.append(gs.is_grad_enabled()))
    y.backward()
    assert modes == [False]
    assert gs.is_grad_enabled()


@pytest.mark.parametrize(
    ("got", "way_out"), [((5, 2), r"sum over the dimensions that forward\(\) has broadcast"), ((3, 2), "transpose it")]
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_of_the_wrong_shape_is_refused(got, way_out, create_graph):
    class Wrong(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return gs.ones(got)

    x = gs.ones(2, 3, requires_grad=True)
    message = (
        rf"invalid gradient at index 0 - got \[{got[0]}, 2\] but expected shape compatible with \[2, 3\]\n.*{way_out}"
    )
    with pytest.raises(RuntimeError, match=message):
        gs.autograd.grad(Wrong.apply(x).sum(), x, create_graph=create_graph)


def reshaped(lib, y, method, *arguments):
    """Change the shape of a result behind its node's back."""
    with lib.no_grad():
        getattr(y, method)(*arguments)
    return y


def moved(y, data):
    y.data = data
    return y


RESHAPED = {
    "a sum, 1-d": lambda m, x: reshaped(m, x.sum(), "unsqueeze_", 0).backward(),
    "a 1 x 1 sum, 0-d": lambda m, x: reshaped(m, x.sum(1, keepdim=True).sum(0, keepdim=True), "squeeze_").backward(),
    "rows, without the dimension": lambda m, x: reshaped(m, x.sum(1, keepdim=True), "squeeze_").backward(m.ones(2)),
    "rows, recorded": lambda m, x: m.autograd.grad(
        reshaped(m, x.sum(1, keepdim=True), "squeeze_"), x, m.ones(2), create_graph=True
    ),
    "a row too many": lambda m, x: m.autograd.grad(reshaped(m, x.sum(0), "unsqueeze_", 0), x, m.ones(1, 3)),
    "other data": lambda m, x: moved(x * 2, m.ones(5)).backward(m.ones(5)),
    "data that broadcasts": lambda m, x: moved(x.sum(0), m.ones(2, 3)).backward(m.ones(2, 3)),
    "data of another dtype": lambda m, x: moved(x * 2, x.detach().double()).backward(x.detach().double()),
    "one of several results": lambda m, x: reshaped(m, x.unbind(1)[0], "unsqueeze_", 1).backward(m.ones(2, 1)),
}


@pytest.mark.torch
@pytest.mark.parametrize("backward", RESHAPED.values(), ids=RESHAPED)
def test_what_enters_fits_what_the_node_has_made(torch, backward):
    found = []
    for lib in (gs, torch):
        x = lib.ones(2, 3, requires_grad=True)
        try:
            grads = backward(lib, x) or (x.grad,)
            found.append([(g.tolist(), str(g.dtype).partition(".")[2]) for g in grads])
        except RuntimeError:
            found.append(complaint(lib, lambda lib, x=x: backward(lib, x)))
    assert found[0] == found[1]


def test_total_counts_the_nodes_that_will_run():
    x = gs.ones(2, requires_grad=True)
    y = (x * 2).exp().sum()
    task = GraphTask([y.grad_fn], [np.float32(1.0)])
    assert task.total == 4
    task.run()
    assert task.nodes_run == 4


@pytest.mark.parametrize("stepwise", [False, True])
def test_leaves_run_in_the_order_in_which_they_became_ready(stepwise):
    a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    product = a * b
    loss = (product + a.exp()).sum()  # the gradient of `a` by exp() is there before the product gives both of them one
    order = []
    a.register_post_accumulate_grad_hook(lambda leaf: order.append("a"))
    b.register_post_accumulate_grad_hook(lambda leaf: order.append("b"))
    task = GraphTask([loss.grad_fn], [np.float32(1.0)])
    if stepwise:
        while task.step() is not None:
            pass
    else:
        task.run()
    assert order == ["a", "b"]


def test_hooks_and_captures_see_undefined_gradients_as_none():
    x = gs.ones(4, requires_grad=True)
    first, second = (x * 1).split(2)
    seen = []
    second.grad_fn.register_prehook(lambda grads: seen.append([g is None for g in grads]))
    first.sum().backward()
    assert seen == [[False, True]]
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0]
