"""Quantiles and medians that skip NaN, against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

X = numpy.cos(numpy.arange(24.0)).reshape(2, 3, 4)
HOLE, HOLES = X.copy(), X.copy()
HOLE[0, 1, 2] = math.nan  # of several, any may get the gradient
HOLES[0, 1, 2] = HOLES[1, 0, :2] = math.nan


@pytest.mark.torch
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize(("dim", "keepdim"), [(None, False), (None, True), (0, False), (-1, True), (1, False)])
def test_quantiles(torch: Any, name: str, interpolation: str, dim: Any, keepdim: bool) -> None:
    options = {"dim": dim, "keepdim": keepdim, "interpolation": interpolation}
    for values in (X, HOLE if name == "quantile" else HOLES):
        compare(torch, lambda lib, x: getattr(lib, name)(x, 0.3, **options), values, names=False, twice=False)
        compare(
            torch,
            lambda lib, x: getattr(lib, name)(x, lib.tensor([0.0, 0.25, 1.0], dtype=lib.float64), **options),
            values,
            names=False,
            twice=False,
        )


@pytest.mark.torch
def test_nanmedian(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.nanmedian(x), HOLES)
    compare(torch, lambda lib, x: lib.nanmedian(x, -1).values, HOLES)
    compare(torch, lambda lib, x: lib.nanmedian(x, 0, True).indices, HOLES)


def test_out_receives_the_result() -> None:
    out = gs.zeros(3)
    assert gs.quantile(gs.arange(6.0).reshape(2, 3), 0.5, 0, out=out) is out
    assert out.tolist() == [1.5, 2.5, 3.5]


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.zeros(0).quantile(0.5))
    same_complaint(torch, lambda lib: lib.tensor([1, 2]).quantile(0.5))
    same_complaint(torch, lambda lib: lib.zeros(2).quantile(lib.tensor([1.5])))
    same_complaint(torch, lambda lib: lib.zeros(2).quantile(lib.zeros(1, 1)))
    same_complaint(torch, lambda lib: lib.zeros(2).quantile(0.5, interpolation="cubic"))


@pytest.mark.torch
@pytest.mark.parametrize("interpolation", ["linear", "midpoint", "lower"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_the_gradient_reaches_the_levels(torch: Any, name: str, interpolation: str) -> None:
    for values in ([5.0, 1.0, 2.0, 4.0], [1.0, 2.0, math.nan, 5.0], [[1.0, 3.0], [2.0, 9.0]]):
        for levels in ([0.3, 0.6], 0.5, [0.0, 1.0]):
            outcomes = []
            for lib in (gs, torch):
                x, q = (lib.tensor(v, requires_grad=True) for v in (values, levels))
                lib.sum(getattr(lib, name)(x, q, 0, interpolation=interpolation)).backward()
                outcomes.append([None if t.grad is None else t.grad.tolist() for t in (x, q)])
            numpy.testing.assert_equal(outcomes[0][0], outcomes[1][0])
            assert (outcomes[0][1] is None) == (outcomes[1][1] is None)
            if outcomes[1][1] is not None:
                numpy.testing.assert_allclose(outcomes[0][1], outcomes[1][1], rtol=1e-6)
