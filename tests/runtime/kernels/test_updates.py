"""Which steps of optimizers a compiled kernel takes."""

import numpy as np
import pytest

from gradscope.runtime.kernels import updates
from tests.runtime.kernels.both_forms import numpy_alone

LARGE = (updates.LEAST // 128, 64)


def arrays(*shapes, dtype="f"):
    return [np.zeros(shape, dtype) for shape in shapes]


@pytest.mark.parametrize(
    "given",
    [
        arrays((8,), (8,)),
        arrays(LARGE, LARGE, dtype="d"),
        [np.zeros(LARGE[::-1], "f").T, np.zeros(LARGE, "f")],
        [np.zeros(LARGE, "f"), np.zeros(LARGE)],
        [np.zeros(LARGE, ">f4"), np.zeros(LARGE, "f")],
        [np.broadcast_to(np.zeros(1, "f"), LARGE), np.zeros(LARGE, "f")],
    ],
    ids=["small", "doubles", "another layout", "mixed", "another byte order", "read-only"],
)
def test_what_is_not_for_a_compiled_pass(given):
    assert updates.vectors(*given) is None


def test_vectors_share_the_memory():
    pytest.importorskip("numba", reason="compiles kernels")
    p, g = arrays(LARGE, LARGE)
    g.flags.writeable = False
    flat = updates.vectors(p, g)
    assert flat is not None
    assert all(np.shares_memory(one, other) for one, other in zip(flat, (p, g)))
    with numpy_alone():
        assert updates.vectors(p, g) is None
