"""Gradient clipping."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.nn import utils

GRADIENTS = [numpy.array([3.0, -4.0]), numpy.array([[12.0]]), None]


def parameters(lib: Any) -> list[Any]:
    made = []
    for array in GRADIENTS:
        parameter = lib.zeros(2 if array is None else array.shape, dtype=lib.float64, requires_grad=True)
        parameter.grad = None if array is None else lib.tensor(array)
        made.append(parameter)
    return made


@pytest.mark.torch
@pytest.mark.parametrize("norm", [0.0, 1.0, 2.0, 3.0, math.inf, -math.inf])
@pytest.mark.parametrize("limit", [1.0, 100.0])
def test_clip_grad_norm(torch: Any, norm: float, limit: float) -> None:
    mine, theirs = parameters(gs), parameters(torch)
    total = utils.clip_grad_norm_(mine, limit, norm)
    assert total.item() == pytest.approx(torch.nn.utils.clip_grad_norm_(theirs, limit, norm).item())
    for a, b in zip(mine, theirs, strict=True):
        if a.grad is None:
            assert b.grad is None
        else:
            numpy.testing.assert_allclose(a.grad.numpy(), b.grad.numpy())
            assert a.grad._version == 1


def test_clip_grad_norm_of_one_tensor_and_of_none() -> None:
    (parameter, *_) = parameters(gs)
    assert utils.clip_grad_norm_(parameter, 1.0).item() == 5.0
    numpy.testing.assert_allclose(parameter.grad.numpy(), [0.6, -0.8], rtol=1e-5)
    assert utils.clip_grad_norm_([gs.zeros(2, requires_grad=True)], 1.0).item() == 0.0


def test_a_norm_that_is_not_finite() -> None:
    (parameter, *_) = parameters(gs)
    parameter.grad = gs.tensor([math.nan, 1.0], dtype=gs.float64)
    with pytest.raises(RuntimeError, match=r"The total norm of order 2\.0"):
        utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)


def test_clip_grad_value() -> None:
    made = parameters(gs)
    utils.clip_grad_value_(made, 3.5)
    assert made[0].grad.tolist() == [3.0, -3.5]
    assert made[1].grad.tolist() == [[3.5]]
    assert made[0].grad._version == 1
