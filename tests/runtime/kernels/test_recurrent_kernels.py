"""Which rows a step of a recurrent layer has, and which states it begins with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.kernels.recurrent_kernels import _projected, before, elman, spans_of

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=5).map(lambda lengths: sorted(lengths, reverse=True))


def sizes_of(lengths):
    """Return how many sequences run at each time."""
    return [sum(length > time for length in lengths) for time in range(lengths[0])]


@given(LENGTHS, st.booleans())
def test_spans_are_the_rows_of_all_times(lengths, reverse):
    spans = spans_of(sizes_of(lengths), reverse)
    rows = [row for span in (spans[::-1] if reverse else spans) for row in range(span.start, span.stop)]
    assert rows == list(range(sum(lengths)))


@given(LENGTHS, st.booleans())
def test_a_step_begins_with_the_state_of_the_step_before_it(lengths, reverse):
    sizes = sizes_of(lengths)
    states = np.arange(float(sum(lengths)))[:, None]
    first = -1 - np.arange(float(len(lengths)))[:, None]
    found = before(np, first, states, spans_of(sizes, reverse))
    starts = np.cumsum([0, *sizes])
    for sequence, length in enumerate(lengths):
        rows = [starts[time] + sequence for time in range(length)]
        ordered = rows[::-1] if reverse else rows
        assert found[ordered, 0].tolist() == [first[sequence, 0], *states[ordered[:-1], 0]]


@given(LENGTHS, st.booleans())
def test_the_last_state_of_a_sequence_is_that_of_its_last_step(lengths, reverse):
    """A network that counts: each step adds one to the state."""
    states, first = np.ones((sum(lengths), 1)), np.zeros((len(lengths), 1))
    last = elman(np, states, (None, None), first, np.ones((1, 1)), spans_of(sizes_of(lengths), reverse), lambda x: None)
    assert last[:, 0].tolist() == lengths


@pytest.mark.parametrize("rows", [1, 3, 32, 33])
@pytest.mark.parametrize("shape", [(1024, 256), (16, 4)])
def test_the_product_of_a_state_with_weights_is_in_rows(rows, shape):
    """Whichever of both is the first factor for BLAS."""
    rng = np.random.default_rng(0)
    state, weight = rng.standard_normal((rows, shape[1])), rng.standard_normal(shape)
    found = _projected(np, state, weight)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, state @ weight.T, rtol=1e-10, atol=1e-10)
