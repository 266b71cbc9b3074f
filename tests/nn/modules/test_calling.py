"""Hooks of modules and the events they cause, beside PyTorch: what is called, in which order, with which values."""

from __future__ import annotations

from collections import namedtuple
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


# --- what hooks see and return ----------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "product double")


def scaled(lib: Any, outputs: Any = None) -> Any:
    """Return a module that multiplies by a parameter of twos."""

    class Scaled(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(lib.full((2,), 2.0))

        def forward(self, x: Any) -> Any:
            return x * self.weight if outputs is None else outputs(x * self.weight, x * 2)

    return Scaled()


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("returned", [(None,), (None, None), ()])
def test_where_no_input_requires_grad_a_hook_may_return_nothing_but_none(torch: Any, returned: Any) -> None:
    for lib in (gs, torch):
        module = scaled(lib)
        module.register_full_backward_hook(lambda *_: returned)
        module(lib.ones(2)).sum().backward()
        assert module.weight.grad.tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_where_no_input_requires_grad_gradients_have_nowhere_to_go(torch: Any) -> None:
    def program(lib: Any) -> None:
        module = scaled(lib)
        module.register_full_backward_hook(lambda *_: (lib.ones(2),))
        module(lib.ones(2)).sum().backward()

    same_complaint(torch, program)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.filterwarnings("ignore:For backward hooks to be called")
@pytest.mark.parametrize("inputs_require_grad", [False, True])
@pytest.mark.parametrize("kind", [Pair, lambda *parts: parts, lambda *parts: list(parts)])
def test_the_output_keeps_its_type_under_hooks(torch: Any, kind: Any, inputs_require_grad: bool) -> None:
    found = []
    for lib in (gs, torch):
        calls: list[Any] = []
        module = scaled(lib, kind)
        module.register_full_backward_hook(lambda _, ins, outs, calls=calls: calls.append((len(ins), len(outs))))
        module.register_full_backward_pre_hook(lambda _, outs, calls=calls: calls.append(len(outs)))
        module.register_forward_hook(lambda _, ins, output, calls=calls: calls.append(type(output).__name__))
        x = lib.ones(2, requires_grad=inputs_require_grad)
        output = module(x)
        (output[0].sum() + output[1].sum()).backward()
        found.append((type(output), calls, told(module.weight.grad), told(x.grad)))
    assert found[0] == found[1]
    assert found[0][0] is type(kind(1, 2))


def test_a_gradient_that_a_pre_hook_took_away_stays_away(torch: Any) -> None:
    for lib in (gs, torch):
        module = scaled(lib)
        module.register_full_backward_pre_hook(lambda *_: (None,))
        module(lib.ones(2, requires_grad=True)).sum().backward()
        assert module.weight.grad is None


def test_gradients_that_a_pre_hook_returns_are_counted(torch: Any) -> None:
    def program(lib: Any) -> None:
        module = scaled(lib)
        module.register_full_backward_pre_hook(lambda *_: (None, None))
        module(lib.ones(2, requires_grad=True)).sum().backward()

    same_complaint(torch, program)


def test_listeners_alone_do_not_warn_of_outputs_that_are_no_tensors() -> None:
    with events.subscribe(lambda event: None, events.ModuleBackward):
        assert scaled(gs, lambda *parts: {"parts": parts})(gs.ones(2)).keys() == {"parts"}


# --- how a call is implemented ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["gradscope", "torch"])
def test_a_call_may_be_written_around_its_implementation(library: str) -> None:
    lib = pytest.importorskip(library)
    calls = []

    class Around(lib.nn.Linear):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            calls.append("before")
            output = self._call_impl(*args, **kwargs)
            calls.append("after")
            return output

    class Instead(lib.nn.Linear):
        def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
            calls.append("instead")
            return super()._call_impl(*args, **kwargs)

    for kind in (Around, Instead):
        module = kind(2, 1)
        module.register_forward_hook(lambda *_: calls.append("hook"))
        lib.nn.Sequential(module)(lib.ones(1, 2))
    assert calls == ["before", "hook", "after", "instead", "hook"]
