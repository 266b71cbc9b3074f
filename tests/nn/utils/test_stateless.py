"""A module as a function, fused layers, modules without initial values: as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.nn.utils import skip_init
from gradscope.nn.utils.stateless import functional_call
from tests.side_by_side import same_complaint


def call(lib: Any, *args: Any, **kwargs: Any) -> Any:
    return (functional_call if lib is gs else lib.func.functional_call)(*args, **kwargs)


def tied(lib: Any) -> Any:
    module = lib.nn.Sequential(lib.nn.Linear(3, 3, bias=False), lib.nn.Linear(3, 3, bias=False))
    module[1].weight = module[0].weight
    return module


def full(lib: Any, value: float = 1.0) -> Any:
    return {"weight": lib.full((2, 3), value), "bias": lib.zeros(2)}


@pytest.mark.torch
@pytest.mark.parametrize(
    "run",
    [
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), full(lib), x),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), full(lib), (x,)),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), full(lib), kwargs={"input": x}),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), ({"bias": lib.ones(2)}, {"weight": lib.ones(2, 3)}), x),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), {**full(lib), "other": x}, x),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), {"weight": lib.ones(4, 3), "bias": lib.zeros(4)}, x),
        lambda lib, x: call(lib, tied(lib), {"0.weight": lib.eye(3) * 2}, x, strict=True),
        lambda lib, x: call(
            lib, tied(lib), {"0.weight": lib.eye(3) * 2, "1.weight": lib.eye(3) * 3}, x, tie_weights=False
        ),
    ],
)
def test_functional_call(torch: Any, run: Any) -> None:
    values = [[1.0, 2.0, 3.0]]
    assert run(gs, gs.tensor(values)).tolist() == run(torch, torch.tensor(values)).tolist()


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), ({"weight": x}, {"weight": x}), x),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), {"no.weight": x}, x),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), {"weight": x}, x, strict=True),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), {**full(lib), "q": x}, x, strict=True),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), {"weight": 3}, x),
        lambda lib, x: call(lib, lib.nn.Linear(3, 2), 3, x),
        lambda lib, x: call(lib, tied(lib), {"0.weight": lib.eye(3), "1.weight": lib.eye(3) * 2}, x),
    ],
)
def test_refusals(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.ones(1, 3)))


def test_the_module_is_left_as_it_was_and_gradients_go_to_what_was_given() -> None:
    module = gs.nn.Linear(3, 2)
    own = module.weight
    given = {"weight": gs.ones(2, 3, requires_grad=True)}
    functional_call(module, given, gs.ones(1, 3)).sum().backward()
    assert given["weight"].grad.tolist() == [[1.0] * 3] * 2
    assert module.weight is own
    assert own.grad is None
    with pytest.raises(RuntimeError):
        functional_call(module, given, gs.ones(1, 4))
    assert module.weight is own


@pytest.mark.torch
def test_buffers_change_where_they_were_given(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        module = lib.nn.BatchNorm1d(2)
        given = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
        call(lib, module, given, lib.arange(4.0).reshape(2, 2))
        found.append(({name: tensor.tolist() for name, tensor in given.items()}, module.running_mean.tolist()))
    assert found[0] == found[1]


def pair(lib: Any, kind: str, **options: Any) -> Any:
    layers = {
        "conv": lambda: lib.nn.Conv1d(2, 3, 2, **options),
        "transposed": lambda: lib.nn.ConvTranspose1d(2, 3, 2, **options),
        "linear": lambda: lib.nn.Linear(4, 3, **options),
    }
    layer, norm = layers[kind](), lib.nn.BatchNorm1d(3)
    with lib.no_grad():
        for tensor in (*layer.parameters(), *norm.parameters(), norm.running_mean, norm.running_var):
            tensor.copy_(lib.arange(1.0, tensor.numel() + 1).reshape(tuple(tensor.shape)).sin() + 1.5)
    return layer.eval(), norm.eval()


@pytest.mark.torch
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["conv", "transposed", "linear"])
def test_fused(torch: Any, kind: str, bias: bool) -> None:
    found = []
    for lib in (gs, torch):
        layer, norm = pair(lib, kind, bias=bias)
        U = lib.nn.utils
        fused = (
            U.fuse_linear_bn_eval(layer, norm)
            if kind == "linear"
            else U.fuse_conv_bn_eval(layer, norm, transpose=kind == "transposed")
        )
        x = lib.ones(2, 4) if kind == "linear" else lib.ones(2, 2, 4)
        numpy.testing.assert_allclose(fused(x).detach().numpy(), norm(layer(x)).detach().numpy(), rtol=1e-5)
        found.append((fused.weight, fused.bias))
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)
        assert type(mine) is gs.nn.Parameter


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, U: U.fuse_conv_bn_eval(lib.nn.Conv1d(2, 3, 1), lib.nn.BatchNorm1d(3)),
        lambda lib, U: U.fuse_linear_bn_eval(lib.nn.Linear(2, 3).eval(), lib.nn.BatchNorm1d(4).eval()),
        lambda lib, U: U.fuse_conv_bn_eval(
            lib.nn.Conv1d(2, 3, 1).eval(), lib.nn.BatchNorm1d(3, track_running_stats=False).eval()
        ),
        lambda lib, U: U.skip_init(lib.nn.ReLU),
        lambda lib, U: U.skip_init(3),
    ],
)
def test_refusals_of_fusion_and_skip_init(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.nn.utils))


def test_skip_init_draws_nothing() -> None:
    gs.manual_seed(1)
    before = gs.get_rng_state()
    module = skip_init(gs.nn.Conv2d, 2, 3, kernel_size=2, dtype=gs.float64)
    assert gs.equal(gs.get_rng_state(), before)
    assert type(module) is gs.nn.Conv2d
    assert module.weight.shape == (3, 2, 2, 2)
    assert module.weight.dtype is gs.float64
    module.reset_parameters()
    assert not gs.equal(gs.get_rng_state(), before)


def _shifting(lib: Any) -> Any:
    class Shift(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shift, self.scale, self.count = lib.ones(2), None, 3

        def forward(self, x: Any) -> Any:
            return x * self.scale + self.shift

    return Shift()


@pytest.mark.torch
def test_a_tensor_that_is_neither_parameter_nor_buffer_is_replaced(torch: Any) -> None:
    for lib in (gs, torch):
        module = _shifting(lib)
        given = {"shift": lib.zeros(2), "scale": lib.full((2,), 4.0)}
        assert lib.func.functional_call(module, given, (lib.ones(2),)).tolist() == [4.0, 4.0]
        assert (module.shift.tolist(), module.scale) == ([1.0, 1.0], None)
        with pytest.raises(TypeError, match="attribute `count`: 3 is not an instance of"):
            lib.func.functional_call(module, {"count": lib.zeros(2)}, (lib.ones(2),))
