from __future__ import annotations

from math import prod

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.records.tensor_pages import page_of
from gradscope_tui.widgets.tensor_window import TensorWindow

shapes = st.lists(st.integers(1, 6), max_size=4).map(tuple)


@given(shapes, st.integers(1, 5), st.integers(1, 5), st.data())
def test_what_is_seen_has_the_cursor_in_it_wherever_one_goes(shape, height, width, data):
    array = numpy.arange(prod(shape)).reshape(shape)
    window = TensorWindow(shape)
    window.fit(height, width)
    steps = {
        "move": lambda: window.move(data.draw(st.integers(-7, 7)), data.draw(st.integers(-7, 7))),
        "slice": lambda: window.step_slice(data.draw(st.sampled_from([-1, 1]))),
        "turn": window.turn,
        "go": lambda: window.go(data.draw(st.integers(0, array.size - 1))),
        "page": lambda: window.page(1, 0),
    }
    for name in data.draw(st.lists(st.sampled_from(sorted(steps)), max_size=6)):
        steps[name]()
    lines, columns = window.seen
    assert len(lines) <= height
    assert len(columns) <= width
    page = window.lines_of(page_of(array, window.index()).values, len(columns))
    line, column = window.cursor
    assert page[line - lines.start][column - columns.start] == window.element
    assert array.reshape(-1)[window.element] == array[tuple(window.place)]


def test_slices_follow_each_other_through_all_outer_dimensions():
    window = TensorWindow((2, 2, 3, 4))
    seen = [tuple(window.place[:2])]
    while window.step_slice(1):
        seen.append(tuple(window.place[:2]))
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert window.step_slice(-1)
    assert window.title == "[1, 0, ↓, →]"


def test_dimensions_are_turned_round():
    window = TensorWindow((2, 3))
    assert window.title == "[↓, →]"
    assert window.turn()
    assert window.title == "[→, ↓]"
    window.fit(9, 9)
    assert window.lines_of([0, 1, 2, 3, 4, 5], 2) == [[0, 3], [1, 4], [2, 5]]
    assert not TensorWindow((3,)).turn()


@pytest.mark.parametrize(("shape", "index"), [((), ()), ((7,), ((0, 6),)), ((0, 3), ((0, 0), (0, 3)))])
def test_few_dimensions_and_none_at_all(shape, index):
    window = TensorWindow(shape)
    window.fit(2, 3)
    assert window.index() == index
    assert window.empty == (0 in shape)


@pytest.mark.parametrize("shape", [(), (0,), (24,), (3, 5), (2, 3, 4)], ids=str)
def test_the_slice_has_as_many_numbers_as_its_page(shape):
    window = TensorWindow(shape)
    window.fit(2, 10)
    held = [index for index in window.slice() if isinstance(index, tuple)]
    assert window.size == prod(stop - start for start, stop in held)
