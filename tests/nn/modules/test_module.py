"""Module: what it holds, how it is walked, converted, copied and shown."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import same_complaint


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(gs.tensor(2.0))
        self.register_buffer("calls", gs.tensor(0.0))
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x) * self.factor


def network(lib: Any) -> Any:
    shared = lib.nn.Linear(3, 3)
    return lib.nn.Sequential(shared, lib.nn.ReLU(), shared, lib.nn.ModuleList([lib.nn.BatchNorm1d(3)]))


def test_attributes_are_registered() -> None:
    module = Scale()
    assert [name for name, _ in module.named_parameters()] == ["factor", "inner.weight", "inner.bias"]
    assert [name for name, _ in module.named_buffers()] == ["calls"]
    assert [name for name, _ in module.named_modules()] == ["", "inner"]
    assert [name for name, _ in module.named_children()] == ["inner"]
    assert {"factor", "calls", "inner"} <= set(dir(module))


def test_attributes_change_and_go() -> None:
    module = Scale()
    module.factor = None
    assert [name for name, _ in module.named_parameters()] == ["inner.weight", "inner.bias"]
    module.factor = nn.Parameter(gs.ones(1))
    del module.inner
    assert not hasattr(module, "inner")
    assert list(module.children()) == []
    module.calls = gs.ones(3)
    assert dict(module.named_buffers())["calls"].shape == (3,)
    module.plain = 3
    module.plain = nn.Linear(1, 1)
    assert "plain" not in module.__dict__
    assert isinstance(module.get_submodule("plain"), nn.Linear)


@pytest.mark.torch
def test_walks_are_those_of_pytorch(torch: Any) -> None:
    mine, theirs = network(gs), network(torch)
    for walk in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [name for name, _ in getattr(mine, walk)()] == [name for name, _ in getattr(theirs, walk)()], walk
    for walk in ("named_parameters", "named_modules"):
        names = [[n for n, _ in getattr(m, walk)(prefix="net", remove_duplicate=False)] for m in (mine, theirs)]
        assert names[0] == names[1]
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert repr(mine) == repr(theirs)


def test_paths() -> None:
    module = nn.Sequential(Scale())
    assert module.get_submodule("0.inner") is module[0].inner
    assert module.get_submodule("") is module
    assert module.get_parameter("0.inner.weight") is module[0].inner.weight
    assert module.get_buffer("0.calls") is module[0].calls
    for wrong in (lambda: module.get_parameter("0.calls"), lambda: module.get_buffer("0.factor")):
        with pytest.raises(AttributeError):
            wrong()


def test_modes_and_apply() -> None:
    module = network(gs)
    assert module.eval() is module
    assert not any(m.training for m in module.modules())
    module.train()
    seen: list[str] = []
    module.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "BatchNorm1d", "ModuleList", "Sequential"]


def test_zero_grad() -> None:
    module = nn.Linear(2, 1)
    module(gs.ones(1, 2)).sum().backward()
    module.zero_grad(set_to_none=False)
    assert module.weight.grad.tolist() == [[0.0, 0.0]]
    module.zero_grad()
    assert module.weight.grad is None


def test_conversion_keeps_the_parameters() -> None:
    module = nn.BatchNorm1d(2)
    weight = module.weight
    module(gs.rand(3, 2)).sum().backward()
    assert module.to(gs.float64) is module
    assert module.weight is weight
    assert (weight.dtype, weight.grad.dtype, module.running_mean.dtype) == (gs.float64,) * 3
    assert module.num_batches_tracked.dtype is gs.int64
    assert module.float().weight.dtype is gs.float32
    assert module.half().weight.dtype is gs.float16
    module.requires_grad_(False)
    assert not any(p.requires_grad for p in module.parameters())


def test_copies_are_independent() -> None:
    module = Scale()
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert type(other.factor) is nn.Parameter
        other.factor.data.zero_()
        assert module.factor.item() == 2.0
        assert other(gs.ones(1, 2)).tolist() == [[0.0, 0.0]]


def test_registration_hooks_replace() -> None:
    from gradscope.nn.modules.module import (
        register_module_buffer_registration_hook,
        register_module_module_registration_hook,
        register_module_parameter_registration_hook,
    )

    seen: list[str] = []
    with (
        register_module_parameter_registration_hook(lambda m, name, p: nn.Parameter(p.detach() * 0)),
        register_module_buffer_registration_hook(lambda m, name, b: seen.append(name)),
        register_module_module_registration_hook(lambda m, name, c: seen.append(name)),
    ):
        module = Scale()
    assert module.factor.item() == 0.0
    assert seen == ["calls", "inner"]


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, m: setattr(m, "weight", lib.zeros(3, 2)),
        lambda lib, m: m.nope,
        lambda lib, m: m.register_parameter("a.b", None),
        lambda lib, m: m.register_parameter("", None),
        lambda lib, m: m.register_parameter("forward", None),
        lambda lib, m: m.register_parameter("w", lib.zeros(2)),
        lambda lib, m: m.register_buffer("w", 3),
        lambda lib, m: m.register_buffer("weight", None),
        lambda lib, m: m.add_module("weight", None),
        lambda lib, m: m.add_module("a", 3),
        lambda lib, m: m.add_module("a.b", None),
        lambda lib, m: m.add_module("", None),
        lambda lib, m: m.add_module(3, None),
        lambda lib, m: m.get_submodule("x"),
        lambda lib, m: m.train(3),
        lambda lib, m: m.to(lib.int64),
        lambda lib, m: m(lib.zeros(1, 4)),
        lambda lib, m: lib.nn.Module()(3),
        lambda lib, m: lib.nn.Module(3),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.nn.Linear(2, 3)))


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["Parameter", "Linear"])
def test_assigning_before_init(torch: Any, kind: str) -> None:
    def make(lib: Any) -> None:
        class Forgetful(lib.nn.Module):
            def __init__(self) -> None:
                self.part = lib.nn.Linear(1, 1) if kind == "Linear" else lib.nn.Parameter(lib.zeros(1))

        Forgetful()

    same_complaint(torch, make)
