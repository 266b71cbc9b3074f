"""GradScaler: factors, skipped steps and states, step for step beside PyTorch's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.amp.grad_scaler import OptState
from tests.side_by_side import same_complaint

INF, NAN = float("inf"), float("nan")


def setup(lib: Any, count: int = 1, device: str = "cpu", **options: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return a scaler that grows every two steps, parameters, and an optimizer for each."""
    options = {"init_scale": 8.0, "growth_interval": 2, **options}
    scaler = lib.amp.GradScaler(device, **options)
    weights = [lib.ones(2, device=device).requires_grad_() for _ in range(count)]
    return scaler, weights, [lib.optim.SGD([w], lr=0.5) for w in weights]


def course(lib: Any, factors: list[list[float]]) -> list[Any]:
    """Return scaler and weights after each of some steps, whose gradients are `factors`."""
    scaler, weights, optimizers = setup(lib, len(factors[0]))
    found: list[Any] = []
    for row in factors:
        for w, optimizer, factor in zip(weights, optimizers, row, strict=True):
            optimizer.zero_grad()
            scaler.scale((w * factor).sum()).backward()
        results = [scaler.step(optimizer) for optimizer in optimizers]
        scaler.update()
        found.append((results, scaler.state_dict(), [w.tolist() for w in weights]))
    return found


@pytest.mark.torch
@pytest.mark.parametrize(
    "factors",
    [
        [[1.0], [2.0], [1.0], [0.5], [1.0]],
        [[1.0], [INF], [1.0], [1.0], [NAN], [INF], [1.0]],
        [[1.0, 1.0], [INF, 1.0], [1.0, NAN], [1.0, 1.0], [1.0, 2.0]],
    ],
)
def test_factors_and_steps_are_those_of_pytorch(torch: Any, factors: list[list[float]]) -> None:
    assert course(gs, factors) == course(torch, factors)


@pytest.mark.torch
def test_gradients_are_unscaled_once_and_clipped_between(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        scaler, (w,), (optimizer,) = setup(lib)
        scaler.scale((w * 3).sum()).backward()
        scaler.unscale_(optimizer)
        seen = w.grad.tolist()
        lib.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update()
        found.append((seen, numpy.round(w.tolist(), 6).tolist()))
    assert found[0] == found[1]
    assert found[0][0] == [3.0, 3.0]


@pytest.mark.torch
def test_a_factor_does_not_grow_to_infinity(torch: Any) -> None:
    for lib in (gs, torch):
        scaler, (w,), (optimizer,) = setup(lib, init_scale=3e38, growth_interval=1)
        scaler.scale((w * 0).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == numpy.float32(3e38)
        assert scaler._get_growth_tracker() == 0


def _scaled(lib: Any) -> tuple[Any, Any]:
    scaler, (w,), (optimizer,) = setup(lib)
    scaler.scale(w.sum()).backward()
    return scaler, optimizer


def _step_twice(lib: Any) -> None:
    scaler, optimizer = _scaled(lib)
    scaler.step(optimizer)
    scaler.step(optimizer)


def _unscale_twice(lib: Any) -> None:
    scaler, optimizer = _scaled(lib)
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def _unscale_late(lib: Any) -> None:
    scaler, optimizer = _scaled(lib)
    scaler.step(optimizer)
    scaler.unscale_(optimizer)


def _closure(lib: Any) -> None:
    scaler, optimizer = _scaled(lib)
    scaler.step(optimizer, closure=lambda: 1.0)


def _no_gradient(lib: Any) -> None:
    scaler, optimizer = _scaled(lib)
    optimizer.zero_grad()
    scaler.step(optimizer)


def _half_gradient(lib: Any) -> None:
    scaler = lib.amp.GradScaler("cpu")
    w = lib.ones(2, dtype=lib.float16, requires_grad=True)
    scaler.scale(w.sum()).backward()
    scaler.step(lib.optim.SGD([w], lr=0.1))


def _pickled_in_between(lib: Any) -> None:
    scaler, optimizer = _scaled(lib)
    scaler.step(optimizer)
    pickle.dumps(scaler)


@pytest.mark.torch
@pytest.mark.parametrize(
    "call",
    [
        _step_twice,
        _unscale_twice,
        _unscale_late,
        _closure,
        _no_gradient,
        _half_gradient,
        _pickled_in_between,
        lambda lib: setup(lib)[0].step(setup(lib)[2][0]),
        lambda lib: setup(lib)[0].unscale_(setup(lib)[2][0]),
        lambda lib: setup(lib)[0].update(),
        lambda lib: _scaled(lib)[0].update(),
        lambda lib: _scaled(lib)[0].update(lib.ones(2)),
        lambda lib: lib.amp.GradScaler("cpu", growth_factor=1.0),
        lambda lib: lib.amp.GradScaler("cpu", backoff_factor=1.0),
        lambda lib: setup(lib)[0].scale(3.0),
        lambda lib: setup(lib)[0].load_state_dict({}),
    ],
)
def test_wrong_calls_raise_as_in_pytorch(torch: Any, call: Any) -> None:
    same_complaint(torch, call)


def test_outputs_of_several_shapes_are_scaled() -> None:
    scaler, _, _ = setup(gs)
    a = gs.ones(2)
    scaled = scaler.scale([a, (a, a)])
    assert [type(part) for part in scaled] == [gs.Tensor, tuple]
    assert scaled[1][1].tolist() == [8.0, 8.0]
    assert [t.tolist() for t in scaler.scale(iter([a]))] == [[8.0, 8.0]]


def test_the_factor_can_be_set() -> None:
    scaler, _ = _scaled(gs)
    scaler.update(4.0)
    assert scaler.get_scale() == 4.0
    scaler.update(gs.tensor(2.0))
    assert scaler.get_scale() == 2.0


@pytest.mark.torch
def test_a_state_goes_from_one_library_to_the_other(torch: Any) -> None:
    scaler, optimizer = _scaled(torch)
    scaler.step(optimizer)
    scaler.update()
    mine = gs.amp.GradScaler("cpu")
    mine.load_state_dict(scaler.state_dict())
    assert mine.state_dict() == scaler.state_dict()
    again = pickle.loads(pickle.dumps(mine))
    assert again.state_dict() == mine.state_dict()
    used, _ = _scaled(gs)
    used.load_state_dict(scaler.state_dict())
    assert used.state_dict() == scaler.state_dict()


def test_a_disabled_scaler_does_nothing() -> None:
    scaler, (w,), (optimizer,) = setup(gs, enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer, lambda: 5.0) == 5.0
    scaler.update()
    assert scaler.state_dict() == {}
    assert scaler.get_scale() == 1.0
    assert not scaler.is_enabled()
    scaler.load_state_dict({})
    assert w.tolist() == [0.5, 0.5]


def test_without_cuda_it_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradscope.runtime.memory.device.cuda_is_available", lambda: False)
    with pytest.warns(UserWarning, match="CUDA is not available.  Disabling"):
        assert not gs.amp.GradScaler().is_enabled()
    with (
        pytest.warns(FutureWarning, match="Please use `gradscope.amp.GradScaler"),
        pytest.warns(UserWarning, match="CUDA"),
    ):
        gs.cuda.amp.GradScaler()


class Aware(gs.optim.SGD):
    """Unscales by itself."""

    _step_supports_amp_scaling = True

    def step(self, closure: Any = None) -> Any:
        self.told = (None if self.grad_scale is None else self.grad_scale.item(), self.found_inf.item())
        return super().step(closure)


def test_an_optimizer_that_unscales_by_itself_is_told_the_factor() -> None:
    scaler, (w,), _ = setup(gs)
    optimizer = Aware([w], lr=0.5)
    for factor, told in ((1.0, (8.0, 0.0)), (INF, (8.0, 1.0))):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        assert optimizer.told == told
        assert not hasattr(optimizer, "grad_scale")
        scaler.update()
    assert scaler.get_scale() == 4.0


def test_it_works_on_other_devices_without_looking_at_the_host(other_device: str) -> None:
    scaler, (w,), (optimizer,) = setup(gs, device=other_device)
    scaler.scale((w * 3).sum()).backward()
    scaler.unscale_(optimizer)
    assert scaler._per_optimizer_states[id(optimizer)]["stage"] is OptState.UNSCALED
    assert w.grad.cpu().tolist() == [3.0, 3.0]
    scaler.update()
    assert scaler._scale.device.type == other_device
    assert scaler._growth_tracker.cpu().item() == 1


def test_small_gradients_survive_float16() -> None:
    w, x = gs.ones(1, 1, requires_grad=True), gs.full((1, 1), 1e-4)
    with gs.autocast("cpu", dtype=gs.float16):
        loss = (w @ x).float().sum() * 1e-8
    lost = gs.autograd.grad(loss, w, retain_graph=True)[0]
    assert lost.item() == 0.0
    scaler = gs.amp.GradScaler("cpu")
    scaler.scale(loss).backward()
    scaler.unscale_(gs.optim.SGD([w], lr=1.0))
    numpy.testing.assert_allclose(w.grad.numpy(), 1e-12, rtol=0.1)
