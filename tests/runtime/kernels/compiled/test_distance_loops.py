"""Compiled distances between rows, and their derivative, beside sums in double precision."""

import numpy as np
import pytest

from gradscope.runtime.kernels import loading

rng = np.random.default_rng(0)


@pytest.mark.parametrize(("rows", "others", "width"), [(1, 1, 1), (3, 70, 5), (40, 17, 64), (2, 3, 0), (0, 4, 3)])
@pytest.mark.parametrize("name", ["euclidean", "manhattan"])
def test_distances_and_pulls_are_sums(name, rows, others, width):
    pytest.importorskip("numba", reason="compiles kernels")
    loops = loading.compiled("distance_loops")
    a, b, weights = (
        rng.standard_normal(shape).astype("f") for shape in ((rows, width), (others, width), (rows, others))
    )
    distances, pulls, columns = np.empty((rows, others), "f"), np.empty((rows, width), "f"), np.ascontiguousarray(b.T)
    getattr(loops, f"{name}_distances")(a, columns, distances)
    getattr(loops, f"{name}_pulls")(weights, a, columns, pulls)
    apart = a[:, None].astype("d") - b
    norms = np.sqrt((apart**2).sum(-1)) if name == "euclidean" else abs(apart).sum(-1)
    slopes = apart if name == "euclidean" else np.sign(apart)
    np.testing.assert_allclose(distances, norms, rtol=1e-6)
    np.testing.assert_allclose(pulls, (weights[..., None] * slopes).sum(1), rtol=1e-5, atol=1e-5)
