"""The gradient of a tensor: what it may be, and who has one."""

from __future__ import annotations

import pytest

import gradscope as gs


def test_grad_accepts_what_fits_and_refuses_the_rest() -> None:
    x = gs.ones(2, requires_grad=True)
    grad = gs.zeros(2)
    x.grad = grad
    assert x.grad is grad
    x.grad = None
    assert x.grad is None
    for value, error, message in (
        ([0.0, 0.0], TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
        (x, RuntimeError, "can't assign Variable as its own grad"),
        (gs.zeros(3), RuntimeError, "attempting to assign a gradient of size '\\[3\\]' to a tensor of size '\\[2\\]'"),
        (gs.zeros(2, dtype=gs.float64), RuntimeError, "attempting to assign a gradient with dtype"),
    ):
        with pytest.raises(error, match=message):
            x.grad = value
    assert x.grad is None


def test_grad_dtype_lifts_the_dtype_check() -> None:
    x = gs.ones(2, requires_grad=True)
    assert x.grad_dtype is gs.float32
    x.grad_dtype = None
    x.grad = gs.zeros(2, dtype=gs.float64)
    assert x.grad.dtype is gs.float64
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        (x * 2).grad_dtype = None


def test_reading_the_grad_of_a_non_leaf_warns_unless_retained() -> None:
    x = gs.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(
        UserWarning, match=r"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"
    ):
        assert y.grad is None
    y.retain_grad()
    assert y.retains_grad
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
