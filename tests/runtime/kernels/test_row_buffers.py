"""Kernels that fit NumPy's buffer to their rows leave the user's as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

from gradscope.runtime.kernels import forms, threads
from gradscope.runtime.kernels.normalization.columns import Columns
from gradscope.runtime.kernels.normalization.normalized_rows import rows, rows_backward
from gradscope.runtime.kernels.normalization.planes import Planes
from gradscope.runtime.kernels.row_buffers import LARGE, buffer_for

X = numpy.random.default_rng(0).standard_normal((512, 1024))  # the compiled forms are for single precision
MIDDLE = numpy.zeros(512)


@pytest.fixture
def buffer_of_the_user() -> Iterator[int]:
    with numpy.errstate():
        numpy.setbufsize(4096)
        yield 4096


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "work",
    [
        lambda: rows(X, None, None, 1024, 1e-5),
        lambda: rows_backward(X, X, None, MIDDLE, MIDDLE, 1024),
        lambda: Planes(X.reshape(1, 512, 32, 32)).normalized(None, None, 1e-5),
        lambda: Columns(X).normalized(None, None, 1e-5),
        lambda: forms.rowwise("softmax_loops.softmax", lambda x, out=None: numpy.exp(x, out=out), X),
    ],
    ids=["rows", "rows backward", "planes", "columns", "rowwise"],
)
def test_the_buffer_is_as_before(work: Callable[[], Any], count: int, buffer_of_the_user: int) -> None:
    before = threads.count()
    threads.set_count(count)
    try:
        work()
    finally:
        threads.set_count(before)
    assert numpy.getbufsize() == buffer_of_the_user


@pytest.mark.parametrize("size", [1, 64, 319, 320, 4096, 20000])
def test_no_buffer_has_room_for_two_long_rows(size: int, buffer_of_the_user: int) -> None:
    with buffer_for(LARGE, size):
        assert size < 320 or numpy.getbufsize() < 2 * size
    assert numpy.getbufsize() == buffer_of_the_user


def test_few_elements_are_not_worth_another_buffer(buffer_of_the_user: int) -> None:
    with buffer_for(LARGE // 1024 - 1, 1024):
        assert numpy.getbufsize() == buffer_of_the_user


def test_an_error_leaves_the_buffer_as_it_was(buffer_of_the_user: int) -> None:
    with pytest.raises(ZeroDivisionError), buffer_for(LARGE, 1024):
        raise ZeroDivisionError
    assert numpy.getbufsize() == buffer_of_the_user
