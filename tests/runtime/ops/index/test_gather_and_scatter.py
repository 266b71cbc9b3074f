"""Scattering and filling: sources without dimensions, indices that are named twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint


@pytest.mark.torch
def test_a_place_that_is_filled_twice_counts_once(torch: Any) -> None:
    x = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    for index in ([0, 0, 1], [2], []):
        compare(
            torch,
            lambda lib, x, value, index=index: x.index_fill(0, lib.tensor(index, dtype=lib.int64), value),
            x,
            2.0,
        )


@pytest.mark.torch
def test_a_source_without_dimensions_is_one_element(torch: Any) -> None:
    compare(torch, lambda lib, x, src: x.scatter(0, lib.tensor([1]), src), [0.0, 0.0], 3.0)
    compare(torch, lambda lib, x, src: x.scatter_add(0, lib.tensor([1]), src), [0.0, 0.0], 3.0)
    compare(torch, lambda lib, x, src: x.scatter_reduce(0, lib.tensor([1]), src, "amax"), [0.0, 0.0], 3.0)
    same_complaint(torch, lambda lib: lib.zeros(3).scatter(0, lib.tensor([0, 1]), lib.tensor(1.0)))


def test_what_is_scattered_into_a_gradient_without_dimensions_is_kept() -> None:
    x, src = gs.tensor(1.0, requires_grad=True), gs.tensor(2.0, requires_grad=True)
    x.scatter_reduce(0, gs.tensor(0), src, "amax", include_self=False).backward()
    assert (x.grad.item(), src.grad.item()) == (0.0, 1.0)


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_few_and_many_slices_are_filled(torch: Any, dim: int, count: int) -> None:
    def run(lib: Any) -> Any:
        x = lib.arange(8 * 9 * 10.0).reshape(8, 9, 10)
        index = lib.tensor(np.random.default_rng(0).integers(-5, 5, count))
        return x.index_fill(dim, index, -1.0).numpy(), x.transpose(0, 2).index_fill(dim, index, 2.5).numpy()

    for found, expected in zip(run(gs), run(torch), strict=True):
        np.testing.assert_array_equal(found, expected)
