"""LU factors: elimination itself, and what is solved with them."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from tests.runtime.ops.matrix_cases import matrices, same_in_both


@settings(max_examples=40)
@given(
    rows=st.integers(0, 6),
    columns=st.integers(0, 6),
    batch=st.lists(st.integers(0, 3), max_size=2),
    kind=st.sampled_from(["float64", "complex128"]),
    rank=st.integers(0, 6),
)
def test_the_factors_give_the_matrix_back(rows: int, columns: int, batch: list[int], kind: str, rank: int) -> None:
    array = matrices(*batch, rows, rank, kind=kind) @ matrices(*batch, rank, columns, kind=kind, seed=1)
    P, L, U = gs.linalg.lu(gs.from_numpy(array))
    numpy.testing.assert_allclose((P @ L @ U).numpy(), array, atol=1e-10)
    k = min(rows, columns)
    assert L.shape[-2:] == (rows, k)
    assert U.shape[-2:] == (k, columns)
    assert (L.tril() - L).abs().sum() == 0
    assert (U.triu() - U).abs().sum() == 0
    assert bool((L.abs() <= 2**0.5 + 1e-9).all())  # no element below the diagonal weighs more than the pivot
    if rows:
        assert bool((P.real.sum(-1) == 1).all())
        assert bool((P.real.sum(-2) == 1).all())


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 3), (70, 70), (2, 40, 33), (40, 90), (90, 40), (0, 3), (2, 0, 2)])
@pytest.mark.parametrize("kind", ["float64", "complex64"])
def test_factors_and_pivots_are_pytorchs(torch: Any, shape: Any, kind: str) -> None:
    array = matrices(*shape, kind=kind)
    found, expected = (m.linalg.lu_factor_ex(m.from_numpy(array)) for m in (gs, torch))
    tolerance = 1e-9 if kind == "float64" else 2e-3
    for name in ("LU", "pivots", "info"):
        a, b = getattr(found, name).numpy(), getattr(expected, name).numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 4)])
def test_gradients_are_pytorchs(torch: Any, kind: str, shape: Any) -> None:
    array = matrices(*shape, kind=kind)
    same_in_both(torch, lambda m, x: m.linalg.lu(x), array)
    same_in_both(torch, lambda m, x: m.linalg.lu(x)[1], array)
    same_in_both(torch, lambda m, x: m.linalg.lu(x)[2], array)
    same_in_both(torch, lambda m, x: m.linalg.lu_factor_ex(x)[0], array)
    same_in_both(torch, lambda m, x: m.lu_unpack(*m.linalg.lu_factor(x)), array)


@pytest.mark.torch
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_solutions_are_pytorchs(torch: Any, left: bool, adjoint: bool, kind: str) -> None:
    A, B = matrices(3, 3, kind=kind), matrices(2, *((3, 2) if left else (2, 3)), kind=kind, seed=1)

    def use(m: Any, a: Any, b: Any) -> Any:
        LU, pivots = m.linalg.lu_factor(a)
        return m.linalg.lu_solve(LU, pivots, b, left=left, adjoint=adjoint)

    same_in_both(torch, use, A, B)


def test_elimination_runs_on_the_device(other_device: str) -> None:
    array = matrices(2, 40, 40)
    found = gs.linalg.lu_factor_ex(gs.from_numpy(array).to(other_device))
    expected = gs.linalg.lu_factor_ex(gs.from_numpy(array))
    for a, b in zip(found, expected, strict=True):
        assert a.device.type == other_device
        assert gs.allclose(a.cpu(), b)


def test_a_zero_on_the_diagonal_is_counted_from_one() -> None:
    singular = gs.tensor([[1.0, 2.0], [2.0, 4.0]])
    pair = gs.stack([gs.eye(2), singular])
    assert gs.linalg.lu_factor_ex(pair).info.tolist() == [0, 2]
    with pytest.raises(RuntimeError, match=r"lu_factor: \(Batch element 1\): U\[2,2\] is zero"):
        gs.linalg.lu_factor(pair)


def test_results_are_written_into_given_tensors() -> None:
    A = gs.tensor([[2.0, 1.0], [4.0, 0.0]])
    out = (gs.empty(0), gs.empty(0), gs.empty(0))
    found = gs.linalg.lu(A, out=out)
    assert all(a is b for a, b in zip(found, out, strict=True))
    assert gs.allclose(out[0] @ out[1] @ out[2], A)
    with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors"):
        gs.linalg.lu(A, out=gs.empty(0))
