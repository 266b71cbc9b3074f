"""Data sets, as PyTorch's: samples, lengths, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.utils.data import ConcatDataset, Subset, TensorDataset, random_split
from tests.side_by_side import same_complaint


def counting(lib: Any, count: int, length: int | None = None) -> Any:
    """Return an iterable data set of the numbers below `count` that says it has `length`."""

    class Counting(lib.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(count))

    if length is not None:
        Counting.__len__ = lambda self: length
    return Counting()


@pytest.mark.torch
@pytest.mark.parametrize(
    "read",
    [
        lambda lib, D: D.TensorDataset(lib.arange(3), lib.ones(3, 2))[1],
        lambda lib, D: D.TensorDataset(lib.arange(3))[[2, 0]],
        lambda lib, D: len(D.TensorDataset(lib.arange(3))),
        lambda lib, D: D.StackDataset([1, 2], [3, 4])[1],
        lambda lib, D: D.StackDataset(a=[1, 2], b=[3, 4])[1],
        lambda lib, D: D.StackDataset(a=[1, 2], b=D.Subset([3, 4, 5], [2, 0])).__getitems__([1, 0]),
        lambda lib, D: len(D.StackDataset([1, 2])),
        lambda lib, D: list(D.ConcatDataset([[1], [], [2, 3]])),
        lambda lib, D: D.ConcatDataset([[1], [2, 3]])[-3],
        lambda lib, D: D.ConcatDataset([[1], [2, 3]]).cumulative_sizes,
        lambda lib, D: list(D.ChainDataset([counting(lib, 3), counting(lib, 2)])),
        lambda lib, D: len(D.ChainDataset([counting(lib, 3, 3), counting(lib, 2, 2)])),
        lambda lib, D: D.Subset([5, 6, 7], [2, 0]).__getitems__([1, 0]),
        lambda lib, D: D.Subset(lib.arange(5), [2, 0])[[1, 0]],
        lambda lib, D: type(D.TensorDataset(lib.ones(1)) + D.TensorDataset(lib.ones(1))).__name__,
        lambda lib, D: type(counting(lib, 1) + counting(lib, 1)).__name__,
        lambda lib, D: [len(part) for part in D.random_split(range(10), [0.33, 0.33, 0.34])],
        lambda lib, D: [len(part) for part in D.random_split(range(10), [3, 0, 7])],
    ],
)
def test_samples(torch: Any, read: Any) -> None:
    mine, theirs = read(gs, gs.utils.data), read(torch, torch.utils.data)
    assert repr(mine) == repr(theirs)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, D: D.Dataset()[0],
        lambda lib, D: D.IterableDataset(),
        lambda lib, D: counting(lib, 1)[0],
        lambda lib, D: D.TensorDataset(lib.ones(2), lib.ones(3)),
        lambda lib, D: D.StackDataset(),
        lambda lib, D: D.StackDataset([1], a=[2]),
        lambda lib, D: D.StackDataset([1], [2, 3]),
        lambda lib, D: D.ConcatDataset([]),
        lambda lib, D: D.ConcatDataset([counting(lib, 1)]),
        lambda lib, D: D.ConcatDataset([[1], [2, 3]])[-4],
        lambda lib, D: D.ConcatDataset([[1], [2, 3]])[3],
        lambda lib, D: list(D.ChainDataset([[1]])),
        lambda lib, D: D.random_split(range(10), [3, 3]),
        lambda lib, D: D.random_split(range(10), [0.3, 0.3]),
        lambda lib, D: D.random_split(range(10), [1.3, -0.3]),
    ],
)
def test_refusals(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.utils.data))


@pytest.mark.filterwarnings("ignore:Length of split")  # [0, 1] may be fractions too
@given(st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_the_parts_of_a_random_split_are_the_whole(lengths: list[int]) -> None:
    parts = random_split(range(sum(lengths)), lengths)
    assert [len(part) for part in parts] == lengths
    assert sorted(sample for part in parts for sample in part) == list(range(sum(lengths)))


def test_a_random_split_is_reproducible() -> None:
    def split() -> list[list[int]]:
        return [list(part.indices) for part in random_split(range(50), [0.5, 0.5], gs.Generator().manual_seed(3))]

    assert split() == split()
    gs.manual_seed(1)
    first = random_split(range(50), [50])[0].indices
    gs.manual_seed(1)
    assert random_split(range(50), [50])[0].indices == first


def test_an_empty_part_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        assert [len(part) for part in random_split(range(10), [0.99, 0.01])] == [10, 0]


@given(st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=4), st.integers(-20, 20))
def test_a_concatenation_is_indexed_as_a_list(parts: list[list[int]], index: int) -> None:
    flat = [value for part in parts for value in part]
    whole: Any = ConcatDataset(parts)
    assert list(whole) == flat
    if -len(flat) <= index < len(flat):
        assert whole[index] == flat[index]


def test_subsets_of_subsets() -> None:
    inner: Any = Subset(TensorDataset(gs.arange(10) * 10), [9, 5, 1])
    outer: Any = Subset(inner, [2, 0])
    assert [row.item() for (row,) in outer.__getitems__([0, 1])] == [10, 90]
