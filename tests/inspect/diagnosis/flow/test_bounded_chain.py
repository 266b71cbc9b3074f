from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.diagnosis.flow.bounded_chain import bounded_chain


def ladder(sigmoids):
    """Return the graph of a chain of so many sigmoids with a parameter at its end."""
    names = ["Sum", *["Sigmoid"] * sigmoids, "AccumulateGrad"]
    return names, [(index + 1,) for index in range(sigmoids + 1)] + [()], {sigmoids + 1: "w"}


@given(st.integers(0, 30))
def test_seven_sigmoids_are_too_many(count):
    found = bounded_chain(*ladder(count))
    assert (found is not None) == (count >= 7)
    if found is not None:
        assert found.bound == 0.25**count
        assert found.nodes == tuple(range(1, count + 1))


@given(st.integers(7, 20), st.data())
def test_a_way_around_them_takes_the_bound_away(count, data):
    names, targets, parameters = ladder(count)
    first = data.draw(st.integers(0, 0))
    last = data.draw(st.integers(count - 4, count))
    targets[first] = (*targets[first], last)
    found = bounded_chain(names, targets, parameters)
    assert found is None


def test_a_graph_without_parameters_has_none():
    assert bounded_chain([], [], {}) is None
    assert bounded_chain(["Sigmoid"] * 9, [(i + 1,) for i in range(8)] + [()], {}) is None
