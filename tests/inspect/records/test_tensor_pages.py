from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradscope.inspect.records import tensor_pages
from gradscope.inspect.records.tensor_pages import compare, find_element, flat_page, page_of

shapes = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
values = arrays.arrays(numpy.float64, shapes, elements=st.floats(width=32))


@given(values, st.data())
def test_a_page_is_what_numpy_cuts(array, data):
    index = []
    for size in array.shape:
        pair = st.tuples(st.integers(0, size), st.integers(0, size + 3))
        index.append(data.draw(st.one_of(pair, st.integers(0, size - 1)) if size else pair))
    cut = array[tuple(place if isinstance(place, int) else slice(*place) for place in index)]
    page = page_of(array, index)
    assert (page.shape, page.dtype) == (array.shape, "float64")
    numpy.testing.assert_array_equal(page.values, cut.reshape(-1))
    numpy.testing.assert_array_equal(flat_page(array, 1, 4).values, array.reshape(-1)[1:4])


def test_a_page_that_does_not_fit_is_refused(monkeypatch):
    array = numpy.zeros((3, 4))
    with pytest.raises(ValueError, match=r"a page of a tensor of shape \(3, 4\) has 2 places, got 1"):
        page_of(array, (0,))
    with pytest.raises(ValueError, match="there is no place 4 in a dimension of 4"):
        page_of(array, (0, 4))
    with pytest.raises(ValueError, match=r"shapes \(3, 4\) and \(4, 3\) cannot be compared"):
        page_of(array, (0, 0), array.T, "difference")
    with pytest.raises(ValueError, match="compared by difference or relative error, got 'ratio'"):
        compare(array, array, "ratio")
    with pytest.raises(ValueError, match="not finite, largest, smallest, got 'zero'"):
        find_element(array, "zero")
    monkeypatch.setattr(tensor_pages, "LARGEST_PAGE", 11)
    with pytest.raises(ValueError, match="at most 11 elements, this one would have 12"):
        page_of(array, ((0, 3), (0, 4)))


def test_a_page_of_a_tensor_that_would_not_fit_into_memory_is_a_page():
    huge = numpy.broadcast_to(numpy.float32(1.5), (1 << 20, 1 << 20, 1 << 10))
    assert page_of(huge, (5, (7, 9), 3)).values == (1.5, 1.5)
    assert page_of(huge, (5, (7, 9), 3), huge, "difference").values == (0.0, 0.0)


def test_complex_numbers_are_pairs_and_compared_by_magnitude():
    array = numpy.array([1 + 1j, 3 - 4j])
    assert page_of(array, ((0, 2),)).values == ((1.0, 1.0), (3.0, -4.0))
    assert find_element(array, "largest") == 1
    assert compare(array, array * 2, "relative error").tolist() == [0.5, 0.5]


def test_an_infinity_beside_zeros_is_the_smallest_that_is_not_zero():
    assert find_element(numpy.array([0.0, numpy.inf]), "smallest") == 1


def test_differences_are_exact_where_both_are_infinite_and_nan_where_one_is():
    one, other = numpy.array([numpy.inf, numpy.nan, 0.0, 2.0]), numpy.array([numpy.inf, numpy.nan, 0.0, 1.0])
    numpy.testing.assert_array_equal(compare(one, other, "relative error"), [0.0, numpy.nan, 0.0, 0.5])


@given(values, st.integers(1, 7), st.integers(-1, 30))
def test_an_element_is_found_in_whatever_blocks(array, block, after):
    flat = array.reshape(-1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensor_pages, "_BLOCK", block)
        largest, smallest, bad = (
            find_element(array, sought, after) for sought in ("largest", "smallest", "not finite")
        )
    magnitudes = numpy.abs(flat)
    known = magnitudes[~numpy.isnan(magnitudes)]
    assert (largest is None) == (known.size == 0)
    assert largest is None or magnitudes[largest] == known.max()
    nonzero = known[known > 0]
    assert (smallest is None) == (nonzero.size == 0)
    assert smallest is None or magnitudes[smallest] == nonzero.min()
    places = numpy.flatnonzero(~numpy.isfinite(flat))
    later = places[places > after]
    assert bad == (None if not places.size else later[0] if later.size else places[0])
