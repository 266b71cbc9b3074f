"""range() beside PyTorch's: its values, its warning, what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

CALLS: dict[str, Any] = {
    "integers": lambda m: m.range(1, 4),
    "steps": lambda m: m.range(0, 1, 0.3),
    "steps that rounding ends": lambda m: m.range(0, 1, 0.1),
    "downwards": lambda m: m.range(3, 1, -0.5),
    "one value": lambda m: m.range(1, 1),
    "tensors": lambda m: m.range(m.tensor(1), m.tensor(3)),
    "double": lambda m: m.range(0, 1, 0.1, dtype=m.float64),
    "half": lambda m: m.range(0, 3, dtype=m.float16),
    "integers that are cut first": lambda m: m.range(0.5, 3.4, 1.9, dtype=m.int32),
    "out": lambda m: m.range(1, 3, out=m.empty(3, dtype=m.int64)),
    "for a gradient": lambda m: m.range(1, 3, requires_grad=True),
}


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:(torch|gradscope).range is deprecated:UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_values_are_those_of_pytorch(torch: Any, call: str) -> None:
    mine, theirs = (CALLS[call](m) for m in (gs, torch))
    assert f"torch.{mine.dtype.name}" == str(theirs.dtype)
    assert mine.requires_grad == theirs.requires_grad
    numpy.testing.assert_array_equal(mine.detach().numpy(), theirs.detach().numpy())


def test_the_warning_is_at_the_line_of_the_caller() -> None:
    with pytest.warns(UserWarning, match=r"gradscope.range is deprecated .* use gradscope.arange") as caught:
        assert gs.range(1, 2).tolist() == [1, 2]
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:(torch|gradscope).range is deprecated:UserWarning")
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.range(3),
        lambda m: m.range("a", 1),
        lambda m: m.range(1, 4, 0),
        lambda m: m.range(1, 4, -1),
        lambda m: m.range(1, math.nan),
        lambda m: m.range(1, math.inf),
        lambda m: m.range(1j, 3),
        lambda m: m.range(0, 3, dtype=m.bool),
        lambda m: m.range(0, 3, dtype=m.complex64),
        lambda m: m.range(0, 3, dtype=m.int64, requires_grad=True),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, use)


@pytest.mark.filterwarnings("ignore:gradscope.range is deprecated:UserWarning")
def test_a_step_that_is_none_as_an_integer_is_refused() -> None:
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        gs.range(0, 3, 0.5, dtype=gs.int64)  # PyTorch divides by it


@pytest.mark.filterwarnings("ignore:gradscope.range is deprecated:UserWarning")
def test_values_are_on_the_device_that_is_wanted(other_device: str) -> None:
    with gs.device(other_device):
        assert gs.range(1, 3).device.type == other_device
        assert gs.range(1, 3, device="cpu").device.type == "cpu"
    assert gs.range(1, 3, device=other_device).tolist() == [1, 2, 3]
