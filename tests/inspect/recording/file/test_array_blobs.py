"""Arrays as compressed bytes, and what damaged bytes do."""

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradscope.inspect.recording.file.array_blobs import pack_array, unpack_array

DTYPES = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
)  # fmt: skip
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)))


@given(ARRAYS)
def test_any_array_comes_back_bit_for_bit(array):
    back = unpack_array(pack_array(array))
    assert back.shape == array.shape
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.tobytes() == array.astype(back.dtype).tobytes()


def test_a_view_with_strides_comes_back():
    array = numpy.arange(24.0).reshape(4, 6)[::2, ::-3]
    assert numpy.array_equal(unpack_array(pack_array(array)), array)


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="only numbers"):
        pack_array(numpy.array(["a"]))


@given(st.binary(max_size=60))
@example(b'["raw", "<f,", [1]]\n0000')  # NumPy raises a SyntaxError
@example(b'["raw", 4, [1]]\n0000')
def test_bytes_that_are_no_array_give_a_value_error(data):
    with pytest.raises(ValueError, match="damaged"):
        unpack_array(data)


@given(hnp.arrays(numpy.float32, 5), st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_gives_an_array_or_a_value_error(array, at, flip):
    data = bytearray(pack_array(array))
    data[at % len(data)] ^= flip
    try:
        assert isinstance(unpack_array(bytes(data)), numpy.ndarray)
    except ValueError as error:
        assert "damaged" in str(error)  # noqa: PT017
