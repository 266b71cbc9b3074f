"""Positions as coordinates, combinations, and other keywords of functions that were there."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(2, 3), (6,), 6, (1, 2, 3)])
def test_coordinates(torch: Any, shape: Any) -> None:
    found, expected = (m.unravel_index(m.tensor([[1, 5], [0, 3]]), shape) for m in (gs, torch))
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    same_complaint(torch, lambda m: m.unravel_index(m.ones(2), (2,)))


@pytest.mark.torch
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("replaced", [False, True])
def test_combinations(torch: Any, count: int, replaced: bool) -> None:
    compare(
        torch,
        lambda m, x: m.combinations(x, count, replaced),
        [1.0, 2.0, 4.0, 7.0, 8.0],
        names=False,
        twice=False,
        rtol=1e-5,
    )


@pytest.mark.torch
def test_combinations_of_what_is_no_vector(torch: Any) -> None:
    same_complaint(torch, lambda m: m.combinations(m.ones(2, 2)))
    same_complaint(torch, lambda m: m.combinations(m.ones(2), -1))


@pytest.mark.torch
def test_keywords_of_others(torch: Any) -> None:
    for m in (gs, torch):
        x = m.tensor([[1.0, 2.0], [3.0, 4.0]])
        out = m.empty(2, 2)
        assert m.tensordot(x, x, dims=1, out=out) is out
        assert out.tolist() == [[7.0, 10.0], [15.0, 22.0]]
        assert [p.tolist() for p in m.split(x, split_size_or_sections=1)] == [[[1.0, 2.0]], [[3.0, 4.0]]]
        assert m.nn.functional.normalize(x, out=m.empty(2, 2)).shape == (2, 2)
        shared = m.nn.Linear(1, 1)
        twice = m.nn.Sequential(shared, shared)
        assert len(list(twice.modules())) == 2
        assert len(list(twice.modules(remove_duplicate=False))) == 3


@pytest.mark.torch
def test_taken_along_a_dimension_from_the_end(torch: Any) -> None:
    x = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    compare(torch, lambda lib, x: lib.take_along_dim(x, lib.tensor([[-1, 0]]), 1), x, names=False)
    same_complaint(torch, lambda lib: lib.take_along_dim(lib.arange(6), lib.tensor([-1])))
