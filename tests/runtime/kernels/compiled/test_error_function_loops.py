"""The compiled error function, beside NumPy's form."""

import numpy as np

import gradscope as gs
from tests.runtime.kernels.both_forms import both


def test_both_forms_agree():
    x = np.concatenate([np.linspace(-6, 6, 40_000), [0.0, -0.0, 1e-45, np.inf, -np.inf, np.nan]]).astype("f")
    compiled, plain = both("error_function_loops", lambda: gs.erf(gs.tensor(x)).numpy())
    np.testing.assert_allclose(compiled, plain, rtol=4e-7)
    np.testing.assert_array_equal(np.signbit(compiled), np.signbit(plain))
