"""Lazy modules: shown, loaded and initialized as in PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import same_complaint

LAYERS = {
    "linear": (lambda n: n.LazyLinear(3), (2, 5)),
    "linear without bias": (lambda n: n.LazyLinear(3, bias=False), (5,)),
    "conv1d": (lambda n: n.LazyConv1d(4, 2, stride=2), (2, 3, 6)),
    "conv2d": (lambda n: n.LazyConv2d(4, 2, padding=1, groups=2, bias=False), (2, 6, 5, 5)),
    "conv3d": (lambda n: n.LazyConv3d(2, 2), (1, 3, 3, 3, 3)),
    "transposed 1d": (lambda n: n.LazyConvTranspose1d(4, 2), (2, 3, 6)),
    "transposed": (lambda n: n.LazyConvTranspose2d(4, 3, 2, 1, 1, 2), (2, 6, 3, 3)),
    "transposed 3d": (lambda n: n.LazyConvTranspose3d(2, 2), (1, 3, 2, 2, 2)),
    "batch norm 1d": (lambda n: n.LazyBatchNorm1d(), (4, 3)),
    "batch norm": (lambda n: n.LazyBatchNorm2d(momentum=None, bias=False), (2, 3, 2, 2)),
    "batch norm 3d": (lambda n: n.LazyBatchNorm3d(affine=False), (2, 3, 2, 2, 2)),
    "instance norm 1d": (lambda n: n.LazyInstanceNorm1d(), (2, 3, 4)),
    "instance norm": (lambda n: n.LazyInstanceNorm2d(track_running_stats=False), (2, 3, 2, 2)),
    "instance norm 3d": (lambda n: n.LazyInstanceNorm3d(affine=False), (2, 3, 2, 2, 2)),
}


def shown(lib: Any, make: Any, shape: Any) -> list[Any]:
    layer = make(lib.nn)
    found: list[Any] = [repr(layer), list(layer.state_dict()), str(next(iter(layer.state_dict().values())))]
    found.append(layer.has_uninitialized_params())
    layer.double()
    y = layer(lib.ones(*shape, dtype=lib.float64))
    found += [repr(layer), type(layer).__name__, tuple(y.shape), hasattr(layer, "initialize_parameters")]
    found += [(name, tuple(t.shape), str(t.dtype), type(t).__name__) for name, t in layer.named_parameters()]
    found += [(name, tuple(t.shape), str(t.dtype), type(t).__name__) for name, t in layer.named_buffers()]
    return found


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_lazy_layers_are_those_of_pytorch(torch: Any, name: str) -> None:
    mine, theirs = (shown(lib, *LAYERS[name]) for lib in (gs, torch))
    assert str(mine).replace("gradscope", "torch") == str(theirs)


def test_a_lazy_network_trains() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    weight = model[4].weight
    model(gs.rand(2, 3, 6, 6)).sum().backward()
    assert [type(m) for m in model] == [nn.Conv2d, nn.ReLU, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert model[4].weight is weight
    assert type(weight) is nn.Parameter
    before = weight.detach().clone()
    optimizer.step()
    assert weight.tolist() != before.tolist()
    assert 0 < before.abs().max().item() <= 1 / 64**0.5


def test_a_state_is_loaded_before_the_first_call() -> None:
    source, layer = nn.Linear(4, 3), nn.LazyLinear(3)
    layer.load_state_dict(source.state_dict())
    assert not layer.has_uninitialized_params()
    x = gs.rand(2, 4)
    assert layer(x).tolist() == source(x).tolist()
    assert repr(layer) == repr(source)


def test_copies_and_conversions_wait_too(other_device: str) -> None:
    layer = nn.LazyBatchNorm1d()
    other = copy.deepcopy(layer).double().to(other_device)
    assert nn.parameter.is_lazy(other.weight)
    assert (other.weight.dtype, other.running_mean.device.type) == (gs.float64, other_device)
    assert layer.weight.dtype is gs.float32
    other(gs.rand(3, 2, dtype=gs.float64).to(other_device))
    assert other.weight.device.type == other.running_mean.device.type == other_device
    assert layer.has_uninitialized_params()


def test_uninitialized_parameters_refuse_to_compute() -> None:
    parameter = nn.UninitializedParameter()
    assert (repr(parameter), parameter.requires_grad, parameter.is_leaf) == ("<UninitializedParameter>", True, True)
    for use in (lambda: parameter + 1, lambda: gs.ones(2) * parameter, lambda: parameter.sum(), lambda: len(parameter)):
        with pytest.raises((ValueError, RuntimeError), match="uninitialized parameter"):
            use()
    parameter.materialize((2, 3))
    assert parameter.shape == (2, 3)
    buffer = nn.UninitializedBuffer(dtype=gs.float64)
    buffer.materialize((2,), dtype=gs.int64)
    assert (type(buffer), buffer.dtype) == (gs.Tensor, gs.int64)


@pytest.mark.torch
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_and_its_original_are_initialized_apart(torch: Any, copied: Any) -> None:
    for lib in (gs, torch):
        layer = lib.nn.LazyLinear(3)
        other = copied(layer)
        for made, width in ((other, 5), (layer, 4)):
            assert [tuple(made(lib.ones(2, width)).shape) for _ in range(2)] == [(2, 3), (2, 3)]
            assert type(made) is lib.nn.Linear
            assert made.in_features == width


def test_a_lazy_buffer_is_pickled() -> None:
    layer = pickle.loads(pickle.dumps(nn.LazyBatchNorm1d(dtype=gs.float64)))
    layer(gs.ones(2, 3, dtype=gs.float64))
    assert layer.running_mean.shape == (3,)
    assert layer.running_mean.dtype is gs.float64


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.LazyLinear(3).weight.shape,
        lambda lib: lib.nn.Linear(4, 3).load_state_dict(lib.nn.LazyLinear(3).state_dict()),
        lambda lib: lib.nn.LazyConv2d(4, 3, groups=2)(lib.zeros(1, 3, 5, 5)),
    ],
)
def test_wrong_uses_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_images_are_wanted() -> None:
    with pytest.raises(RuntimeError, match="input to LazyConv2d, but got input of size"):
        nn.LazyConv2d(3, 2)(gs.zeros(2, 2))
