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


# --- slopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes_are_those_of_numpy(edge_order: int) -> None:
    values = numpy.random.default_rng(4).standard_normal((4, 5))
    places = [numpy.array([0.0, 1.0, 3.0, 3.5]), numpy.array([-1.0, 0.0, 2.0, 5.0, 9.0])]
    for spacing in (None, 2.0, [0.5, 3.0], places):
        steps = [] if spacing is None else spacing if isinstance(spacing, list) else [spacing]
        expected = numpy.gradient(values, *steps, edge_order=edge_order)
        given = [gs.from_numpy(p) for p in places] if spacing is places else spacing
        found = gs.gradient(gs.from_numpy(values), spacing=given, edge_order=edge_order)
        for a, b in zip(found, expected, strict=True):
            numpy.testing.assert_allclose(a.numpy(), b, rtol=1e-12)


def test_slopes_have_gradients() -> None:
    x = gs.tensor([1.0, 2.0, 4.0, 8.0], dtype=gs.float64, requires_grad=True)
    places = gs.tensor([0.0, 1.0, 3.0, 4.0], dtype=gs.float64, requires_grad=True)
    assert gs.autograd.gradcheck(lambda x, p: gs.gradient(x, spacing=[p], edge_order=2), (x, places))
    assert gs.autograd.gradcheck(lambda x: gs.gradient(x, spacing=0.5), x)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.gradient(m.ones(3), edge_order=3),
        lambda m: m.gradient(m.ones(1)),
        lambda m: m.gradient(m.ones(2), edge_order=2),
        lambda m: m.gradient(m.ones(3, 3), dim=(0, 0)),
        lambda m: m.gradient(m.ones(3, 3), dim=5),
        lambda m: m.gradient(m.ones(3), spacing=[1.0, 2.0]),
        lambda m: m.gradient(m.ones(3, 3), spacing=[1.0], dim=(0, 1)),
        lambda m: m.gradient(m.ones(3), spacing=[m.ones(3, 1)]),
    ],
)
def test_slopes_that_cannot_be_estimated(torch: Any, use: Any) -> None:
    same_complaint(torch, use)
