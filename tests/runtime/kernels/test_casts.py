"""Conversions to half precision and back, bit for bit those of NumPy, and of expanded arrays."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels.casts import cast
from tests.runtime.kernels.both_forms import numpy_alone

HALVES = np.arange(1 << 16, dtype="u2").view("e")
HALF, SINGLE = np.dtype("e"), np.dtype("f")


@pytest.fixture(params=[True, False], ids=["as installed", "NumPy alone"], autouse=True)
def kernels(request):
    if request.param:
        yield
    else:
        with numpy_alone():
            yield


def same_bits(found, expected):
    """Hold two arrays against each other; a NaN may have another payload."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    bits = f"u{found.itemsize}"
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(found.view(bits)[there], expected.view(bits)[there])


def test_every_half_is_the_same_number_in_single_precision():
    same_bits(cast(HALVES, SINGLE), HALVES.astype("f"))
    same_bits(cast(HALVES[np.isfinite(HALVES)], SINGLE), HALVES[np.isfinite(HALVES)].astype("f"))


@pytest.mark.parametrize("name", ["any bits", "around half precision", "ties", "beside ties", "no NaN"])
def test_numbers_are_rounded_to_the_nearest_half(name):
    rng = np.random.default_rng(0)
    finite = np.sort(HALVES[np.isfinite(HALVES)].astype("d"))
    ties = ((finite[1:] + finite[:-1]) / 2).astype("f")
    numbers = {
        "any bits": rng.integers(0, 2**32, 1 << 18, dtype="u4").view("f"),
        "around half precision": (rng.standard_normal(1 << 18) * 2.0 ** rng.integers(-27, 18, 1 << 18)).astype("f"),
        "ties": ties,
        "beside ties": np.concatenate([np.nextafter(ties, np.float32(sign * np.inf)) for sign in (-1, 1)]),
        "no NaN": np.array([0.0, -0.0, np.inf, -np.inf, 65504, 65519.99, 65520, 1e30] * 4096, "f"),
    }[name]
    with np.errstate(over="ignore"):
        same_bits(cast(numbers, HALF), numbers.astype("e"))


@pytest.mark.parametrize("kind", ["e", "f", "d", "q"])
def test_an_expanded_number_is_converted_once_and_can_be_written(kind):
    expanded = np.broadcast_to(np.float32(2.5), (300, 200))
    found = cast(expanded, np.dtype(kind))
    same_bits(found, expanded.astype(kind))
    found[0, 0] = 1
    assert found[1, 1] == expanded.astype(kind)[1, 1]


def test_layouts_and_other_dtypes_are_left_to_numpy():
    x = np.random.default_rng(0).standard_normal((300, 200)).astype("f")
    for array in (x.T, x[::2], x.astype("d"), x[:2, :2]):
        with np.errstate(over="ignore"):
            same_bits(cast(array, HALF), array.astype("e"))


def test_an_expanded_gradient_of_bfloat16_is_of_its_class():
    x = gs.ones(3000, requires_grad=True)
    x.bfloat16().sum().backward()
    assert x.grad.dtype is gs.float32
    assert (x.grad == 1).all()
    assert gs.ones(1).expand(3000).bfloat16().float().sum() == 3000
