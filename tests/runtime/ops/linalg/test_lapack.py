"""What LAPACK does a matrix at a time, and NumPy for all of a batch, is the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.linalg import lapack

KINDS = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(1, 1), (5, 5), (3, 5, 5), (2, 3, 17, 17), (20, 20)]


def matrices(kind: str, *shape: int) -> Any:
    """Return matrices with a large diagonal."""
    generator = numpy.random.default_rng(sum(shape))
    found = generator.standard_normal(shape) + 1j * (kind[0] == "c") * generator.standard_normal(shape)
    rows = numpy.arange(min(shape[-2:]))
    found[..., rows, rows] += 2 * shape[-1]
    return (found if kind[0] == "c" else found.real).astype(kind)


def both_ways(monkeypatch: pytest.MonkeyPatch, compute: Any) -> tuple[list[Any], list[Any]]:
    """Return the results of a function by LAPACK, and by NumPy on whole batches."""
    found = []
    for few in (10**9, 0):
        monkeypatch.setattr(lapack, "_FEW", few)
        monkeypatch.setattr(lapack, "_WIDE", 10**9)
        found.append([part.numpy() for part in compute()])
    return found[0], found[1]


def same(found: tuple[list[Any], list[Any]], kind: str) -> None:
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.flags.c_contiguous == b.flags.c_contiguous
        size = numpy.abs(b).max(initial=1.0)
        numpy.testing.assert_allclose(a, b, rtol=0, atol=size * (1e-5 if kind in ("float32", "complex64") else 1e-13))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_triangular_equations(monkeypatch: pytest.MonkeyPatch, kind: str, shape: tuple[int, ...]) -> None:
    A, B = gs.from_numpy(matrices(kind, *shape)), gs.from_numpy(matrices(kind, *shape[:-1], 3))
    for options in ({"upper": True}, {"upper": False}, {"upper": True, "unitriangular": True}):
        for matrix in (A, A.mT, A.mH):
            for left in (True, False):
                sides = B if left else B.mT
                solve = partial(gs.linalg.solve_triangular, matrix, sides, left=left, **options)
                same(both_ways(monkeypatch, lambda solve=solve: [solve()]), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [*SHAPES, (7, 4), (2, 4, 7)])
def test_lu_factors(monkeypatch: pytest.MonkeyPatch, kind: str, shape: tuple[int, ...]) -> None:
    A = gs.from_numpy(matrices(kind, *shape)).flip(-2)
    same(both_ways(monkeypatch, lambda: gs.linalg.lu_factor_ex(A)), kind)
    same(both_ways(monkeypatch, lambda: gs.linalg.lu(A)), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_equations_of_lu_factors(monkeypatch: pytest.MonkeyPatch, kind: str, shape: tuple[int, ...]) -> None:
    A = gs.from_numpy(matrices(kind, *shape)).flip(-2)
    LU, pivots = gs.linalg.lu_factor(A)
    B = gs.from_numpy(matrices(kind, *shape[:-1], 3))
    for adjoint in (False, True):
        X = gs.linalg.lu_solve(LU, pivots, B, adjoint=adjoint)
        gs.testing.assert_close((A.mH if adjoint else A) @ X, B, rtol=1e-3, atol=1e-4)
        same(both_ways(monkeypatch, lambda a=adjoint: [gs.linalg.lu_solve(LU, pivots, B, adjoint=a)]), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (2, 5, 5)])
def test_reflections(monkeypatch: pytest.MonkeyPatch, kind: str, shape: tuple[int, ...]) -> None:
    a, tau = gs.geqrf(gs.from_numpy(matrices(kind, *shape)))
    rows = shape[-2]
    B = gs.from_numpy(matrices(kind, *shape[:-2], rows, 3))
    same(both_ways(monkeypatch, lambda: [gs.linalg.householder_product(a, tau)]), kind)
    same(both_ways(monkeypatch, lambda: [gs.linalg.householder_product(a, tau[..., :2])]), kind)
    for transpose in (False, True):
        same(both_ways(monkeypatch, lambda t=transpose: [gs.ormqr(a, tau, B, True, t)]), kind)
        same(both_ways(monkeypatch, lambda t=transpose: [gs.ormqr(a, tau, B.mT.contiguous(), False, t)]), kind)


@pytest.mark.parametrize("batch", [(), (30,)])
def test_a_zero_on_the_diagonal_divides(batch: tuple[int, ...]) -> None:
    A = gs.tensor([[1.0, 2.0], [0.0, 0.0]]).expand(*batch, 2, 2)
    X = gs.linalg.solve_triangular(A, gs.tensor([[1.0], [1.0]]).expand(*batch, 2, 1), upper=True)
    assert X.reshape(-1, 2)[0].tolist() == [-gs.inf, gs.inf]


def test_the_size_decides() -> None:
    assert lapack.is_quicker(numpy.ones((2, 2)))
    assert lapack.is_quicker(numpy.ones((100, 32, 32)))
    assert not lapack.is_quicker(numpy.ones((1000, 4, 4)))
    assert not lapack.is_quicker(numpy.ones((0, 4, 4)))
