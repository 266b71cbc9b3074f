"""Functions of one float32 in compiled kernels, beside NumPy's in double precision."""

import math

import numpy as np
import pytest

from gradscope.runtime.kernels import forms

EXACT = {
    "exp": math.exp,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}
NUMBERS = [float(np.float32(x)) for x in (*np.linspace(-9, 9, 4001), *np.geomspace(1e-30, 1, 50), -87.0, 80.0, 88.7)]


@pytest.fixture
def scalars():
    pytest.importorskip("numba", reason="compiles kernels")
    return forms.compiled("scalars")


@pytest.mark.parametrize("name", EXACT)
def test_they_are_off_by_few_units_in_the_last_place(scalars, name):
    function = getattr(scalars, name)
    for x in NUMBERS:
        np.testing.assert_allclose(function(np.float32(x)), EXACT[name](x), rtol=6e-7, atol=1e-37)


def test_extremes(scalars):
    numbers = [np.float32(x) for x in (math.inf, -math.inf, 89.0, -200.0, 88.72, math.nan)]
    assert [scalars.exp(x) for x in numbers[:4]] == [math.inf, 0, math.inf, 0]
    assert math.isfinite(scalars.exp(numbers[4]))
    assert all(math.isnan(getattr(scalars, name)(numbers[5])) for name in EXACT)
    assert [scalars.tanh(x) for x in numbers[:2]] == [1, -1] == [scalars.erf(x) for x in numbers[:2]]
    assert [scalars.sigmoid(x) for x in numbers[:2]] == [1, 0]
