"""The Hypothesis strategies draw what they say."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.testing import strategies

FEW = settings(max_examples=40)


@FEW
@given(strategies.shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
def test_shapes_keep_their_bounds(shape: tuple[int, ...]) -> None:
    assert 1 <= len(shape) <= 2
    assert all(1 <= size <= 3 for size in shape)


@FEW
@given(strategies.broadcastable_shapes(3))
def test_broadcastable_shapes_broadcast(shapes: Any) -> None:
    assert len(shapes) == 3
    numpy.broadcast_shapes(*shapes)


@FEW
@given(strategies.tensors(dtype=strategies.dtypes_of("fcib"), requires_grad=st.booleans(), low=-1.0, high=1.0))
def test_tensors_keep_their_bounds(tensor: gs.Tensor) -> None:
    values = tensor.detach().numpy()
    assert (abs(values.real) <= 1).all()
    assert tensor.is_leaf
    assert not tensor.requires_grad or tensor.dtype.is_floating_point or tensor.dtype.is_complex


@FEW
@given(strategies.tensors(shape=(2, 3), dtype=gs.float64, contiguous=False, requires_grad=True))
def test_a_layout_can_be_asked_for(tensor: gs.Tensor) -> None:
    assert (tensor.shape, tensor.dtype, tensor.requires_grad) == ((2, 3), gs.float64, True)
    assert not tensor.is_contiguous()


@FEW
@given(strategies.broadcastable_tensors(2, requires_grad=True))
def test_broadcastable_tensors_go_into_an_operator(pair: Any) -> None:
    a, b = pair
    out = a * b
    assert tuple(out.shape) == numpy.broadcast_shapes(a.shape, b.shape)
    out.sum().backward()
    assert a.grad.shape == a.shape
    numpy.testing.assert_allclose(
        b.grad.numpy(), (a.detach().numpy() + numpy.zeros(out.shape)).sum(axis=reduced(out, b)).reshape(b.shape)
    )


def reduced(out: gs.Tensor, part: gs.Tensor) -> tuple[int, ...]:
    """Return the dimensions of `out` that broadcasting gave to `part`."""
    extra = out.ndim - part.ndim
    return (*range(extra), *(i + extra for i in range(part.ndim) if part.shape[i] != out.shape[i + extra]))


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown dtype kinds 'x'"):
        strategies.dtypes_of("x")


def test_without_hypothesis_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match="needs Hypothesis"):
        strategies.shapes()


def test_elements_that_are_drawn_shrink_to_the_simplest_that_fail():
    drawn = strategies.tensors(shape=(2, 3), contiguous=True, elements=st.integers(-9, 9), dtype=gs.float64)
    simplest = find(drawn, lambda tensor: tensor.sum().item() >= 4)
    assert simplest.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 4.0]]


@FEW
@given(strategies.tensors(elements=st.complex_numbers(max_magnitude=2), dtype=gs.complex128))
def test_elements_may_be_complex(tensor):
    assert tensor.dtype is gs.complex128
    assert (tensor.abs() <= 2 + 1e-9).all().item()
