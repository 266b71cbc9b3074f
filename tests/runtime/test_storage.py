"""Geometry of memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime import storage
from gradscope.runtime.storage import is_viewable, shared_shape


@st.composite
def strided(draw):
    """Draw an array of odd strides and another shape for its elements."""
    shape = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 6]), max_size=4))
    array = np.zeros(shape).transpose(draw(st.permutations(range(len(shape)))))
    if array.ndim and draw(st.booleans()):
        array = array[::2]
    if draw(st.booleans()):
        array = np.broadcast_to(array[None], (draw(st.integers(1, 3)), *array.shape))
    sizes, left = [], array.size
    while left > 1:
        sizes.append(draw(st.sampled_from([size for size in range(2, left + 1) if left % size == 0])))
        left //= sizes[-1]
    sizes += [0] * (array.size == 0) + [1] * draw(st.integers(0, 2))
    return array, tuple(draw(st.permutations(sizes)))


@given(strided())
def test_a_view_of_another_shape_is_possible_where_numpy_needs_no_copy(drawn):
    array, shape = drawn
    view = array.reshape(shape)
    assert is_viewable(array, shape) == (array.size == 0 or np.shares_memory(view, array))


def test_equal_shapes_are_one_tuple_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(storage, "_SHAPES", {})
    monkeypatch.setattr(storage, "_SHAPES_KEPT", 3)
    one = shared_shape(np.zeros((2, 3)).shape)
    assert shared_shape(np.zeros((2, 3)).shape) is one
    for size in range(10):
        assert shared_shape((size,)) == (size,)
    assert len(storage._SHAPES) <= 3
