"""gs.special beside PyTorch's, at ordinary and at extreme points."""

from __future__ import annotations

import doctest
import math
from typing import Any

import numpy
import pytest

import gradscope as gs

POINTS = [
    -math.inf,
    -40.0,
    -20.0,
    -5.0,
    -1.0,
    -0.4,
    0.0,
    0.3,
    0.5,
    0.999,
    1.0,
    1.5,
    4.5,
    20.0,
    40.0,
    math.inf,
    math.nan,
]
TINY = [0.0, 1e-300, 1e-20, 1e-8, 0.02, 0.3, 0.5, 0.7, 0.98, 1 - 1e-8, 1.0, 1.5, -0.5]
OWN = ("entr", "erfcx", "log_ndtr", "ndtr", "ndtri")


@pytest.mark.torch
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_values(torch: Any, name: str, kind: str) -> None:
    points = TINY if name == "ndtri" else POINTS
    found, expected = (getattr(m.special, name)(m.tensor(points, dtype=getattr(m, kind))).numpy() for m in (gs, torch))
    numpy.testing.assert_allclose(
        found, expected, rtol=1e-12 if kind == "float64" else 2e-5, atol=1e-7 if name == "ndtr" else 0
    )


@pytest.mark.torch
def test_functions_of_more_than_a_tensor(torch: Any) -> None:
    for use in (
        lambda m, x: m.special.xlog1py(x, 2.0),
        lambda m, x: m.special.xlog1py(0.0, x),
        lambda m, x: m.special.xlogy(2.0, x),
        lambda m, x: m.special.xlog1py(input=x, other=x),
        lambda m, x: m.special.multigammaln(x + 3, 2),
        lambda m, x: m.special.polygamma(1, x),
        lambda m, x: m.special.softmax(x, 0),
        lambda m, x: m.special.log_softmax(x, dim=0),
        lambda m, x: m.special.logsumexp(x, 0),
        lambda m, x: m.special.ndtr(input=x),
        lambda m, x: m.special.xlog1py(m.tensor([0.0, 0.0, 1.0]), m.tensor([-1.0, math.nan, -1.0])),
    ):
        found, expected = (use(m, m.tensor([0.5, 1.0, 2.0])).numpy() for m in (gs, torch))
        numpy.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.torch
def test_no_name_is_foreign(torch: Any) -> None:
    assert set(gs.special.__all__) <= set(dir(torch.special))


def test_results_into_a_tensor() -> None:
    out = gs.empty(1)
    assert gs.special.i1(gs.zeros(1), out=out) is out
    assert gs.special.entr(gs.ones(1), out=out) is out
    assert out.tolist() == [0.0]


def test_the_examples_of_its_documentation() -> None:
    assert doctest.testmod(gs.special).attempted > 2
    assert doctest.testmod(gs.special).failed == 0
