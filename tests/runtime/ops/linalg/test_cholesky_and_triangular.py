"""Triangular equations and Cholesky factors."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.execution.array_errors import LinAlgError
from tests.runtime.ops.matrix_cases import matrices, positive, same_in_both


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
def test_triangular_solutions_are_pytorchs(torch: Any, kind: str, upper: bool, left: bool, unitriangular: bool) -> None:
    def use(m: Any, a: Any, b: Any) -> Any:
        return m.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)

    B = matrices(3, 1, *((3, 2) if left else (2, 3)), kind=kind, seed=1)
    same_in_both(torch, use, matrices(2, 3, 3, kind=kind), B)


@pytest.mark.torch
@pytest.mark.parametrize("upper", [True, False])
def test_a_zero_on_the_diagonal_gives_what_pytorch_gives(torch: Any, upper: bool) -> None:
    array = numpy.array([[0.0, 1.0], [1.0, 2.0]])
    with numpy.errstate(all="ignore"):
        same_in_both(
            torch, lambda m, a: m.linalg.solve_triangular(a.detach(), m.eye(2, dtype=a.dtype), upper=upper), array
        )


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky_factors_and_gradients_are_pytorchs(torch: Any, kind: str, upper: bool) -> None:
    A = positive(2, 3, kind=kind)
    same_in_both(torch, lambda m, x: m.linalg.cholesky(x, upper=upper), A)
    same_in_both(torch, lambda m, x: m.linalg.cholesky_ex(x, upper=upper), A)
    same_in_both(torch, lambda m, x: m.cholesky(x, upper), A)
    same_in_both(torch, lambda m, x: m.cholesky_inverse(m.linalg.cholesky(x, upper=upper), upper), A)
    B = matrices(2, 3, 2, kind=kind)
    same_in_both(torch, lambda m, x, b: m.cholesky_solve(b, m.linalg.cholesky(x, upper=upper), upper), A, B)


@pytest.mark.torch
def test_the_triangle_that_is_not_asked_for_is_not_read(torch: Any) -> None:
    for upper in (True, False):
        array = (numpy.triu if upper else numpy.tril)(positive(3)) + (numpy.tril if upper else numpy.triu)(
            matrices(3, 3), -1 if upper else 1
        )
        same_in_both(torch, lambda m, x, upper=upper: m.linalg.cholesky(x, upper=upper), array)


NOT_POSITIVE = numpy.array([[[4.0, 2.0, 1.0], [2.0, 1.0, 0.0], [1.0, 0.0, 9.0]], 3 * numpy.eye(3), -numpy.eye(3)])


def test_the_minor_that_is_not_positive_is_named(other_device: str) -> None:
    A = gs.from_numpy(NOT_POSITIVE)
    assert gs.linalg.cholesky_ex(A).info.tolist() == [2, 0, 1]
    assert gs.linalg.cholesky_ex(A.to(other_device)).info.tolist() == [2, 0, 1]
    with pytest.raises(LinAlgError, match=r"cholesky: \(Batch element 0\): .* \(the leading minor of order 2 is not"):
        gs.linalg.cholesky(A)
    with pytest.raises(LinAlgError, match=r"linalg.cholesky_ex: .* of order 1 is not positive-definite"):
        gs.linalg.cholesky_ex(A[2], check_errors=True)
    with pytest.raises(LinAlgError, match="of order 1 is not"):
        gs.linalg.cholesky(gs.full((2, 2), float("nan")))


def test_factors_counted_column_by_column_are_the_same(other_device: str) -> None:
    for kind in ("float64", "complex128"):
        A = positive(2, 4, kind=kind)
        found = gs.linalg.cholesky_ex(gs.from_numpy(A).to(other_device))
        assert found.L.device.type == other_device
        numpy.testing.assert_allclose(found.L.cpu().numpy(), numpy.linalg.cholesky(A), atol=1e-12)


def test_a_large_system_of_two_triangles() -> None:
    A = gs.from_numpy(positive(60))
    B = gs.from_numpy(matrices(60, 3))
    L = gs.linalg.cholesky(A)
    X = gs.linalg.solve_triangular(L.mT, gs.linalg.solve_triangular(L, B, upper=False), upper=True)
    assert gs.allclose(A @ X, B)


def test_a_matrix_with_infinities_has_the_factor_of_elimination_or_none() -> None:
    inf = float("inf")
    assert gs.linalg.cholesky(gs.tensor([[inf, 0.0], [0.0, 4.0]])).tolist() == [[inf, 0.0], [0.0, 2.0]]
    with numpy.errstate(invalid="ignore"):
        assert gs.linalg.cholesky_ex(gs.tensor([[inf, inf], [inf, 5.0]])).info.item() == 2
        with pytest.raises(LinAlgError, match="leading minor of order 2"):
            gs.linalg.cholesky(gs.tensor([[inf, inf], [inf, 5.0]]))
