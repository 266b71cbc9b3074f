"""The error function and its relatives, to the last digits."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.memory import device as devices
from tests.side_by_side import compare

X = numpy.concatenate([numpy.linspace(-6, 6, 4001), [0.46875, -0.46875, 4.0, -4.0, 1e-300, 0.0]])


def test_erf_and_erfc_are_those_of_the_standard_library() -> None:
    numpy.testing.assert_allclose(gs.erf(gs.tensor(X)).numpy(), [math.erf(x) for x in X], rtol=1e-15)
    numpy.testing.assert_allclose(gs.erfc(gs.tensor(X)).numpy(), [math.erfc(x) for x in X], rtol=5e-15)


def test_float32_and_float16() -> None:
    expected = [math.erf(x) for x in X]
    for kind, tolerance in ((gs.float32, 5e-7), (gs.float16, 1e-3)):
        found = gs.erf(gs.tensor(X, dtype=kind))
        assert found.dtype is kind
        numpy.testing.assert_allclose(found.double().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "y", [0.0, 1e-300, 0.25, -0.5, 0.9, 1 - 1e-6, 1 - 1e-8, -(1 - 1e-12), 1 - 1e-15, math.nextafter(1, 0)]
)
def test_erfinv_inverts(y: float) -> None:
    x = gs.erfinv(gs.tensor(y, dtype=gs.float64)).item()
    # Near 1 the complement says how good it is.
    assert math.erfc(abs(x)) == pytest.approx(1 - abs(y), rel=1e-13)
    assert math.copysign(1, x) == math.copysign(1, y)


def test_erfinv_at_the_ends() -> None:
    values = gs.erfinv(gs.tensor([1.0, -1.0, 1.5, math.nan])).tolist()
    assert values[:2] == [math.inf, -math.inf]
    assert all(math.isnan(v) for v in values[2:])


def test_infinities() -> None:
    x = gs.tensor([math.inf, -math.inf])
    assert gs.erf(x).tolist() == [1.0, -1.0]
    assert gs.erfc(x).tolist() == [0.0, 2.0]


def test_i0_is_that_of_numpy() -> None:
    x = numpy.concatenate([numpy.linspace(-700, 700, 2001), numpy.linspace(-2, 2, 201)])
    numpy.testing.assert_allclose(gs.i0(gs.tensor(x)).numpy(), numpy.i0(x), rtol=1e-13)


def test_the_derivative_of_i0_is_odd_and_keeps_small_numbers_exact() -> None:
    x = gs.tensor([0.0, 1e-8, -1e-8, 3.0, -3.0], dtype=gs.float64, requires_grad=True)
    gs.i0(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([0.0, 5e-9, -5e-9, 3.9533702174026093, -3.9533702174026093], rel=1e-14)


@pytest.mark.torch
def test_derivatives_are_those_of_pytorch(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.erf(x), X)
    compare(torch, lambda lib, x: lib.erfc(x), X)
    compare(torch, lambda lib, x: lib.erfinv(x), X / 8)
    compare(torch, lambda lib, x: lib.i0(x), X[::20])


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_the_array_modules_own_function_keeps_the_dtype(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """CuPy's functions of half precision return double precision, or do not exist."""

    def native(x: numpy.ndarray) -> numpy.ndarray:
        assert x.dtype != "float16"
        return numpy.vectorize(math.erf)(x).astype(x.dtype)

    monkeypatch.setattr(devices._cpu, "special_function", {"erf": native}.get)
    found = gs.erf(gs.from_numpy(X[::100].astype(kind)))
    assert found.numpy().dtype == kind
    numpy.testing.assert_allclose(found.numpy(), [math.erf(x) for x in X[::100]], rtol=2e-3, atol=2e-3)
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexDouble'"):
        gs.erf(gs.ones(2, dtype=gs.complex128))


def test_a_function_that_cupy_lacks_is_refused_there() -> None:
    class Module:
        """A module without functions."""

    with pytest.raises(NotImplementedError, match=r"^airy\(\) is not implemented for 'cuda' tensors"):
        devices._cuda.need_function(Module, "airy")
