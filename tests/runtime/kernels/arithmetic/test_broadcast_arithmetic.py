"""Arithmetic of an array with one that broadcasts to it gives, bit for bit, what NumPy gives."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.kernels import loading, threads
from gradscope.runtime.kernels.arithmetic.broadcast_arithmetic import OPERATIONS, arithmetic

compiled = pytest.mark.skipif(loading.compiled("arithmetic_loops") is None, reason="compiles kernels")

PAIRS = {
    "a row": ((64, 300), (300,)),
    "a row of two dimensions": ((20, 30, 40), (30, 40)),
    "a row with dimensions before": ((64, 300), (1, 300)),
    "a matrix": ((2, 200, 200), (200, 200)),
    "a number for each row": ((300, 64), (300, 1)),
    "a number for each channel": ((8, 6, 20, 20), (6, 1, 1)),
    "a number for each channel, with the batch's dimension": ((8, 6, 20, 20), (1, 6, 1, 1)),
    "a number for each image": ((8, 6, 20, 20), (8, 1, 1, 1)),
    "a number for each row of each image": ((8, 6, 20, 20), (8, 6, 20, 1)),
    "rows of one element": ((20_000, 1), (20_000, 1, 1)),
}
OTHERS = {
    "both broadcast": ((200, 1, 200), (200, 200, 1)),
    "a column in the middle": ((20, 40, 40), (20, 1, 40)),
    "one number": ((200, 200), (1, 1)),
    "another number of rows": ((200, 200), (3, 1, 200)),
    "small": ((20, 20), (20,)),
}


def numbers(*shapes, kind="f"):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(kind) for shape in shapes]
    for array in arrays:
        array.flat[:4] = np.nan, np.inf, 0.0, -0.0
    return arrays


@compiled
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("ufunc", OPERATIONS, ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("shapes", [PAIRS[name] for name in PAIRS if name != "rows of one element"], ids=str)
def test_they_are_numpys(shapes, ufunc, count, monkeypatch):
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "_WORTH_QUICK", {True: 1, False: 1})
    monkeypatch.setattr(threads, "_LEAD", 0)
    monkeypatch.setattr(threads, "_LEAD_OF_AWAKE", 0)
    before = threads.count()
    threads.set_count(count)
    try:
        with np.errstate(all="ignore"):
            for pair in (numbers(*shapes), numbers(*shapes)[::-1]):
                found = arithmetic(ufunc, *pair)
                assert found is not None
                np.testing.assert_array_equal(found.view("i"), ufunc(*pair).view("i"))
    finally:
        threads.set_count(before)


@pytest.mark.parametrize("shapes", OTHERS.values(), ids=OTHERS)
def test_the_rest_is_left_to_numpy(shapes):
    assert arithmetic(np.add, *numbers(*shapes)) is None


@pytest.mark.parametrize("kind", ["d", "e", "i", "F"])
def test_other_dtypes_are_left_to_numpy(kind):
    assert arithmetic(np.add, np.ones((200, 200), kind), np.ones(200, kind)) is None
    assert arithmetic(np.add, np.ones((200, 200), "f"), np.ones(200, kind)) is None


def test_other_layouts_of_the_larger_one_are_left_to_numpy():
    x = np.ones((200, 400), "f")
    for array in (x[:, ::2], x.T[:200], x[::-1, :200]):
        assert arithmetic(np.add, array, np.ones(200, "f")) is None


@compiled
def test_the_smaller_one_may_lie_in_any_way():
    x, wide = numbers((200, 200), (200, 2))
    expanded = np.broadcast_to(np.float32(2), 200)
    for row in (wide[:, 0], wide[::-1, 1], expanded):
        np.testing.assert_array_equal(arithmetic(np.add, x, row), x + row)


@compiled
def test_what_is_written_may_be_the_larger_one_but_overlap_the_smaller():
    x, row = numbers((200, 200), (200,))
    x[0], row[:4] = 1, 2
    wanted = x * row
    assert arithmetic(np.multiply, x, row, out=x) is x
    np.testing.assert_array_equal(x, wanted)
    wanted = x + x[3]
    arithmetic(np.add, x, x[3], out=x)
    np.testing.assert_array_equal(x, wanted)
    buffer = np.zeros(200 * 201, "f")
    given, out = buffer[:40_000].reshape(200, 200), buffer[200:].reshape(200, 200)
    assert arithmetic(np.add, given, row, out=out) is None


shapes = st.sampled_from([*PAIRS.values(), *OTHERS.values()])


@settings(deadline=None, max_examples=30)
@given(shapes, st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv]), st.booleans())
def test_operators_and_their_gradients_are_numpys(shapes, function, turned):
    x, y = numbers(*(shapes[::-1] if turned else shapes))
    x, y = (np.abs(np.nan_to_num(array, posinf=2)) + 1 for array in (x, y))
    a, b = (gs.tensor(array, requires_grad=True) for array in (x, y))
    result = function(a, b)
    np.testing.assert_array_equal(result.detach().numpy(), function(x, y))
    result.sum().backward()
    c, d = (gs.tensor(array.astype("d"), requires_grad=True) for array in (x, y))
    function(c, d).sum().backward()
    for one, other in ((a, c), (b, d)):
        exact = other.grad.numpy()
        np.testing.assert_allclose(one.grad.numpy(), exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max())
