"""Selection by masks: what where() gives, bit for bit."""

import numpy as np
import pytest

from gradscope.runtime.kernels import forms
from gradscope.runtime.kernels.forms import LEAST
from gradscope.runtime.kernels.selection import reversed_rows, select, triangle

KINDS = ["?", "b", "e", "i", "f", "d", "F", "D"]


def arrays(kind, size):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (2, size * np.dtype(kind).itemsize), dtype=np.uint8)
    a, b = (rng.integers(0, 2, size).astype(bool) if kind == "?" else x.view(kind) for x in (a, b))
    return rng.integers(0, 2, size).astype(bool), a, b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 7, LEAST, 3 * LEAST + 1])
def test_bits_are_those_of_where(kind, size):
    mask, a, b = arrays(kind, size)
    for chosen, other in ((a, b), (a, np.zeros((), kind)), (np.ones((), kind), b), (np.ones((), kind),) * 2):
        actual, expected = select(np, mask, chosen, other), np.where(mask, chosen, other)
        assert (actual.dtype, actual.shape, actual.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@pytest.mark.parametrize(
    "change",
    [
        lambda mask, a, b: (mask.T, a.T, b.T),
        lambda mask, a, b: (mask, a[:1], b),
        lambda mask, a, b: (mask, a.astype("d"), b),
        lambda mask, a, b: (mask, a, 2.0),
        lambda mask, a, b: (mask, a[:, ::-1], b),
        lambda mask, a, b: (mask[:1], a, b),
    ],
)
def test_arrays_of_other_layouts_go_to_where(change):
    mask, a, b = change(*(x.reshape(300, -1) for x in arrays("i", 300 * 200)))
    actual, expected = select(np, mask, a, b), np.where(mask, a, b)
    assert actual.dtype == expected.dtype
    assert actual.flags.c_contiguous == expected.flags.c_contiguous
    assert (actual == expected).all()


def test_a_mask_of_no_dimension_chooses_a_number(monkeypatch):
    monkeypatch.setattr(forms, "LEAST", 1)
    for mask in (True, False):
        chosen = select(np, np.array(mask), np.array(2.0), np.array(-0.0))
        assert (chosen.shape, chosen.tobytes()) == ((), np.array(2.0 if mask else -0.0).tobytes())


@pytest.mark.parametrize("kind", ["f", "d", "e"])
@pytest.mark.parametrize("number", [0, -1.5, np.float32(0.1), np.float64(0.1), float("nan"), True], ids=repr)
def test_numbers_and_expanded_arrays_are_chosen_as_numpy_does(number, kind):
    condition = np.random.default_rng(0).random((128, 200)) > 0.5
    array = np.random.default_rng(1).standard_normal(condition.shape).astype(kind)
    spread = np.broadcast_to(array[:1, :1], condition.shape)
    for chosen, other in ((number, array), (array, number), (spread, array), (array, spread), (number, spread)):
        found, expected = select(np, condition, chosen, other), np.where(condition, chosen, other)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 50, 260), (2, 300, 40), (4, 4)])
@pytest.mark.parametrize("diagonal", [-60, -1, 0, 2, 300])
def test_triangles_are_numpys(shape, diagonal, kind):
    array = np.random.default_rng(0).integers(1, 9, shape).astype(kind)
    for given in (array, array[..., ::-1]):
        for name in ("tril", "triu"):
            expected = getattr(np, name)(given, diagonal)
            actual = triangle(given, diagonal, lower=name == "tril")
            assert (actual.dtype, actual.tobytes()) == (expected.dtype, expected.tobytes())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 50, 260), (40_000,), (0, 3), (4, 0)])
def test_reversed_rows_are_numpys(shape, kind):
    array = np.random.default_rng(0).integers(1, 9, shape).astype(kind)
    actual = reversed_rows(array)
    assert actual.flags.c_contiguous
    np.testing.assert_array_equal(actual, array[..., ::-1])


@pytest.mark.parametrize("expanded", [(4, 20_000), (1, 4, 20_000), (20_000,)])
def test_an_expanded_array_of_another_shape_than_the_mask_broadcasts(expanded):
    condition = np.random.default_rng(0).random((1, 20_000)) > 0.5
    spread, array = np.broadcast_to(np.float32(2), expanded), np.zeros(20_000, "f")
    for chosen, other in ((spread, array), (array, spread), (spread, 0.0)):
        found, expected = select(np, condition, chosen, other), np.where(condition, chosen, other)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, strict=True)
