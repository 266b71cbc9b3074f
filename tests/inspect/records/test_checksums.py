"""A checksum sees every bit, and its parts add up."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.records.checksums import BLOCK, checksum

DTYPES = ("float16", "float32", "float64", "complex128", "int8", "bool")


@given(st.sampled_from(DTYPES), st.integers(0, 300), st.lists(st.integers(0, 300), max_size=4), st.integers(0, 2**32))
def test_the_checksums_of_shards_add_up(dtype, size, cuts, seed):
    whole = np.random.default_rng(seed).standard_normal(size).astype(dtype)
    bounds = [0, *sorted(min(cut, size) for cut in cuts), size]
    parts = [checksum(whole[a:b], a) for a, b in itertools.pairwise(bounds)]
    assert sum(parts) % 2**64 == checksum(whole)


def test_shards_add_up_across_blocks_of_factors():
    whole = np.random.default_rng(0).standard_normal(5 * BLOCK + 3).astype("float32")
    cut = 2 * BLOCK + 17
    assert (checksum(whole[:cut]) + checksum(whole[cut:], cut)) % 2**64 == checksum(whole)


@given(st.integers(1, 200), st.data())
def test_any_bit_that_changes_changes_it(size, data):
    values = np.random.default_rng(size).standard_normal(size).astype("float32")
    before = checksum(values)
    bit = data.draw(st.integers(0, 32 * size - 1))
    values.view("uint32")[bit // 32] ^= np.uint32(1) << np.uint32(bit % 32)
    assert checksum(values) != before


def test_elements_that_change_places_change_it():
    values = np.random.default_rng(0).standard_normal(1000).astype("float32")
    assert checksum(values) != checksum(values[::-1])
    assert checksum(values.reshape(10, 100).T) == checksum(np.ascontiguousarray(values.reshape(10, 100).T))


@pytest.mark.parametrize("value", [np.float32(0.0), np.zeros((0, 3))])
def test_of_nothing_and_of_zeros_it_is_zero(value):
    assert checksum(np.asarray(value)) == 0
