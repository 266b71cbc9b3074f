"""searchsorted, bucketize and unique_consecutive give what PyTorch gives."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-6, 6)), st.booleans())
def test_searchsorted_counts_what_is_before(sequence: list[int], values: list[int], right: bool) -> None:
    found = gs.searchsorted(gs.tensor(sorted(sequence), dtype=gs.int64), gs.tensor(values, dtype=gs.int64), right=right)
    assert found.tolist() == [sum(s < v or (right and s == v) for s in sequence) for v in values]


@pytest.mark.torch
def test_rows_sorters_and_dtypes(torch: Any) -> None:
    rows = numpy.sort(numpy.sin(numpy.arange(12.0)).reshape(3, 4), axis=1)
    values = numpy.linspace(-1, 1, 15).reshape(3, 5)
    shuffled = numpy.array([3.0, 1.0, 2.0])

    def use(lib: Any) -> list[Any]:
        found = [
            lib.searchsorted(lib.tensor(rows), lib.tensor(values)),
            lib.searchsorted(lib.tensor(rows), lib.tensor(values), side="right", out_int32=True),
            lib.searchsorted(lib.tensor(shuffled), lib.tensor(values), sorter=lib.tensor([1, 2, 0])),
            lib.bucketize(lib.tensor(values), lib.tensor([-0.5, 0.0, 0.5]), right=True),
            lib.bucketize(0.25, lib.tensor([-0.5, 0.0, 0.5])),
        ]
        return [(str(f.dtype).rpartition(".")[2], f.tolist()) for f in found]

    assert use(gs) == use(torch)


@pytest.mark.torch
@pytest.mark.parametrize("dim", [None, 0, -1])
def test_unique_consecutive(torch: Any, dim: int | None) -> None:
    for values in ([[1, 1, 2], [1, 1, 2], [3, 3, 3]], [[0, 1]], [[1], [1]]):
        found, expected = (lib.unique_consecutive(lib.tensor(values), True, True, dim=dim) for lib in (gs, torch))
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def test_unique_consecutive_of_nothing() -> None:
    assert gs.zeros(0).unique_consecutive().tolist() == []


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    assert_same_refusal(torch, lambda lib: lib.searchsorted(lib.zeros(2), lib.zeros(1), side="middle"))
    assert_same_refusal(torch, lambda lib: lib.searchsorted(lib.zeros(2, 3), lib.zeros(4)))
    assert_same_refusal(torch, lambda lib: lib.bucketize(lib.zeros(2), lib.zeros(2, 2)))
