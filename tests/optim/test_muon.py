"""Muon beside PyTorch's, which computes in bfloat16."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.optim.muon import orthogonalized
from tests.side_by_side import same_complaint

rng = numpy.random.default_rng(0)
START, GRADIENTS = rng.normal(size=(5, 3)), rng.normal(size=(3, 5, 3))


def steps(m: Any, transposed: bool, **options: Any) -> tuple[Any, Any]:
    turn = (lambda a: a.T.copy()) if transposed else (lambda a: a)
    parameter = m.tensor(turn(START).astype("float32"), requires_grad=True)
    optimizer = m.optim.Muon([parameter], lr=0.1, **options)
    for gradient in GRADIENTS:
        parameter.grad = m.tensor(turn(gradient).astype("float32"))
        optimizer.step()
    return parameter.detach().numpy(), optimizer.state[parameter]["momentum_buffer"].numpy()


@pytest.mark.torch
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}, {"weight_decay": 0.0, "ns_steps": 3}]
)
def test_steps(torch: Any, transposed: bool, options: dict[str, Any]) -> None:
    (mine, buffer), (theirs, other) = (steps(m, transposed, **options) for m in (gs, torch))
    numpy.testing.assert_allclose(mine, theirs, atol=0.01)
    numpy.testing.assert_allclose(buffer, other, rtol=1e-5, atol=1e-6)


def test_singular_values_come_near_one() -> None:
    found = orthogonalized(numpy, START, (3.4445, -4.775, 2.0315), 5, 1e-7)
    values = numpy.linalg.svd(found, compute_uv=False)
    assert values.min() > 0.5
    assert values.max() < 1.3


def test_a_step_counts_as_writes() -> None:
    parameter = gs.ones(2, 2, requires_grad=True)
    parameter.grad = gs.ones(2, 2)
    before = parameter._version
    gs.optim.Muon([parameter]).step()
    assert parameter._version == before + 2


@pytest.mark.torch
@pytest.mark.parametrize("options", [{"lr": -1.0}, {"momentum": -1.0}, {"weight_decay": -1.0}, {"adjust_lr_fn": "x"}])
def test_refused_settings(torch: Any, options: dict[str, Any]) -> None:
    same_complaint(torch, lambda m: m.optim.Muon([m.ones(2, 2, requires_grad=True)], **options))


@pytest.mark.torch
def test_only_matrices(torch: Any) -> None:
    same_complaint(torch, lambda m: m.optim.Muon([m.ones(2, requires_grad=True)]))
