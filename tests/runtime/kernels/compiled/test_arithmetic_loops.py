"""Arithmetic beside a row, and beside a number for each row: compiled and NumPy's, the same bits."""

import numpy as np
import pytest

from gradscope.runtime.kernels import loading

UFUNCS = {
    "ADD": np.add,
    "SUBTRACT": np.subtract,
    "SUBTRACT_FROM": lambda x, y: np.subtract(y, x),
    "MULTIPLY": np.multiply,
    "DIVIDE": np.divide,
    "DIVIDE_BY": lambda x, y: np.divide(y, x),
}


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("shape", [(5, 1), (7, 33), (3, 64)])
def test_both_forms_compute_the_same_bits(name, shape):
    loops = loading.compiled("arithmetic_loops")
    if loops is None:
        pytest.skip("compiles kernels")
    rng = np.random.default_rng(0)
    x, row, column = (rng.standard_normal(size).astype("f") for size in (shape, shape[1], shape[0]))
    x[0, 0], row[0], column[0] = np.nan, np.inf, 0
    with np.errstate(all="ignore"):
        for loop, other, beside in ((loops.beside_row, row, row), (loops.beside_numbers, column, column[:, None])):
            result = np.full_like(x, 7)
            loop(x, other, getattr(loops, name), 1, len(x), result)
            np.testing.assert_array_equal(result[1:].view("i"), UFUNCS[name](x, beside)[1:].view("i"))
            assert (result[0] == 7).all()
