import zlib

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.adapters.memory_fingerprint import SAMPLE_ELEMENTS, WHOLE_BYTES, Region, bits_of, checksum_of


@st.composite
def views(draw):
    """Views of one memory: cut, transposed, expanded, empty."""
    array = numpy.arange(120, dtype=numpy.int32).reshape(4, 5, 6)
    cuts = []
    for size in array.shape:
        start = draw(st.integers(0, size))
        cuts.append(slice(start, draw(st.integers(start, size)), draw(st.integers(1, 3))))
    array = array[tuple(cuts)].transpose(draw(st.permutations(range(3))))
    return numpy.broadcast_to(array, (2, *array.shape)) if draw(st.booleans()) else array


def region(array):
    return Region(array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)


@given(views())
def test_every_element_of_a_small_view_is_there_once(view):
    bits = bits_of(view)
    assert bits.flags.c_contiguous
    assert sorted(bits.tolist()) == sorted(set(view.reshape(-1).tolist()))
    assert (region(view).array().view(numpy.int32) if view.size else view).tolist() == view.tolist()


@given(st.data())
def test_regions_are_apart_as_numpy_has_it(data):
    memory = numpy.zeros((6, 8))
    one, other = (memory[data.draw(st.slices(6))][:, data.draw(st.slices(8))] for _ in range(2))
    one, other = (part[::1] if part.size else memory[:0] for part in (one, other))
    assert region(one).apart(region(other)) == (not numpy.shares_memory(one, other))


@pytest.mark.parametrize(
    "view",
    [lambda a: a, lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::2]],
    ids=["contiguous", "transposed", "every other column", "every other row"],
)
def test_of_a_large_array_a_bounded_sample_sees_every_row_and_column(view):
    array = view(numpy.zeros((2000, 1500), dtype=numpy.float32))
    assert array.nbytes > WHOLE_BYTES
    before = bits_of(array)
    assert SAMPLE_ELEMENTS / 4 < before.size < SAMPLE_ELEMENTS * 2
    before = zlib.crc32(before)
    for index in (7, numpy.s_[:, 11], numpy.s_[5:300, 5:300]):
        array[index] = 1
        after = zlib.crc32(bits_of(array))
        assert after != before
        before = after


def test_no_dimension_and_no_element():
    assert bits_of(numpy.array(3.0)).tolist() == [3.0]
    assert bits_of(as_strided(numpy.zeros(0), (0, 2), (0, 0))).size == 0


def test_a_checksum_is_of_the_values_however_they_lie():
    adapter, table = NativeAdapter(), gs.arange(6).reshape(2, 3)
    before = checksum_of(adapter, table)
    assert checksum_of(adapter, table.clone()) == before
    table[1, 2] = 7
    assert checksum_of(adapter, table) != before
