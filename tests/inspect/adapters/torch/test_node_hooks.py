"""Hooks on all nodes of a backward of PyTorch, beside those of the program."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Registers:
    """Stands for a node: does something when a hook is put on it."""

    def __init__(self, action: Any) -> None:
        self._action = action

    def register_hook(self, hook: Any) -> Any:
        return self._action()


def nodes() -> tuple[Any, list[Any]]:
    """Return a loss, and its nodes from the loss on."""
    x = torch.ones(2, requires_grad=True)
    loss = x.exp().sin().sum()
    found = [loss.grad_fn]
    while found[-1].next_functions:
        found.append(found[-1].next_functions[0][0])
    return loss, found


def ran_on(loss: Any) -> list[str]:
    """Run a backward with hooks hung; return on which nodes they ran."""
    from gradscope.inspect.adapters.torch.node_hooks import hang

    _, found = loss
    names: list[str] = []
    take_off = hang(found, lambda produced, grads: names.append(torch._C._current_autograd_node().name())).take_off
    loss[0].backward(retain_graph=True)
    take_off()
    loss[0].backward(retain_graph=True)
    return [name.rpartition("::")[2] for name in names]


def test_every_node_once_and_not_after_they_are_off():
    assert ran_on(nodes()) == ["SumBackward0", "SinBackward0", "ExpBackward0", "AccumulateGrad"]


def test_before_and_after_a_custom_function():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append("backward")
            return grad * 2

    y = Double.apply(torch.ones(2, requires_grad=True))
    seen: list[str] = []
    after = lambda produced, grads: seen.append(f"after {produced[0][0]:g} {grads[0][0]:g}")  # noqa: E731
    take_off = hang([y.grad_fn], after, lambda grads: seen.append(f"before {grads[0][0]:g}")).take_off
    y.backward(torch.ones(2), retain_graph=True)
    assert seen == ["before 1", "backward", "after 2 1"]
    take_off()
    y.backward(torch.ones(2))
    assert seen[3:] == ["backward"]


def test_only_some_nodes_are_told_of_before_they_run():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    loss, found = nodes()
    seen: list[str] = []
    name = lambda: torch._C._current_autograd_node().name().rpartition("::")[2]  # noqa: E731
    ran, reached = lambda made, given: seen.append(name()), lambda given: seen.append(f"to {name()}")
    take_off = hang(found, ran, reached, found[1:2]).take_off
    loss.backward(retain_graph=True)
    assert seen == ["SumBackward0", "to SinBackward0", "SinBackward0", "ExpBackward0", "AccumulateGrad"]
    take_off()
    loss.backward()
    assert len(seen) == 5


def test_hooks_of_the_program_keep_their_order_and_their_handles():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    loss, found = nodes()
    node = found[1]
    seen: list[str] = []

    def says(text: str) -> Any:
        return lambda produced, grads: seen.append(text)

    first = node.register_hook(says("first"))
    take_off = hang(found, says("ours")).take_off
    last = node.register_hook(says("last"))
    only = found[2].register_hook(says("only"))
    loss.backward(retain_graph=True)
    assert seen == ["ours", "first", "ours", "last", "ours", "only", "ours"]
    first.remove()
    take_off()
    seen.clear()
    loss.backward(retain_graph=True)
    assert seen == ["last", "only"], "what the program hung on a node of ours is on that node alone"
    last.remove()
    only.remove()
    seen.clear()
    loss.backward()
    assert not seen


def test_what_another_thread_registers_meanwhile_is_registered_as_ever():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    loss, found = nodes()
    seen: list[str] = []
    handles: list[Any] = []
    other = Registers(lambda: handles.append(found[0].register_hook(lambda produced, grads: seen.append("theirs"))))
    take_off = hang([other, *found], lambda produced, grads: seen.append("ours")).take_off
    loss.backward(retain_graph=True)
    assert seen == ["theirs", "ours", "ours", "ours", "ours"]
    take_off()
    seen.clear()
    loss.backward(retain_graph=True)
    assert seen == ["theirs"]
    handles[0].remove()
    loss.backward()
    assert seen == ["theirs"]


def test_a_backward_that_a_signal_handler_runs_while_hooks_are_hung():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    before = torch.autograd.Function._register_hook
    loss, found = nodes()
    seen: list[str] = []
    inner: list[str] = []
    interrupted = Registers(lambda: inner.extend(ran_on(nodes())))
    take_off = hang([found[0], interrupted, *found[1:]], lambda produced, grads: seen.append("ours")).take_off
    assert len(inner) == 4
    loss.backward(retain_graph=True)
    assert seen == ["ours"] * 4
    take_off()
    loss.backward()
    assert seen == ["ours"] * 4
    assert torch.autograd.Function._register_hook is before


def test_where_hanging_ends_in_an_exception_nothing_stays_hung():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    def interrupted() -> None:
        raise KeyboardInterrupt

    before = torch.autograd.Function._register_hook
    loss, found = nodes()
    seen: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        hang([*found[:2], Registers(interrupted)], lambda produced, grads: seen.append("ours"))
    loss.backward()
    assert not seen
    assert torch.autograd.Function._register_hook is before


def test_a_pytorch_that_registers_hooks_in_another_way():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    removed: list[str] = []

    class Handle:
        def remove(self) -> None:
            removed.append("removed")

    take_off = hang([Registers(Handle), Registers(Handle)], print).take_off
    take_off()
    assert removed == ["removed", "removed"]


def test_others_are_put_into_the_place_of_hooks_that_are_on_all_nodes():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    loss, found = nodes()
    seen: list[str] = []

    def says(text: str) -> Any:
        return lambda *grads: seen.append(text)

    hung = hang(found, says("ran"), says("entered"))
    assert hung.exchange(says("then ran"), says("then entered"))
    loss.backward(retain_graph=True)
    assert seen == ["then entered", "then ran"] * 4
    hung.take_off()
    seen.clear()
    loss.backward()
    assert not seen


def test_hooks_that_are_not_on_all_nodes_stay_as_they_are():
    from gradscope.inspect.adapters.torch.node_hooks import hang

    loss, found = nodes()
    seen: list[str] = []
    hung = hang(found, lambda made, given: seen.append("ran"), lambda given: seen.append("entered"), found[:1])
    assert not hung.exchange(print, print)
    loss.backward()
    assert seen == ["entered", "ran", "ran", "ran", "ran"]
    hung.take_off()
