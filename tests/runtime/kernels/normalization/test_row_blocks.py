"""Which arrays the kernels of normalisation are for."""

import numpy as np
import pytest

from gradscope.runtime.kernels.normalization.row_blocks import is_worth_it
from tests.runtime.kernels.both_forms import numpy_alone


@pytest.mark.parametrize(
    ("array", "others", "worth"),
    [
        (np.zeros((128, 128), "f"), [None], True),
        (np.zeros((128, 128)), [np.zeros(128)], True),
        (np.zeros((128, 127)), [], False),
        (np.zeros((0, 128), "f"), [], False),
        (np.zeros((128, 128), "e"), [], False),
        (np.zeros((256, 128), "f").T, [], False),
        (np.zeros((128, 128), "f"), [np.zeros(128)], False),
    ],
    ids=["large", "doubles", "small", "empty", "half", "another layout", "mixed"],
)
def test_what_they_are_for(array, others, worth):
    assert is_worth_it(array, *others) is worth


def test_the_compiled_form_is_for_small_arrays_too():
    pytest.importorskip("numba", reason="compiles kernels")
    assert is_worth_it(np.zeros((2, 3), "f"), np.zeros(3, "f"))
    with numpy_alone():
        assert not is_worth_it(np.zeros((2, 3), "f"), np.zeros(3, "f"))
