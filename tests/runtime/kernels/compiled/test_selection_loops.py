"""Selection: compiled and in NumPy's form, the same bits."""

import numpy as np
import pytest

from gradscope.runtime.kernels.forms import LEAST
from gradscope.runtime.kernels.selection import select
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
