"""diff, trapezoid and cumulative_trapezoid give what PyTorch gives."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

Y = numpy.cos(numpy.arange(12.0)).reshape(3, 4)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["trapezoid", "trapz", "cumulative_trapezoid"])
def test_integrals(torch: Any, name: str) -> None:
    def function(lib: Any) -> Any:
        return getattr(lib, name)

    compare(torch, lambda lib, y: function(lib)(y), Y, names=False)
    compare(torch, lambda lib, y: function(lib)(y, dx=0.5, dim=0), Y, names=False)
    compare(torch, lambda lib, y, x: function(lib)(y, x), Y, [0.0, 1.0, 1.5, 4.0], names=False)
    compare(torch, lambda lib, y, x: function(lib)(y, x, dim=0), Y, [0.0, 1.0, 1.5], names=False)
    compare(torch, lambda lib, y, x: function(lib)(y, x), Y, Y**2, names=False)
    compare(torch, lambda lib, y: function(lib)(y), Y[:, :1], names=False)


def test_differences_of_truth_values_say_where_they_change() -> None:
    assert gs.tensor([True, True, False, True]).diff().tolist() == [False, True, True]


@pytest.mark.torch
def test_a_scalar_has_nothing_to_integrate_along(torch: Any) -> None:
    for lib in (torch, gs):
        with pytest.raises(IndexError):
            lib.trapezoid(lib.tensor(1.0))
    same_complaint(torch, lambda lib: lib.trapezoid(lib.zeros(2, 3), lib.zeros(2)))


@pytest.mark.torch
def test_no_differences_are_the_tensor_alone(torch: Any) -> None:
    for lib in (gs, torch):
        assert lib.diff(lib.zeros(5, 5), n=0, dim=0, prepend=lib.ones(2, 5), append=lib.ones(1, 5)).shape == (5, 5)
    same_complaint(torch, lambda lib: lib.diff(lib.zeros(3), n=-1))
