from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices

import gradscope as gs
from gradscope.check.watching.expanded_parts import expanded_part
from gradscope.inspect.adapters import NativeAdapter

SHAPE = (3, 4, 2)


def expanded(dims):
    """Return a tensor of SHAPE whose places along some dimensions are at one address."""
    return gs.zeros([1 if dim in dims else size for dim, size in enumerate(SHAPE)]).expand(*SHAPE)


@given(st.sets(st.sampled_from(range(3))), basic_indices(SHAPE, allow_newaxis=False))
def test_a_part_is_meant_where_places_are_left_out_that_change_with_those_taken(dims, index):
    taken = np.zeros(SHAPE, bool)
    taken[index] = True
    found = expanded_part(NativeAdapter(), expanded(dims), index)
    parts = {
        dim: count
        for dim in dims
        if 0 < (count := int(taken.any(axis=tuple(set(range(3)) - {dim})).sum())) < SHAPE[dim]
    }
    assert found == ((min(parts), parts[min(parts)]) if parts else None)


def test_an_index_of_tensors_and_lists_is_read_as_well():
    rows = expanded({0})
    assert expanded_part(NativeAdapter(), rows, gs.tensor([0, 2])) == (0, 2)
    assert expanded_part(NativeAdapter(), rows, [0, 1, 2]) is None
    assert expanded_part(NativeAdapter(), rows, (slice(None), [1, 3])) is None


@pytest.mark.parametrize("index", [7, "rows", (0, 0, 0, 0)])
def test_what_is_no_index_means_no_part(index):
    assert expanded_part(NativeAdapter(), expanded({0}), index) is None
