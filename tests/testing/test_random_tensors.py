"""make_tensor: PyTorch's limits and refusals."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from gradscope.testing import make_tensor
from tests.runtime.ops.operator_cases import assert_same_refusal

DTYPES = ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def facts(m: Any, name: str, *shape: Any, **options: Any) -> Any:
    tensor = m.testing.make_tensor(*shape, dtype=getattr(m, name), device="cpu", **options)
    assert str(tensor.dtype).partition(".")[2] == name
    parts = [tensor.real, tensor.imag] if tensor.is_complex() else [tensor]
    numbers = [part.detach().double() for part in parts]
    low, high = (min(n.min().item() for n in numbers), max(n.max().item() for n in numbers))
    return tuple(tensor.shape), tensor.stride(), tensor.requires_grad, int(low // 1), int(-(-high // 1))


@pytest.mark.torch
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("options", [{}, {"low": 2, "high": 5}, {"noncontiguous": True}], ids=str)
def test_what_is_drawn(torch: Any, name: str, options: dict[str, Any]) -> None:
    if name == "bool" and "low" in options:
        options = {"low": 0, "high": 1}
    assert facts(gs, name, 30, 40, **options) == facts(torch, name, (30, 40), **options)


@pytest.mark.parametrize("name", DTYPES)
def test_zeros_can_be_left_out(name: str) -> None:
    kind = getattr(gs, name)
    assert int(make_tensor(500, dtype=kind, low=0, high=1.5, exclude_zero=True).count_nonzero()) == 500


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"low": float("nan")},
        {"low": 3, "high": 1},
        {"dtype": "int64", "requires_grad": True},
        {"noncontiguous": True, "memory_format": "channels_last"},
        {"dtype": "int8", "low": 200, "high": 300},
    ],
    ids=str,
)
def test_refusals(torch: Any, options: dict[str, Any]) -> None:
    def use(m: Any) -> None:
        given = {**options, "dtype": getattr(m, options.get("dtype", "float32"))}
        if "memory_format" in given:
            given["memory_format"] = getattr(m, given["memory_format"])
        m.testing.make_tensor(2, 3, 4, 5, device="cpu", **given)

    assert_same_refusal(torch, use)
