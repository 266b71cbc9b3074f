"""Functions of one float32 in compiled kernels, beside NumPy's in double precision."""

import math

import numpy as np
import pytest

from gradscope.runtime.kernels import loading

EXACT = {
    "exp": math.exp,
    "gradual_exp": math.exp,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}
WITHIN_ONE = {"atanh": math.atanh, "asin": math.asin, "acos": math.acos, "log1p": math.log1p}
OF_POSITIVE = {"log": math.log, "log10": math.log10}
EVERYWHERE = {"exp2": math.exp2, "expm1": math.expm1, "sinh": math.sinh, "cosh": math.cosh, "atan": math.atan}
NUMBERS = [float(np.float32(x)) for x in (*np.linspace(-9, 9, 4001), *np.geomspace(1e-30, 1, 50), -87.0, 80.0, 88.7)]


@pytest.fixture
def scalars():
    pytest.importorskip("numba", reason="compiles kernels")
    return loading.compiled("jit.scalars")


@pytest.mark.parametrize("name", EXACT)
def test_they_are_off_by_few_units_in_the_last_place(scalars, name):
    function = getattr(scalars, name)
    for x in NUMBERS:
        np.testing.assert_allclose(function(np.float32(x)), EXACT[name](x), rtol=6e-7, atol=1e-37)


def test_tanh_and_exp_are_as_exact_as_numpys(scalars):
    for name in ("tanh", "gradual_exp"):
        function = getattr(scalars, name)
        for x in NUMBERS:
            exact = EXACT[name](x)
            assert abs(float(function(np.float32(x))) - exact) <= 1.5 * np.spacing(np.float32(abs(exact))), (name, x)


@pytest.mark.parametrize("name", [*WITHIN_ONE, *EVERYWHERE, *OF_POSITIVE])
def test_functions_of_calculus_are_off_by_three_units_in_the_last_place(scalars, name):
    function = getattr(scalars, name)
    numbers = [x / 128 for x in NUMBERS if abs(x) < 120] if name in WITHIN_ONE else NUMBERS
    numbers = [abs(x) for x in numbers if x] if name in OF_POSITIVE else numbers
    for x in map(np.float32, numbers):
        exact = (WITHIN_ONE | EVERYWHERE | OF_POSITIVE)[name](float(x))
        assert abs(float(function(x)) - exact) <= 3 * np.spacing(np.float32(abs(exact))), x


def test_ends_of_domains(scalars):
    for name in (*WITHIN_ONE, *EVERYWHERE, *OF_POSITIVE):
        for x in (0.0, -0.0, 1.0, -1.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e-42):
            numpys = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atanh": "arctanh"}.get(name, name)
            with np.errstate(all="ignore"):
                expected = getattr(np, numpys)(np.float32(x))
            found = np.float32(getattr(scalars, name)(np.float32(x)))
            np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1.5e-45, err_msg=f"{name}({x})")
            assert np.isnan(expected) or np.signbit(found) == np.signbit(expected), f"{name}({x})"


def test_underflow_is_gradual(scalars):
    for x in (-87.5, -90.0, -100.0, -103.5):
        x = float(np.float32(x))
        np.testing.assert_allclose(scalars.gradual_exp(np.float32(x)), math.exp(x), atol=1.5e-45)
    assert [scalars.gradual_exp(np.float32(x)) for x in (-104.5, -math.inf, 89.0, math.inf)] == [
        0,
        0,
        math.inf,
        math.inf,
    ]


def test_zero_keeps_its_sign(scalars):
    assert math.copysign(1, scalars.tanh(np.float32(-0.0))) == -1


def test_extremes(scalars):
    numbers = [np.float32(x) for x in (math.inf, -math.inf, 89.0, -200.0, 88.72, math.nan)]
    assert [scalars.exp(x) for x in numbers[:4]] == [math.inf, 0, math.inf, 0]
    assert math.isfinite(scalars.exp(numbers[4]))
    assert all(math.isnan(getattr(scalars, name)(numbers[5])) for name in EXACT)
    assert [scalars.tanh(x) for x in numbers[:2]] == [1, -1] == [scalars.erf(x) for x in numbers[:2]]
    assert [scalars.sigmoid(x) for x in numbers[:2]] == [1, 0]
