"""Tiles of products, beside the same in NumPy."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="compiles kernels")

import numba

from gradscope.runtime.kernels.compiled.jit.tiles import LANES, product_tile, sums_tile


def whole_numbers(*shape):
    return np.random.default_rng(0).integers(-4, 5, shape).astype("f")


@pytest.mark.parametrize(("rows", "vectors"), [(1, 3), (3, 2)])
def test_products(rows, vectors):
    tile = product_tile(rows, vectors)

    @numba.njit
    def run(x, distances, weights, result):
        tile(x.ctypes.data, distances.ctypes.data, len(distances), weights.ctypes.data, result.ctypes.data, 64 * 2)

    width = vectors * LANES
    x, distances, weights = whole_numbers(width + 9), np.array([0, 5, 2, 9]), whole_numbers(4, rows)
    result = np.full((rows, 64 * 2), 7, "f")
    run(x, distances, weights, result)
    np.testing.assert_array_equal(result[:, :width], weights.T @ np.stack([x[d : d + width] for d in distances]))
    assert (result[:, width:] == 7).all()


@pytest.mark.parametrize(("rows", "taps"), [(1, 4), (3, 2)])
@pytest.mark.parametrize("count", [1, LANES, 3 * LANES - 1])
def test_sums(rows, taps, count):
    tile = sums_tile(rows, taps)

    @numba.njit
    def run(x, distances, count, gradient, result):
        tile(x.ctypes.data, distances.ctypes.data, count, gradient.ctypes.data, result.ctypes.data, gradient.shape[1])

    x, distances = whole_numbers(4 * LANES + 9), np.array([3, 9, 0, 4])[:taps]
    gradient, result = whole_numbers(rows, 4 * LANES), whole_numbers(rows, taps)
    gradient[:, count:] = 0
    before = result.copy()
    run(x, distances, count, gradient, result)
    columns = np.stack([x[d : d + 4 * LANES] for d in distances], 1)
    np.testing.assert_array_equal(result, before + gradient @ columns)
