"""Covariances, correlations and norms against PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

X = numpy.cos(numpy.arange(12.0) * 1.3).reshape(3, 4)
COUNTS, WEIGHTS = numpy.array([1, 2, 0, 3]), numpy.array([0.5, 1.0, 2.0, 0.25])


@pytest.mark.torch
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("counts", [None, COUNTS])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_cov(torch: Any, correction: int, counts: Any, weights: Any) -> None:
    def cov(lib: Any, x: Any) -> Any:
        given = {"fweights": counts, "aweights": weights}
        return lib.cov(x, correction=correction, **{n: v if v is None else lib.tensor(v) for n, v in given.items()})

    compare(torch, cov, X, names=False)
    compare(torch, cov, X[0], names=False)


@pytest.mark.torch
def test_nothing_flows_through_degrees_of_freedom_that_there_are_not(torch: Any) -> None:
    def of_incoming(lib: Any) -> list[Any]:
        x, weights = lib.tensor(X, requires_grad=True), lib.tensor(WEIGHTS, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # PyTorch's, of dividing by zero
            found = lib.cov(x, correction=5, aweights=weights)
        seed = lib.ones_like(found).requires_grad_()
        (graded,) = lib.autograd.grad(found, weights, seed, create_graph=True)
        return lib.autograd.grad(graded.sum(), seed)[0].tolist()

    numpy.testing.assert_array_equal(of_incoming(gs), of_incoming(torch))


@pytest.mark.torch
def test_corrcoef(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.corrcoef(x), X, names=False, twice=False)
    compare(torch, lambda lib, x: x.corrcoef(), X[0], names=False, twice=False)


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.cov(lib.ones(2, 2, 2)))
    same_complaint(torch, lambda lib: lib.corrcoef(lib.ones(2, 2, 2)))
    same_complaint(torch, lambda lib: lib.renorm(lib.ones(2), 2, 0, 1.0))
    same_complaint(torch, lambda lib: lib.renorm(lib.ones(2, 2), 0, 0, 1.0))


def test_renorm_leaves_short_slices_as_they_are() -> None:
    x = gs.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert x.renorm(2, 0, 1.0).norm(dim=1).tolist() == pytest.approx([1.0, 0.5])
    assert x.renorm_(2, 0, 1.0)[1].tolist() == pytest.approx([0.3, 0.4])


def test_an_infinite_part_beside_a_nan_makes_a_norm_infinite() -> None:
    x = gs.tensor([complex("inf+nanj"), complex("nan-infj"), 1j])
    assert x.norm().item() == numpy.inf
    assert gs.linalg.vector_norm(x[:, None], 2, 1).tolist() == [numpy.inf, numpy.inf, 1.0]


@pytest.mark.torch
@pytest.mark.parametrize("use", [lambda x: x.cov(), lambda x: x.corrcoef()])
def test_covariances_of_integers_are_floats(torch: Any, use: Any) -> None:
    found, expected = (use(lib.tensor([[1, 2, 4], [3, 5, 4]])) for lib in (gs, torch))
    assert found.dtype is gs.float32
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    same_complaint(torch, lambda lib: use(lib.tensor([[True, False]])))
