from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.diagnosis.finding_limits import Limits
from gradscope.inspect.diagnosis.flow.signal_fading import faded_signal

SIZES = st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=12)


def chain(sizes):
    """Return a chain of layers whose inputs have these sizes, in the order of the forward pass."""
    count = len(sizes)
    return dict(enumerate(reversed(sizes))), [(index + 1,) for index in range(count - 1)] + [()]


@given(SIZES)
def test_a_chain_has_faded_where_a_layer_gets_a_small_number_and_a_small_share(sizes):
    found = faded_signal(*chain(sizes))
    faded = [
        size for place, size in enumerate(sizes) if size <= Limits.faded_signal * min(1.0, max(sizes[: place + 1]))
    ]
    assert (found is None) == (not faded)
    if found is not None:
        assert found.size == min(faded)
        assert math.isclose(found.before * math.prod(factor for _, factor in found.steps), found.size, rel_tol=1e-9)


@given(SIZES, st.floats(1e-3, 1e3))
def test_a_way_around_the_layers_keeps_the_size(sizes, size):
    sizes = [size, *sizes, size]
    _, targets = chain(sizes)
    targets[0] = (*targets[0], len(sizes) - 1)
    found = faded_signal({0: size, len(sizes) - 1: size}, targets)
    assert found is None


def test_an_input_of_zeros_and_a_graph_without_layers_have_not_faded():
    assert faded_signal(*chain([1.0, 0.0])) is None
    assert faded_signal({}, []) is None
