"""Averages of weights beside PyTorch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.optim.swa_utils import AveragedModel, update_bn
from tests.optim.schedules import advance, close, numbers, optimizer_of, seen
from tests.side_by_side import same_complaint


def model_of(lib: Any, dtype: str = "float64") -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 1))
    return model.to(getattr(lib, dtype))


def fill(lib: Any, model: Any, round_: int) -> None:
    """Give all floating-point tensors of a model values of a round."""
    rng = numpy.random.default_rng(round_)
    with lib.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(lib.tensor(rng.normal(size=tuple(tensor.shape))))
            else:
                tensor.fill_(round_)


def averages(lib: Any, make: Any) -> list[Any]:
    """Return all tensors of an averaged model after each of some rounds."""
    model = model_of(lib)
    fill(lib, model, 0)
    averaged = make(lib, lib.optim.swa_utils, model)
    found = []
    for round_ in range(1, 6):
        fill(lib, model, round_)
        averaged.update_parameters(model)
        found += [(name, tensor.detach().numpy().copy()) for name, tensor in averaged.state_dict().items()]
        if round_ == 3:
            saved, averaged = averaged.state_dict(), make(lib, lib.optim.swa_utils, model)
            averaged.load_state_dict(saved)
    return found


@pytest.mark.torch
@pytest.mark.parametrize(
    "make",
    [
        lambda lib, utils, model: utils.AveragedModel(model),
        lambda lib, utils, model: utils.AveragedModel(model, use_buffers=True),
        lambda lib, utils, model: utils.AveragedModel(model, avg_fn=utils.get_swa_avg_fn()),
        lambda lib, utils, model: utils.AveragedModel(model, avg_fn=utils.get_ema_avg_fn(0.8)),
        lambda lib, utils, model: utils.AveragedModel(model, multi_avg_fn=utils.get_ema_multi_avg_fn(0.8)),
        lambda lib, utils, model: utils.AveragedModel(
            model, multi_avg_fn=utils.get_ema_multi_avg_fn(0.5), use_buffers=True
        ),
        lambda lib, utils, model: utils.AveragedModel(model, multi_avg_fn=utils.get_swa_multi_avg_fn()),
        lambda lib, utils, model: utils.AveragedModel(model, avg_fn=lambda a, b, n: a + b * n),
    ],
)
def test_averages_are_those_of_pytorch(torch: Any, make: Any) -> None:
    for (name, mine), (other, theirs) in zip(averages(gs, make), averages(torch, make), strict=True):
        assert name == other
        assert mine.dtype == theirs.dtype
        # PyTorch computes some shares in single precision.
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def test_the_average_runs_and_leaves_the_model_alone() -> None:
    model = gs.nn.Linear(2, 1)
    before = model.weight.tolist()
    averaged = AveragedModel(model)
    averaged.update_parameters(model)
    assert averaged.module.weight is not model.weight
    gs.nn.init.zeros_(model.weight)
    assert averaged.module.weight.tolist() == before
    x = gs.ones(3, 2)
    assert averaged(x).tolist() == averaged.module(x).tolist()
    assert averaged(x).requires_grad
    assert averaged.module.weight.grad_fn is None


def test_averages_on_a_device(other_device: str) -> None:
    model = model_of(gs)
    for averaged in (AveragedModel(model, device=other_device), AveragedModel(copy.deepcopy(model).to(other_device))):
        source = copy.deepcopy(model).to(averaged.module[0].weight.device)
        for round_ in (1, 2):
            gs.nn.init.constant_(source[0].weight, float(round_))
            averaged.update_parameters(source)
        assert averaged.module[0].weight.device.type == other_device
        assert averaged.module[0].weight.cpu().tolist() == [[1.5, 1.5]] * 3


@pytest.mark.torch
def test_statistics_are_computed_anew_as_pytorch_does(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        model = model_of(lib).eval()
        fill(lib, model, 3)
        rng = numpy.random.default_rng(0)
        batches = [lib.tensor(rng.normal(size=(size, 2)) * 3 + 1) for size in (4, 6, 5)]
        lib.optim.swa_utils.update_bn([batches[0], (batches[1], "label"), [batches[2]]], model)
        assert not model.training
        assert model[1].momentum == 0.1
        found.append([model[1].running_mean.numpy(), model[1].running_var.numpy(), model[1].num_batches_tracked.item()])
    for a, b in zip(*found, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-9)


def test_without_normalization_no_batch_is_asked_for() -> None:
    def loader() -> Any:
        raise AssertionError
        yield

    update_bn(loader(), gs.nn.Linear(1, 1))


@pytest.mark.torch
@pytest.mark.parametrize(
    "settings",
    [
        {"swa_lr": 0.01},
        {"swa_lr": [0.3, 0.001], "anneal_epochs": 4, "anneal_strategy": "linear"},
        {"swa_lr": 0.2, "anneal_epochs": 0},
        {"swa_lr": 0.2, "anneal_epochs": 1},
    ],
)
@pytest.mark.parametrize("tensor", [False, True])
def test_the_way_to_the_constant_learning_rate(torch: Any, settings: dict[str, Any], tensor: bool) -> None:
    found = []
    for lib in (gs, torch):
        scheduler = lib.optim.swa_utils.SWALR(optimizer_of(lib, tensor=tensor), **settings)
        rates = [seen(scheduler)]
        for step in range(15):
            if step == 3:
                saved = copy.deepcopy((scheduler.state_dict(), scheduler.optimizer.state_dict()))
                optimizer = optimizer_of(lib, tensor=tensor)
                scheduler = lib.optim.swa_utils.SWALR(optimizer, **settings)
                scheduler.load_state_dict(saved[0])
                optimizer.load_state_dict(saved[1])
            advance(scheduler, step)
            rates.append(seen(scheduler))
        found.append([*rates, numbers(scheduler.state_dict())])
    close(*found)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, utils: utils.get_ema_avg_fn(1.5),
        lambda lib, utils: utils.get_ema_multi_avg_fn(-1),
        lambda lib, utils: utils.AveragedModel(
            model_of(lib), avg_fn=utils.get_ema_avg_fn(), multi_avg_fn=utils.get_ema_multi_avg_fn()
        ),
        lambda lib, utils: utils.SWALR(optimizer_of(lib), [0.1]),
        lambda lib, utils: utils.SWALR(optimizer_of(lib), 0.1, anneal_strategy="steep"),
        lambda lib, utils: utils.SWALR(optimizer_of(lib), 0.1, anneal_epochs=-1),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.optim.swa_utils))
