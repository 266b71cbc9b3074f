"""Functions of one number in double precision, as exact as a float32 can tell."""

import math

import numpy as np
import pytest

from gradscope.runtime.kernels import loading

EXACT = {"exp": math.exp, "tan": math.tan, "erfc": math.erfc}
OF_POSITIVE = {"log": math.log, "logit": lambda x: math.log(x / (1 - x)) if x < 1 else math.inf}


@pytest.fixture
def doubles():
    pytest.importorskip("numba", reason="compiles kernels")
    return loading.compiled("jit.doubles")


@pytest.mark.parametrize("name", EXACT | OF_POSITIVE)
def test_they_are_off_by_a_quarter_of_a_float32s_last_place(doubles, name):
    numbers = [*np.linspace(1e-6, 9, 4001), *np.geomspace(1e-30, 1, 50)]
    if name in EXACT:
        numbers += [-x for x in numbers]
    for x in map(float, numbers if name != "logit" else [x / 10 for x in numbers]):
        x = float(np.float32(x))
        np.testing.assert_allclose(
            getattr(doubles, name)(x), (EXACT | OF_POSITIVE)[name](x), rtol=1.5e-8, atol=1e-9, err_msg=f"{name}({x})"
        )


def test_multiples_of_half_pi_are_subtracted_exactly(doubles):
    for x in (np.arange(1.0, 600_000, 999) * (math.pi / 2)).astype("f").astype("d"):
        assert x < doubles.MOST_TAN
        np.testing.assert_allclose(doubles.tan(x), math.tan(x), rtol=2e-8)


def test_extremes(doubles):
    assert doubles.log(0.0) == -math.inf
    assert doubles.log(math.inf) == math.inf
    assert math.isnan(doubles.log(-1.0))
    assert doubles.log(1e-45) == pytest.approx(math.log(1e-45))
    assert doubles.hypot(np.float32(math.inf), np.float32(math.nan)) == math.inf
    assert doubles.hypot(np.float32(3e38), np.float32(3e38)) == pytest.approx(math.hypot(3e38, 3e38), 1e-6)
    assert [doubles.erfinv(np.float32(x)) for x in (1, -1)] == [math.inf, -math.inf]
    assert math.isnan(doubles.erfinv(np.float32(1.5)))
    assert math.copysign(1, doubles.erfinv(np.float32(-0.0))) == -1
    for name in ("exp", "log", "tan", "erfc", "erfinv", "i0", "i1", "logit"):
        assert math.isnan(getattr(doubles, name)(math.nan)), name
