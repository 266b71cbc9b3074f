"""Steps that are recorded: gradients of what training has made, with respect to where it started and how it went."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.05, "momentum": 0.5, "dampening": 0.1, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("Adadelta", {"lr": 1.0, "eps": 1e-2}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adamax", {"lr": 0.1}),
    ("ASGD", {"lr": 0.05, "t0": 0}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}),
    ("Rprop", {}),
]
NAMES = [f"{name}-{'-'.join(settings)}" for name, settings in CASES]
each = pytest.mark.parametrize(("name", "settings"), CASES, ids=NAMES)


def starts_detached(name: str, settings: dict[str, Any]) -> bool:
    """Return whether the derivative stops at the first gradient: SGD's momentum buffer starts as a detached copy."""
    return name == "SGD" and "momentum" in settings


def trained(m: Any, name: str, settings: dict[str, Any], scale: Any, start: Any, steps: int = 4) -> Any:
    """Return what some steps on ``(scale * weight**2).sum()`` make of a weight."""
    weight = start.clone()
    optimizer = getattr(m.optim, name)([weight], differentiable=True, **settings)
    for _ in range(steps):
        held = weight.clone()
        (weight.grad,) = m.autograd.grad((scale * held**2).sum(), held, create_graph=True)
        optimizer.step()
    return weight


def given(m: Any) -> tuple[Any, Any]:
    scale = m.tensor([0.5, 1.5, 0.8], dtype=m.float64, requires_grad=True)
    return scale, m.tensor([1.0, 2.0, -3.0], dtype=m.float64, requires_grad=True)


@each
def test_the_result_is_that_of_plain_steps(name: str, settings: dict[str, Any]) -> None:
    scale, start = given(gs)
    weight = start.detach().clone().requires_grad_()
    optimizer = getattr(gs.optim, name)([weight], **settings)
    for _ in range(4):
        optimizer.zero_grad()
        (scale.detach() * weight**2).sum().backward()
        optimizer.step()
    numpy.testing.assert_allclose(trained(gs, name, settings, scale, start).tolist(), weight.tolist(), rtol=1e-12)


@pytest.mark.parametrize(("name", "settings"), [case for case in CASES if not starts_detached(*case)])
def test_gradients_are_those_of_finite_differences(name: str, settings: dict[str, Any]) -> None:
    assert gs.autograd.gradcheck(lambda *inputs: trained(gs, name, settings, *inputs), given(gs), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "settings"),
    # PyTorch cannot differentiate amsgrad, Adamax, Rprop or centered RMSprop.
    [(n, s) for n, s in CASES if not {"centered", "amsgrad"} & s.keys() and n not in ("Adamax", "Rprop")],
)
def test_gradients_are_those_of_pytorch(torch: Any, name: str, settings: dict[str, Any]) -> None:
    found = []
    for m in (gs, torch):
        inputs = given(m)
        found.append([g.tolist() for g in m.autograd.grad((trained(m, name, settings, *inputs) ** 2).sum(), inputs)])
    numpy.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "Adadelta"])
def test_a_learning_rate_takes_part(name: str) -> None:
    _, start = given(gs)
    scale = gs.tensor([0.5, 1.5, 0.8], dtype=gs.float64)
    rate = gs.tensor(0.05, dtype=gs.float64, requires_grad=True)
    assert gs.autograd.gradcheck(lambda r: trained(gs, name, {"lr": r}, scale, start), (rate,), atol=1e-4)


def test_a_weight_decay_takes_part() -> None:
    scale, start = given(gs)
    for name in ("SGD", "Adam", "AdamW"):
        decay = gs.tensor(0.1, dtype=gs.float64, requires_grad=True)

        def of(decay: Any, name: str = name) -> Any:
            return trained(gs, name, {"lr": 0.05, "weight_decay": decay}, scale, start)

        assert gs.autograd.gradcheck(of, (decay,), atol=1e-4)


def test_complex_parameters_are_pairs_of_real_ones(torch: Any) -> None:
    found = []
    for m in (gs, torch):
        start = m.tensor([1 + 1j, 0.5 - 0.5j], dtype=m.complex128, requires_grad=True)
        weight = start.clone()
        optimizer = m.optim.Adam([weight], lr=0.1, eps=0.1, differentiable=True)
        held = weight.clone()
        (weight.grad,) = m.autograd.grad(m.view_as_real(held).pow(2).sum(), held, create_graph=True)
        optimizer.step()
        (gradient,) = m.autograd.grad(m.view_as_real(weight).pow(2).sum(), start)
        found.append(m.view_as_real(gradient).tolist())
    numpy.testing.assert_allclose(*found, rtol=1e-4)


def test_a_leaf_is_not_written_where_it_would_be_recorded(torch: Any) -> None:
    for m in (gs, torch):
        weight = m.ones(2, requires_grad=True)
        weight.grad = m.ones(2)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
            m.optim.SGD([weight], 0.1, differentiable=True).step()


def test_steps_are_recorded_under_no_grad_too(torch: Any) -> None:
    for m in (gs, torch):
        start = m.ones(2, requires_grad=True)
        weight = start.clone()
        weight.grad = m.ones(2)
        with m.no_grad():
            m.optim.SGD([weight], 0.1, differentiable=True).step()
        assert weight.requires_grad
        assert m.autograd.grad(weight.sum(), start)[0].tolist() == [1.0, 1.0]
