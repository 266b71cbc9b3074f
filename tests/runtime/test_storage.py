"""Geometry of memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime import storage
from gradscope.runtime.storage import is_viewable, shared_shape, strided_view


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


def test_a_foreign_part_of_an_array_is_a_storage_of_its_own():
    whole = np.arange(10.0)
    x = gs.from_numpy(whole[2:8:2])
    assert (x.tolist(), x.storage_offset(), len(x.untyped_storage())) == ([2.0, 4.0, 6.0], 0, 40)
    assert x.as_strided((2,), (1,), 3).tolist() == [5.0, 6.0]
    with pytest.raises(RuntimeError, match="requiring a storage size of 48 are out of bounds for storage of size 40"):
        x.as_strided((2,), (1,), 4)
    x.fill_(-1.0)
    assert whole.tolist() == [0.0, 1.0, -1.0, 3.0, -1.0, 5.0, -1.0, 7.0, 8.0, 9.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda m, a: m.from_numpy(a[5:]),
        lambda m, a: m.as_tensor(a[5:]),
        lambda m, a: m.asarray(a[5:]),
        lambda m, a: m.from_dlpack(a[5:8]),
        lambda m, a: m.from_dlpack(m.from_numpy(a)[1::3]),
        lambda m, a: m.from_numpy(np.broadcast_to(a[:2], (3, 2)).copy()[:, 1]),
        lambda m, a: m.from_numpy(a.reshape(2, 5).T),
        lambda m, a: m.from_numpy(a[5:5]),
        lambda m, a: m.from_numpy(np.zeros(40, "u1")[1:33].view("f8")),
        lambda m, a: m.from_numpy(a[::-1]),
        lambda m, a: m.from_numpy(np.zeros(3, dtype=[("tag", "i1"), ("value", "f8")])["value"]),
        lambda m, a: m.from_numpy(a.astype(">f8")),
        lambda m, a: m.from_numpy(a).resize_(11),
        lambda m, a: m.from_numpy(a[:4]).resize_(5),
        lambda m, a: m.from_numpy(a).resize_(3),
    ],
)
@pytest.mark.torch
def test_foreign_memory_is_taken_as_pytorch_takes_it(torch, make):
    def facts(m):
        try:
            x = make(m, np.arange(10.0))
        except Exception as error:
            return type(error)
        return x.tolist(), x.stride() if x.numel() else None, x.storage_offset(), len(x.untyped_storage())

    assert facts(gs) == facts(torch)


def test_a_mapped_file_is_reached_up_to_its_ends(tmp_path):
    path = tmp_path / "numbers"
    np.arange(8.0).tofile(path)
    x = gs.from_numpy(np.memmap(path, "f8", "r+", shape=(8,))[2:6])
    assert x.as_strided((2,), (3,), 0).tolist() == [2.0, 5.0]
    for offset in (1, -1):
        with pytest.raises(RuntimeError):
            x.as_strided((2,), (3,), offset)
    x.zero_()
    assert np.fromfile(path, "f8").tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 6.0, 7.0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_storage_of_any_owner_is_viewed_flat(order):
    owner = np.asarray(np.arange(6).reshape(2, 3), order=order)
    flat = strided_view(owner[1:], ((6,), (1,), 0))
    assert flat.tolist() == owner.ravel("K").tolist()
    assert np.shares_memory(flat, owner)
    assert strided_view(owner[1:], ((48,), (1,), 0), np.dtype("u1")).nbytes == owner.nbytes


def test_equal_shapes_are_one_tuple_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(storage, "_SHAPES", {})
    monkeypatch.setattr(storage, "_SHAPES_KEPT", 3)
    one = shared_shape(np.zeros((2, 3)).shape)
    assert shared_shape(np.zeros((2, 3)).shape) is one
    for size in range(10):
        assert shared_shape((size,)) == (size,)
    assert len(storage._SHAPES) <= 3
