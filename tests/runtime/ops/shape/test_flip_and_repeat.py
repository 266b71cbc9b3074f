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


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.repeat_interleave(m.tensor([1, 0, 2])),
        lambda m: m.repeat_interleave(m.tensor([1, 0, 2], dtype=m.int32)),
        lambda m: m.repeat_interleave(m.tensor([5, 6, 7]), m.tensor([1, 0, 2]), output_size=3),
        lambda m: m.tensor([5, 6]).repeat_interleave(2, output_size=4),
    ],
)
def test_positions_are_repeated(torch: Any, use: Any) -> None:
    assert use(gs).tolist() == use(torch).tolist()


@pytest.mark.torch
def test_repeats_that_make_no_sense_are_refused(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.repeat_interleave(lib.tensor([1.0])))
    same_complaint(torch, lambda lib: lib.repeat_interleave(lib.tensor([[1]])))
    same_complaint(torch, lambda lib: lib.repeat_interleave(lib.tensor([-1])))
