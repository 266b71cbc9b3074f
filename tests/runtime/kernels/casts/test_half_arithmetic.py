"""Ufuncs of half precision, bit for bit those of NumPy."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels.casts.half_arithmetic import in_single
from tests.runtime.kernels.both_forms import numpy_alone

rng = np.random.default_rng(0)
ANY, OTHER = (rng.integers(0, 1 << 16, 40_000, dtype="u2").view("e") for _ in "ab")
SMALL, LARGE = (rng.standard_normal((200, 200)).astype("e") * np.float16(scale) for scale in (1e-3, 100))


@pytest.fixture(params=[True, False], ids=["as installed", "NumPy alone"], autouse=True)
def kernels(request):
    if request.param:
        yield
    else:
        with numpy_alone():
            yield


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(found[there].view("u2"), expected[there].view("u2"))


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum])
@pytest.mark.parametrize("pair", [(ANY, OTHER), (SMALL, LARGE), (SMALL, SMALL)], ids=["any", "apart", "alike"])
def test_numbers_are_numpys(ufunc, pair):
    with np.errstate(all="ignore"):
        same(in_single(ufunc, *pair), ufunc(*pair))


@pytest.mark.parametrize("number", [3, 0.1, -1e-9, 7e4, float("nan")])
def test_a_number_is_rounded_to_half_precision_first(number):
    with np.errstate(all="ignore"):
        same(in_single(np.multiply, ANY, number), ANY * np.float16(number))
        same(in_single(np.subtract, number, ANY), np.float16(number) - ANY)
        same(in_single(np.multiply, np.broadcast_to(np.float16(number), ANY.shape), ANY), ANY * np.float16(number))


def test_what_is_no_ufunc_of_arrays_of_one_shape_is_called():
    transposed, row = LARGE.T, LARGE[0]
    with np.errstate(all="ignore"):
        for pair in ((LARGE, transposed), (LARGE, row), (LARGE, LARGE.astype("f")), (LARGE[:3], LARGE[:3])):
            same(in_single(np.multiply, *pair), np.multiply(*pair))
        same(in_single(lambda a, b: a * b + a, LARGE, SMALL), LARGE * SMALL + LARGE)
        same(in_single(lambda a, b: a * b, LARGE, SMALL), LARGE * SMALL)
        assert in_single(np.greater, LARGE, SMALL).dtype == bool
        assert in_single(np.multiply, LARGE[:0], SMALL[:0]).shape == (0, 200)


def test_products_of_large_tensors_and_their_gradients_are_those_of_their_parts():
    a, b = (gs.tensor(x, requires_grad=True) for x in (SMALL, LARGE))
    (a * b / 3 + a).backward(gs.tensor(LARGE))
    part = [gs.tensor(x[:2], requires_grad=True) for x in (SMALL, LARGE)]
    (part[0] * part[1] / 3 + part[0]).backward(gs.tensor(LARGE[:2]))
    for whole, piece in zip((a, b), part, strict=True):
        same(whole.grad.numpy()[:2], piece.grad.numpy())
