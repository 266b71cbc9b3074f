"""Decompositions of nearly low rank: of matrices of that rank they are exact."""

from __future__ import annotations

import pytest

import gradscope as gs


@pytest.fixture(autouse=True)
def _seeded() -> None:
    gs.manual_seed(3)


@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (2, 6, 8)])
@pytest.mark.parametrize("kind", [gs.float64, gs.complex128])
def test_a_matrix_of_low_rank_comes_back(shape: tuple[int, ...], kind: gs.dtype) -> None:
    *batch, m, n = shape
    A = gs.randn(*batch, m, 2, dtype=kind) @ gs.randn(*batch, 2, n, dtype=kind)
    U, S, V = gs.svd_lowrank(A, q=3)
    assert (U.shape, S.shape, V.shape) == ((*batch, m, 3), (*batch, 3), (*batch, n, 3))
    gs.testing.assert_close(U @ gs.diag_embed(S).to(kind) @ V.mH, A)
    mean = gs.ones(n, dtype=kind)
    U, S, V = gs.svd_lowrank(A + mean, q=3, M=mean)
    gs.testing.assert_close(U @ gs.diag_embed(S).to(kind) @ V.mH, A)


def test_principal_components_are_those_of_what_is_centered() -> None:
    A = gs.randn(20, 3, dtype=gs.float64) + 5
    _, S, V = gs.pca_lowrank(A)
    _, expected, directions = gs.linalg.svd(A - A.mean(0), full_matrices=False)
    gs.testing.assert_close(S, expected)
    gs.testing.assert_close((V.mH @ directions.mH).abs(), gs.eye(3, dtype=gs.float64))
    gs.testing.assert_close(gs.pca_lowrank(A, center=False)[1], gs.linalg.svdvals(A))


def test_gradients_flow_through() -> None:
    A = (gs.randn(6, 2, dtype=gs.float64) @ gs.randn(2, 4, dtype=gs.float64)).requires_grad_()
    gs.svd_lowrank(A, q=2)[1].sum().backward()
    U, _, Vh = gs.linalg.svd(A.detach(), full_matrices=False)
    gs.testing.assert_close(A.grad, U[:, :2] @ Vh[:2])


@pytest.mark.parametrize("q", [-1, 4])
def test_a_rank_that_cannot_be_is_refused(q: int) -> None:
    with pytest.raises(ValueError, match=rf"^q\(={q}\) must be non-negative integer and not greater than"):
        gs.pca_lowrank(gs.ones(5, 3), q)
    with pytest.raises(ValueError, match=r"^niter\(=-1\) must be non-negative integer"):
        gs.pca_lowrank(gs.ones(5, 3), niter=-1)
