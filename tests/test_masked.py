"""Masked reductions are those of the elements that the mask lets through; PyTorch's database compares the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import gradscope as gs

SHAPE = (3, 4)
VALUES = arrays.arrays("float64", SHAPE, elements=st.floats(-10, 10, width=32))
MASKS = arrays.arrays("bool", SHAPE)
REDUCTIONS: dict[str, Callable[[numpy.ndarray], float]] = {
    "sum": lambda row: row.sum(),
    "prod": lambda row: row.prod(),
    "amax": lambda row: row.max(initial=-math.inf),
    "amin": lambda row: row.min(initial=math.inf),
    "mean": lambda row: row.mean() if row.size else math.nan,
    "median": lambda row: sorted(row)[(row.size - 1) // 2] if row.size else math.nan,
    "norm": lambda row: math.sqrt((row * row).sum()),
    "logsumexp": lambda row: math.log(numpy.exp(row).sum()) if row.size else -math.inf,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(values=VALUES, mask=MASKS)
def test_a_reduction_is_that_of_what_is_let_through(name: str, values: numpy.ndarray, mask: numpy.ndarray) -> None:
    options = {"dim": 1, "mask": gs.from_numpy(mask)}
    found = getattr(gs.masked, name)(gs.from_numpy(values), **options)
    expected = [REDUCTIONS[name](row[kept]) for row, kept in zip(values, mask, strict=True)]
    numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


@given(values=VALUES, mask=MASKS)
def test_what_is_hidden_has_no_gradient(values: numpy.ndarray, mask: numpy.ndarray) -> None:
    x = gs.tensor(values, requires_grad=True)
    gs.masked.sum(x * x, mask=gs.from_numpy(mask)).backward()
    numpy.testing.assert_allclose(x.grad.numpy(), numpy.where(mask, 2 * values, 0), atol=1e-9)


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_variances_are_corrected(correction: int) -> None:
    x, mask = gs.tensor([1.0, 2.0, 4.0, 8.0]), gs.tensor([True, True, True, False])
    expected = gs.var(x[:3], correction=correction)
    gs.testing.assert_close(gs.masked.var(x, mask=mask, correction=correction), expected)
    gs.testing.assert_close(gs.masked.std(x, mask=mask, correction=correction), expected.sqrt())


def test_what_cannot_be_reduced_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^mean\(\): Could not infer output dtype\. Input dtype"):
        gs.masked.mean(gs.arange(3))
    with pytest.raises(ValueError, match=r"^masked median expects no fully masked out rows"):
        gs.masked.median(gs.arange(3), mask=gs.zeros(3, dtype=gs.bool))
    with pytest.raises(IndexError, match=r"^the mask has 2 dimensions and the input 1"):
        gs.masked.sum(gs.ones(3), mask=gs.ones(3, 3, dtype=gs.bool))
    with pytest.raises(RuntimeError, match=r"^dim=0 appears multiple times"):
        gs.masked.sum(gs.ones(3), (0, 0))
    with pytest.raises(IndexError, match=r"^Dimension out of range"):
        gs.masked.sum(gs.ones(3), 1)


def test_other_devices(other_device: str) -> None:
    x, mask = gs.tensor([[1.0, 2.0, 5.0], [3.0, 4.0, 1.0]]), gs.tensor([[True, False, True], [True, True, True]])
    for name in gs.masked.__all__:
        if name == "logaddexp":
            continue
        arguments: dict[str, Any] = {"dim": 1, **({"ord": 2.0} if name == "normalize" else {})}
        here, there = (
            getattr(gs.masked, name)(x.to(device), mask=mask.to(device), **arguments)
            for device in ("cpu", other_device)
        )
        assert there.device.type == other_device
        gs.testing.assert_close(there.cpu(), here)


@pytest.mark.torch
def test_names_are_pytorchs(torch: Any) -> None:
    masked_tensors = {"MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"}
    assert set(gs.masked.__all__) == set(torch.masked.__all__) - masked_tensors
