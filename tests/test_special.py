"""gs.special beside PyTorch's, at ordinary and at extreme points."""

from __future__ import annotations

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
def test_names_are_pytorchs(torch: Any) -> None:
    documented = {name for name in dir(torch.special) if callable(getattr(torch.special, name)) and name[0] != "_"}
    assert set(gs.special.__all__) == documented - {"Tensor"}


@pytest.mark.torch
@pytest.mark.parametrize("name", ["zeta", "xlog1py", "chebyshev_polynomial_u", "laguerre_polynomial_l"])
def test_a_number_takes_the_dtype_of_the_tensor(torch: Any, name: str) -> None:
    for kind in ("float32", "float64", "int64"):
        for use in (
            lambda m, x, name=name: getattr(m.special, name)(x, 0.1),
            lambda m, x, name=name: getattr(m.special, name)(2.1, x),
        ):
            found, expected = (use(m, m.tensor([0, 1, 3], dtype=getattr(m, kind))) for m in (gs, torch))
            assert found.numpy().dtype == expected.numpy().dtype
            numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12 if kind == "float64" else 2e-6)


@pytest.mark.parametrize("letter", ["t", "u", "v", "w"])
def test_chebyshev_polynomials_of_any_degree_obey_their_recurrence(letter: str) -> None:
    """The forms for low and high degrees, inside of the interval, at its ends and beyond, agree."""
    polynomial = getattr(gs.special, f"chebyshev_polynomial_{letter}")
    for x in (-3.0, -1.5, -1.0, -0.7, 0.0, 0.3, 1.0, 1.25, 2.0):
        values = polynomial(x, gs.arange(0, 80, dtype=gs.float64)).tolist()
        assert polynomial(-x, gs.tensor(9.9)).dtype is gs.float32
        for before, last, following in zip(values, values[1:], values[2:], strict=False):
            assert following == pytest.approx(2 * x * last - before, rel=1e-9, abs=1e-8)


def test_the_airy_function_of_large_arguments() -> None:
    """Beyond 1e6 SciPy says NaN: the asymptotic expansion goes on, and both meet there."""
    near, far = gs.special.airy_ai(gs.tensor([-999999.999, -1000000.001], dtype=gs.float64)).tolist()
    size = 1e6**-0.25 / math.sqrt(math.pi)
    phases = [2 / 3 * x**1.5 + math.pi / 4 for x in (999999.999, 1000000.001)]
    assert [near, far] == pytest.approx([size * math.sin(phase) for phase in phases], abs=1e-6 * size)
    assert gs.special.airy_ai(gs.tensor([1e10, 1e300], dtype=gs.float64)).tolist() == [0.0, 0.0]


def test_incomplete_gamma_functions_have_no_derivative_by_order() -> None:
    order = gs.ones(2, requires_grad=True)
    for function in (gs.igamma, gs.igammac, gs.special.zeta):
        with pytest.raises(
            NotImplementedError, match=r"^the derivative for '(igammac?: input|zeta)' is not implemented"
        ):
            function(order, gs.ones(2)).sum().backward()


def test_results_into_a_tensor() -> None:
    out = gs.empty(1)
    assert gs.special.i1(gs.zeros(1), out=out) is out
    assert gs.special.entr(gs.ones(1), out=out) is out
    assert out.tolist() == [0.0]


def test_a_number_beside_xlog1py_leaves_the_dtype():
    x = gs.tensor([0.0, 2.0])
    assert [gs.special.xlog1py(x, number).dtype for number in (0, 0.0, 1.5)] == [gs.float32] * 3
