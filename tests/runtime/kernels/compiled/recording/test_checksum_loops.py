"""The compiled checksums, beside those of NumPy."""

import numpy as np
import pytest

from gradscope.inspect.records.checksums import BLOCK, checksum, checksums_in_memory
from gradscope.inspect.records.tensor_statistics import norm_of

pytest.importorskip("numba", reason="compiles kernels")

SIZES = [0, 1, 2, 7, 101, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 6 * BLOCK + 5]


@pytest.mark.parametrize("norms", [True, False])
def test_runs_of_any_length_have_the_checksums_and_norms_of_numpy(norms):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(size).astype("f") for size in SIZES]
    addresses = [array.ctypes.data for array in arrays]
    sums, lengths = checksums_in_memory(addresses, SIZES, norms=norms)
    assert sums == [checksum(array) for array in arrays]
    assert lengths == pytest.approx([norm_of(array) if norms else 0.0 for array in arrays], rel=1e-12)


def test_numbers_out_of_range_keep_their_norms():
    arrays = [np.full(8, value, "f") for value in (1e30, 1e-40, np.inf, np.nan)]
    _, norms = checksums_in_memory([array.ctypes.data for array in arrays], [8] * 4, norms=True)
    assert norms == pytest.approx([norm_of(array) for array in arrays], nan_ok=True)
