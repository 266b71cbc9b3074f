"""erf in single precision, beside SciPy's in double."""

import numpy as np
import pytest

from gradscope.runtime.kernels.error_function_kernel import erf, gelu, gelu_backward

SPECIAL = np.array([0.0, -0.0, 1e-45, -1e-45, 5.0, -5.0, 9e37, np.inf, -np.inf, np.nan], "f")


def test_it_is_off_by_few_units_in_the_last_place():
    from scipy.special import erf as exact

    x = np.concatenate([np.linspace(-6, 6, 1_000_001), np.geomspace(1e-37, 1, 1001)]).astype("f")
    np.testing.assert_allclose(erf(np, x), exact(x.astype("d")), rtol=4e-7)


def test_special_numbers():
    result = erf(np, SPECIAL)
    np.testing.assert_array_equal(result[-5:], np.array([-1, 1, 1, -1, np.nan], "f"))
    assert np.signbit(result[:4]).tolist() == [False, True, False, True]
    assert result[4] == 1


@pytest.mark.parametrize(
    "x",
    [np.float32(0.5), np.zeros((), "f"), np.zeros((0, 3), "f"), np.zeros((2, 1 << 16), "f"), np.zeros((3, 2), "f").T],
    ids=["number", "0-d", "empty", "large", "turned"],
)
def test_shapes_stay(x):
    assert erf(np, x).shape == x.shape
    assert erf(np, x).dtype == "f"


def test_gelu_and_its_gradient_beside_scipys_normal_distribution():
    from scipy.special import ndtr

    x = np.concatenate([np.linspace(-6, 6, 200_001), SPECIAL[:-3]]).astype("f")
    exact = x.astype("d")
    np.testing.assert_allclose(gelu(x), exact * ndtr(exact), rtol=4e-7, atol=4e-7)
    slope = ndtr(exact) + exact * np.exp(-(exact**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(gelu_backward(3 * np.ones_like(x), x), 3 * slope, rtol=1e-6, atol=1e-6)
    assert gelu_backward(np.ones(2, "f"), np.array([0.0, -0.0], "f")).tolist() == [0.5, 0.5]


def test_gelu_of_numbers_that_are_none_or_infinite_is_pytorchs():
    x = np.array([np.inf, -np.inf, np.nan], "f")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(gelu(x), np.array([np.inf, np.nan, np.nan], "f"))
        assert np.isnan(gelu_backward(np.ones_like(x), x)).all()
