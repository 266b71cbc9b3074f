"""Selective checkpoints: some results are kept, and the gradients are those of a plain checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pytest

import gradscope as gs
from gradscope.runtime import state
from gradscope.runtime.ops.execution import general
from gradscope.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)

F = gs.nn.functional
SAVE, AGAIN = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.MUST_RECOMPUTE


def everything(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.PREFER_SAVE


def nothing(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.PREFER_RECOMPUTE


def block(x: Any, w: Any) -> Any:
    h = F.layer_norm(gs.mm(x, w).exp().clamp(max=3), (4,))
    h = F.dropout(F.linear(h, w, w[0]), 0.5)
    values, places = h.max(1)
    return gs.mm(F.dropout(h, 0.5), w).softmax(1).cumsum(0) * values[:, None] + places[:, None]


def gradients(contexts: Any, function: Callable[..., Any] = block) -> list[Any]:
    gs.manual_seed(1)
    x, w = gs.randn(4, 4, requires_grad=True), gs.randn(4, 4, requires_grad=True)
    given = {} if contexts is None else {"context_fn": contexts}
    y = checkpoint(function, x, w, use_reentrant=False, **given)
    y.sin().sum().backward()
    return [y, x.grad, w.grad, gs.rand(2)]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often the forward of each operator ran."""
    found: Counter[str] = Counter()
    forward = general.forward

    def counted(op: Any, xp: Any, bare: list[Any]) -> Any:
        found[op.name] += 1
        return forward(op, xp, bare)

    monkeypatch.setattr(general, "forward", counted)
    return found


@pytest.mark.parametrize("policy", [everything, nothing, [gs.mm], [gs.exp, gs.max, F.linear], []])
def test_gradients_are_bit_for_bit_those_of_a_plain_checkpoint(policy: Any) -> None:
    found = gradients(partial(create_selective_checkpoint_contexts, policy))
    assert all(map(gs.equal, found, gradients(None)))
    assert not state.special


def test_random_numbers_after_what_is_saved_are_the_same() -> None:
    def noisy(x: Any, w: Any) -> Any:
        return gs.bernoulli(x.sigmoid()) * F.dropout(w) * F.rrelu(x, training=True) * x.exp()

    found = gradients(partial(create_selective_checkpoint_contexts, everything), noisy)
    assert all(map(gs.equal, found, gradients(None, noisy)))


@pytest.mark.parametrize("saved", [[gs.mm], [gs.exp, gs.max]])
def test_what_is_saved_runs_once(ran: Counter[str], saved: list[Any]) -> None:
    gradients(None)
    plain = ran.copy()
    ran.clear()
    gradients(partial(create_selective_checkpoint_contexts, saved))
    names = {"mm"} if saved == [gs.mm] else {"exp", "max.dim"}
    assert {name for name in plain if ran[name] != plain[name]} == names
    assert all(2 * ran[name] == plain[name] for name in names)


def test_the_policy_is_told_the_call_as_a_function_takes_it() -> None:
    told: list[Any] = []

    def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        told.append(
            (ctx.is_recompute, op, None if ctx.op_output is None else gs.equal(op(*args, **kwargs), ctx.op_output))
        )
        return SAVE if op is gs.mm else AGAIN

    gradients(partial(create_selective_checkpoint_contexts, policy), lambda x, w: gs.mm(x, w).add(w, alpha=2).exp())
    first = [(False, op, True) for op in (gs.mm, gs.add, gs.exp)]
    assert told == first + [(True, op, None) for op in (gs.mm, gs.add, gs.exp)]


def test_what_was_kept_is_used_once() -> None:
    x = gs.ones(2, 2, requires_grad=True)
    y = checkpoint(
        lambda t: gs.mm(t, t).exp(),
        x,
        use_reentrant=False,
        context_fn=partial(create_selective_checkpoint_contexts, [gs.mm]),
    )
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only allowed to backward once"):
        y.sum().backward()


@pytest.mark.parametrize("allowed", [False, True])
def test_what_was_kept_and_written_is_refused(allowed: bool) -> None:
    x = gs.ones(2, 2, requires_grad=True)
    contexts = partial(create_selective_checkpoint_contexts, [gs.mm], allow_cache_entry_mutation=allowed)
    y = checkpoint(lambda t: gs.mm(t, t).relu_().exp(), x, use_reentrant=False, context_fn=contexts)
    if allowed:
        y.sum().backward()
        assert x.grad.tolist() == gs.autograd.grad((x @ x).exp().sum(), x)[0].tolist()
        return
    with pytest.raises(RuntimeError, match=r"has been mutated: a result of mm\(\)"):
        y.sum().backward()


def test_a_policy_that_changes_its_mind_is_refused() -> None:
    def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any) -> CheckpointPolicy:
        return SAVE if ctx.is_recompute else AGAIN

    contexts = partial(create_selective_checkpoint_contexts, policy)
    with pytest.raises(RuntimeError, match=r"mm\(\) call 1 encountered during backward but not found in storage"):
        gradients(contexts, lambda x, w: gs.mm(x, w).exp())


def test_a_list_holds_functions_of_operators() -> None:
    with pytest.raises(ValueError, match="Expected op in `op_list`"):
        create_selective_checkpoint_contexts([F.cross_entropy])
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create_selective_checkpoint_contexts("mm")  # type: ignore[arg-type]


@pytest.mark.torch
def test_gradients_are_pytorchs(torch: Any) -> None:
    def found(m: Any, op: Any) -> list[Any]:
        tools = import_module(f"{m.__name__}.utils.checkpoint")
        x = m.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=m.float64, requires_grad=True)
        contexts = partial(tools.create_selective_checkpoint_contexts, [op])
        y = tools.checkpoint(lambda t: m.mm(t, t).exp().sin(), x, use_reentrant=False, context_fn=contexts)
        y.sum().backward()
        return x.grad.flatten().tolist()

    assert found(gs, gs.mm) == pytest.approx(found(torch, torch.ops.aten.mm.default), rel=1e-12)
