"""Samplers: which indices come, how often, in which order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
from tests.side_by_side import same_complaint

sizes = st.integers(1, 40)


@given(sizes, st.integers(1, 100))
def test_without_replacement_each_comes_once_before_one_comes_again(size: int, count: int) -> None:
    sampler = RandomSampler(range(size), num_samples=count)
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == count
    for start in range(0, count, size):
        part = drawn[start : start + size]
        assert len(set(part)) == len(part)
        assert set(part) <= set(range(size))


@given(sizes, st.integers(1, 2000))
def test_with_replacement(size: int, count: int) -> None:
    drawn = list(RandomSampler(range(size), replacement=True, num_samples=count))
    assert len(drawn) == count
    assert set(drawn) <= set(range(size))


@given(st.lists(st.integers(), unique=True))
def test_a_random_subset_is_a_permutation(indices: list[int]) -> None:
    sampler = SubsetRandomSampler(indices)
    assert sorted(sampler) == sorted(indices)
    assert len(sampler) == len(indices)


@given(sizes, st.integers(1, 10), st.booleans())
def test_batches(size: int, batch: int, drop_last: bool) -> None:
    sampler = BatchSampler(range(size), batch, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    flat = [index for part in batches for index in part]
    assert flat == list(range(size - size % batch if drop_last else size))
    assert all(len(part) == batch for part in batches[:-1])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any), st.integers(1, 20))
def test_weights_of_zero_are_never_drawn(weights: list[int], count: int) -> None:
    positive = {index for index, weight in enumerate(weights) if weight}
    drawn = list(WeightedRandomSampler(weights, count))
    assert len(drawn) == count
    assert set(drawn) <= positive
    some = list(WeightedRandomSampler(weights, len(positive), replacement=False))
    assert set(some) == positive


def test_weights_are_frequencies() -> None:
    generator = gs.Generator().manual_seed(0)
    found = Counter(WeightedRandomSampler([1, 3], 4000, generator=generator))
    assert 0.72 < found[1] / 4000 < 0.78


@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: RandomSampler(range(30), **kw),
        lambda **kw: RandomSampler(range(30), replacement=True, num_samples=50, **kw),
        lambda **kw: SubsetRandomSampler(range(30), **kw),
        lambda **kw: WeightedRandomSampler([1.0] * 30, 30, **kw),
    ],
)
def test_a_seed_gives_an_order_and_each_pass_another_one(make: Any) -> None:
    gs.manual_seed(5)
    sampler = make()
    first, second = list(sampler), list(sampler)
    assert first != second
    gs.manual_seed(5)
    assert [list(sampler), list(sampler)] == [first, second]
    own = make(generator=gs.Generator().manual_seed(7))
    drawn = list(own)
    gs.manual_seed(6)
    assert list(make(generator=gs.Generator().manual_seed(7))) == drawn


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda D: D.RandomSampler([]),
        lambda D: D.RandomSampler([1], num_samples=0),
        lambda D: D.RandomSampler([1], num_samples=2.5),
        lambda D: D.RandomSampler([1], replacement=1),
        lambda D: D.WeightedRandomSampler([1.0], 0),
        lambda D: D.WeightedRandomSampler([1.0], True),
        lambda D: D.WeightedRandomSampler([1.0], 1, 1),
        lambda D: D.WeightedRandomSampler([[1.0]], 1),
        lambda D: list(D.WeightedRandomSampler([1.0], 2, False)),
        lambda D: D.BatchSampler([1], 0, False),
        lambda D: D.BatchSampler([1], True, False),
        lambda D: D.BatchSampler([1], 1, 1),
    ],
)
def test_refusals(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.utils.data))
