"""Diagonals and triangles: what the tests of every operator do not reach."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.side_by_side import same_complaint


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (7, 3), (0, 3), (2, 2, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(torch: Any, shape: tuple[int, ...], wrap: bool) -> None:
    found, expected = (lib.zeros(shape).fill_diagonal_(2, wrap) for lib in (gs, torch))
    assert found.tolist() == expected.tolist()


def test_a_filled_diagonal_passes_no_gradient() -> None:
    x = gs.ones(2, 2, requires_grad=True)
    (x * 3).fill_diagonal_(0.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, 3.0], [3.0, 0.0]]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
@pytest.mark.parametrize("arguments", [(3, 3), (2, 4, 1), (4, 2, -1), (0, 3), (3, 2, 5)])
def test_indices_of_triangles(torch: Any, name: str, arguments: tuple[int, ...]) -> None:
    found, expected = (getattr(lib, name)(*arguments) for lib in (gs, torch))
    assert found.tolist() == expected.tolist()
    assert found.dtype is gs.int64


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.zeros(3).fill_diagonal_(1))
    same_complaint(torch, lambda lib: lib.zeros(2, 2, 3).fill_diagonal_(1))
