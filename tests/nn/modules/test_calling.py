"""Hooks of modules and the events they cause, beside PyTorch: what is called, in which order, with which values."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from gradscope.runtime import events
from tests.side_by_side import same_complaint

rng = numpy.random.default_rng(0)
WEIGHTS = [rng.normal(size=s) for s in ((4, 3), (4,), (2, 4), (2,))]
X = rng.normal(size=(5, 3))


def network(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
    for parameter, array in zip(model.parameters(), WEIGHTS, strict=True):
        parameter.data = lib.tensor(array)
    return model


def told(value: Any) -> Any:
    """Return what identifies tensors in either library."""
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    return pytest.approx(float(value.detach().numpy().sum()))


def all_hooks(lib: Any) -> list[Any]:
    log: list[Any] = []
    model, x = network(lib), lib.tensor(X, requires_grad=True)
    module = lib.nn.modules.module
    handles = [
        model[0].register_forward_pre_hook(lambda m, a: log.append(("pre", told(a)))),
        model[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,), prepend=True),
        model[0].register_forward_hook(lambda m, a, o: log.append(("forward", told(o)))),
        model[1].register_forward_hook(lambda m, a, o: o * 3),
        model[1].register_full_backward_hook(lambda m, gi, go: log.append(("full 1", told(gi), told(go)))),
        model[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 2,)),
        model[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,)),
        model[2].register_full_backward_hook(lambda m, gi, go: log.append(("full 2", told(gi), told(go)))),
        model[0].register_full_backward_hook(lambda m, gi, go: log.append(("full 0", told(gi), told(go)))),
        module.register_module_forward_pre_hook(lambda m, a: log.append(("all pre", type(m).__name__))),
        module.register_module_forward_hook(lambda m, a, o: log.append(("all forward", type(m).__name__))),
        module.register_module_full_backward_pre_hook(lambda m, go: log.append(("all backward pre", type(m).__name__))),
        module.register_module_full_backward_hook(lambda m, gi, go: log.append(("all full", type(m).__name__))),
    ]
    y = model(x)
    log.append(y.grad_fn.name())
    y.sum().backward()
    log += [told(x.grad), *(told(p.grad) for p in model.parameters())]
    for handle in handles:
        handle.remove()
    count = len(log)
    model(x).sum().backward()
    assert len(log) == count
    return log


@pytest.mark.torch
def test_hooks_are_called_as_in_pytorch(torch: Any) -> None:
    assert all_hooks(gs) == all_hooks(torch)


@pytest.mark.torch
def test_the_non_full_backward_hook(torch: Any) -> None:
    def run(lib: Any) -> list[Any]:
        log: list[Any] = []
        model = network(lib)
        model.register_backward_hook(lambda m, gi, go: log.append((len(gi), told(go))))
        model(lib.tensor(X)).sum().backward()
        return log

    assert run(gs) == run(torch)


def test_the_modules_hook_comes_before_the_tensors_own() -> None:
    log: list[str] = []
    model = network(gs)
    model.register_backward_hook(lambda m, gi, go: log.append("module"))
    x = gs.tensor(X, requires_grad=True)
    x.register_hook(lambda g: log.append("tensor"))
    model(x).sum().backward()
    assert log == ["module", "tensor"]


def test_without_gradients_of_inputs_the_full_hook_fires_at_the_output() -> None:
    log: list[Any] = []
    model = network(gs)
    model[0].register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].shape)))
    with pytest.warns(UserWarning, match="Full backward hook is firing"):
        model(gs.tensor(X)).sum().backward()
    assert log == [((None,), (5, 4))]


def test_writing_the_output_of_a_module_with_full_hooks_is_refused() -> None:
    model = network(gs)
    model[0].register_full_backward_hook(lambda m, gi, go: None)
    y = model[0](gs.tensor(X, requires_grad=True))
    with pytest.raises(RuntimeError, match="Output 0 of BackwardHookFunction is a view"):
        y.add_(1)


def test_hooks_with_keywords_and_hooks_that_are_always_called() -> None:
    class Adder(nn.Module):
        def forward(self, x: Any, *, y: Any = None) -> Any:
            if y is None:
                raise ValueError("no y")
            return x + y

    log: list[Any] = []
    module = Adder()
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"y": kwargs["y"] * 10}), with_kwargs=True)
    module.register_forward_hook(
        lambda m, args, kwargs, output: log.append((sorted(kwargs), output)), with_kwargs=True, always_call=True
    )
    assert module(gs.ones(1), y=gs.ones(1)).item() == 11.0
    handle = module.register_forward_pre_hook(lambda m, args, kwargs: (args, {}), with_kwargs=True)
    with pytest.raises(ValueError, match="no y"):
        module(gs.ones(1), y=gs.ones(1))
    handle.remove()
    assert [keys for keys, _ in log] == [["y"], []]
    assert log[1][1] is None


def test_outputs_that_are_no_tensors_warn() -> None:
    class Named(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": x * 2}

    module = Named()
    module.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        module(gs.ones(2, requires_grad=True))


@pytest.mark.torch
def test_the_two_kinds_do_not_mix(torch: Any) -> None:
    def mix(lib: Any) -> None:
        module = lib.nn.Linear(1, 1)
        module.register_full_backward_hook(lambda *a: None)
        module.register_backward_hook(lambda *a: None)

    same_complaint(torch, mix)


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_of_forward_and_backward() -> None:
    log: list[tuple[str, str]] = []
    model, x = network(gs), gs.tensor(X, requires_grad=True)
    kinds = (events.ModuleForwardPre, events.ModuleForward, events.ModuleBackwardPre, events.ModuleBackward)
    with events.subscribe(lambda e: log.append((type(e).__name__, type(e.module).__name__)), *kinds):
        model(x).sum().backward()
    inner = ["Linear", "ReLU", "Linear"]
    assert [name for kind, name in log if kind == "ModuleForwardPre"] == ["Sequential", *inner]
    assert [name for kind, name in log if kind == "ModuleForward"] == [*inner, "Sequential"]
    assert [name for kind, name in log if kind == "ModuleBackwardPre"] == ["Sequential", *inner]
    assert [name for kind, name in log if kind == "ModuleBackward"] == [*inner, "Sequential"]


def test_listening_changes_no_number() -> None:
    found = []
    for listening in (False, True):
        model, x = network(gs), gs.tensor(X, requires_grad=True)
        kinds = (events.ModuleForward, events.ModuleBackward) if listening else ()
        with events.subscribe(lambda e: None, *kinds):
            model(x).sum().backward()
        found.append([x.grad.tolist(), *(p.grad.tolist() for p in model.parameters())])
    assert found[0] == found[1]


def test_backward_events_need_no_gradient_of_the_input() -> None:
    log: list[Any] = []
    with events.subscribe(log.append, events.ModuleBackward):
        nn.Linear(3, 1)(gs.ones(2, 3)).sum().backward()
    assert [type(e.module) for e in log] == [nn.Linear]
    assert log[0].grad_output[0].tolist() == [[1.0], [1.0]]
    assert log[0].grad_input == (None,)
