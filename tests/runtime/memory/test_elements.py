"""A number becomes an element of an array of its dtype, or is refused."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.memory.dtype import ALL_DTYPES, scalar_type
from gradscope.runtime.memory.elements import as_element, is_number

EXACT = tuple(kind for kind in ALL_DTYPES if kind.kind in "iu")


@given(st.sampled_from(EXACT), st.integers(-(2**70), 2**70))
def test_an_integer_is_held_or_refused(kind: Any, number: int) -> None:
    array = numpy.zeros(1, kind.numpy)
    limits = numpy.iinfo(kind.numpy)
    if not limits.min - limits.max * (limits.min == 0) <= number <= limits.max:
        with pytest.raises(RuntimeError, match=f"type {kind.name} without overflow"):
            as_element(number, array)
        return
    array[:] = as_element(number, array)
    assert array.dtype == kind.numpy
    assert int(array[0]) == (number if number >= 0 or limits.min else number + limits.max + 1)


@given(st.floats(allow_nan=False))
def test_a_float_is_cut_to_an_integer(number: float) -> None:
    array = numpy.zeros(1, numpy.int8)
    if -128 <= number <= 127:
        assert as_element(number, array) == int(number)
    else:
        with pytest.raises(RuntimeError, match="without overflow"):
            as_element(number, array)


@pytest.mark.parametrize(("kind", "largest"), [("float16", 65504.0), ("float32", 3.4028234663852886e38)])
def test_a_finite_number_does_not_become_infinite(kind: str, largest: float) -> None:
    array = numpy.zeros(1, kind)
    assert [as_element(number, array) for number in (largest, -largest, numpy.inf)] == [largest, -largest, numpy.inf]
    with pytest.raises(RuntimeError, match=rf"{kind} without overflow\nIt is .*; give one up to"):
        as_element(largest * 1.01, array)


def test_a_wide_number_may_become_infinite_in_half_precision_alone() -> None:
    assert as_element(1e6, numpy.zeros(1, "float16"), wide=True) == 1e6
    with pytest.raises(RuntimeError, match="float32 without overflow"):
        as_element(1e60, numpy.zeros(1, "float32"), wide=True)


def test_a_complex_number_needs_an_imaginary_part_of_zero() -> None:
    for target in (numpy.zeros(1), numpy.zeros(1, int)):
        assert as_element(2 + 0j, target) == 2
        for number in (1j, numpy.complex128(1j)):
            with pytest.raises(RuntimeError, match="It is complex; give a real number"):
                as_element(number, target)
    assert as_element(1j, numpy.zeros(1, complex)) == 1j


@pytest.mark.parametrize("value", ["1", None, [1]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    assert not is_number(value)
    with pytest.raises(TypeError, match="must be Number, not"):
        as_element(value, numpy.zeros(1))


def test_arrays_are_numbers_without_dimensions_alone() -> None:
    assert is_number(numpy.array(1.0))
    assert not is_number(numpy.array([1.0]))


def test_the_scalar_type_is_pytorchs_name() -> None:
    names = "Half BFloat16 Float Double ComplexFloat ComplexDouble Byte Char Short Int Long Bool"
    assert [scalar_type(kind.numpy) for kind in ALL_DTYPES] == names.split()
