"""Compiled functions of calculus, beside NumPy's in double precision."""

import numpy as np
import pytest

from gradscope.runtime.kernels.forms import pointwise
from tests.runtime.kernels.both_forms import both

LOOPS = {
    "exps": np.exp, "exp2s": np.exp2, "expm1s": np.expm1, "log10s": np.log10, "log1ps": np.log1p, "sinhs": np.sinh,
    "coshs": np.cosh, "tanhs": np.tanh, "asins": np.arcsin, "acoss": np.arccos, "atans": np.arctan,
    "atanhs": np.arctanh, "atan2s": np.arctan2,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_both_forms_are_off_by_few_units_in_the_last_place(name):
    x, y = (np.random.default_rng(0).standard_normal((2, 40_000)) * 2).astype("f")
    given = (y, x) if name == "atan2s" else (x,)
    with np.errstate(all="ignore"):
        exact = LOOPS[name](*[a.astype("d") for a in given])
        for form in both("calculus_loops", lambda: pointwise(f"calculus_loops.{name}", LOOPS[name], *given)):
            np.testing.assert_allclose(form, exact, rtol=5e-7)
