"""Selection: compiled and in NumPy's form, the same bits."""

import numpy as np
import pytest

from gradscope.runtime.kernels.forms import LEAST
from gradscope.runtime.kernels.selection import reversed_rows, select, triangle
from tests.runtime.kernels.both_forms import both


@pytest.mark.parametrize("size", [LEAST, 3 * LEAST + 1])
@pytest.mark.parametrize("kind", ["f", "i"])
def test_both_forms_choose_the_same_bits(kind, size):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (2, size * 4), dtype=np.uint8).view(kind)
    mask = rng.random(size) > 0.5
    for chosen, other in ((a, b), (a, b[:1].reshape(())), (a[:1].reshape(()), b), (a[::2].repeat(2)[:size], b)):
        compiled, plain = both("selection_loops", select, np, mask, chosen, other)
        assert compiled.tobytes() == plain.tobytes() == np.where(mask, chosen, other).tobytes()


@pytest.mark.parametrize("diagonal", [-400, -5, 0, 3, 400, 10**12, -(10**12)])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("kind", ["f", "i"])
def test_both_forms_give_numpys_triangles(kind, lower, diagonal):
    array = np.random.default_rng(0).integers(1, 100, (2, 40, 300)).astype(kind)
    wanted = (np.tril if lower else np.triu)(array, diagonal)
    for found in both("selection_loops", lambda: triangle(array, diagonal, lower=lower)):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["f", "i"])
def test_both_forms_reverse_rows(kind):
    array = np.random.default_rng(0).integers(0, 256, (70, 300, 4), dtype=np.uint8).view(kind).reshape(70, 300)
    for found in both("selection_loops", reversed_rows, array):
        np.testing.assert_array_equal(found.view("i"), array[:, ::-1].view("i"))
