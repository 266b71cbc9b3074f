"""Compiled conversions of half precision, beside NumPy's form."""

import numpy as np

from gradscope.runtime.kernels.casts import cast
from tests.runtime.kernels.both_forms import both


def test_both_forms_give_the_same_bits():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(100_000) * 2.0 ** rng.integers(-27, 18, 100_000)).astype("f")
    with np.errstate(over="ignore"):
        compiled, plain = both("half_precision_loops", cast, x, np.dtype("e"))
    np.testing.assert_array_equal(compiled.view("u2"), plain.view("u2"))
    compiled, plain = both("half_precision_loops", cast, compiled, np.dtype("f"))
    np.testing.assert_array_equal(compiled.view("u4"), plain.view("u4"))
