"""LDL factors beside PyTorch's, which are LAPACK's too."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.other_devices import OTHER_DEVICES
from tests.side_by_side import same_complaint


def symmetric(kind: str, hermitian: bool, *shape: int) -> Any:
    generator = numpy.random.default_rng(3)
    found = generator.standard_normal(shape) + 1j * (kind[0] == "c") * generator.standard_normal(shape)
    turned = found.swapaxes(-1, -2)
    found = found + (turned.conj() if hermitian else turned)
    return (found if kind[0] == "c" else found.real).astype(kind)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (0, 0), (0, 2, 2)])
def test_factors_and_solutions(torch: Any, kind: str, hermitian: bool, shape: tuple[int, ...]) -> None:
    matrix, right = symmetric(kind, hermitian, *shape), symmetric(kind, False, *shape)[..., :2]
    results = []
    for m in (gs, torch):
        A, B = m.tensor(matrix), m.tensor(right)
        LD, pivots = m.linalg.ldl_factor(A, hermitian=hermitian)
        results.append((LD, pivots, m.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)))
    for found, expected in zip(*results, strict=True):
        assert found.numpy().dtype == expected.numpy().dtype
        tolerance = 1e-3 if kind == "float32" else 1e-9
        numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


def test_the_solution_solves() -> None:
    A = gs.tensor(symmetric("float64", False, 20, 20))
    B = gs.ones(3, 20, 1, dtype=gs.float64)
    gs.testing.assert_close(A @ gs.linalg.ldl_solve(*gs.linalg.ldl_factor(A), B), B)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.linalg.ldl_factor(m.ones(2)),
        lambda m: m.linalg.ldl_factor(m.ones(2, 3)),
        lambda m: m.linalg.ldl_factor(m.ones(2, 2, dtype=m.int64)),
        lambda m: m.linalg.ldl_solve(m.eye(2), m.ones(2), m.ones(2, 1)),
        lambda m: m.linalg.ldl_solve(m.eye(2), m.ones(3, dtype=m.int32), m.ones(2, 1)),
        lambda m: m.linalg.ldl_solve(m.eye(2), m.ones(2, dtype=m.int32), m.ones(3, 1)),
        lambda m: m.linalg.ldl_solve(m.eye(2), m.ones(2, dtype=m.int32), m.ones(2, 1).double()),
        lambda m: m.linalg.ldl_factor_ex(m.ones(2, 2, requires_grad=True)).LD.sum().backward(),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, use)


def test_a_zero_of_d_is_told() -> None:
    assert gs.linalg.ldl_factor_ex(gs.zeros(2, 2)).info.item() == 1
    with pytest.raises(RuntimeError, match=r"^gradscope\.linalg\.ldl_factor: D\[1,1\] is zero"):
        gs.linalg.ldl_factor(gs.zeros(2, 2))


def test_other_devices_refuse() -> None:
    for device in OTHER_DEVICES:
        with pytest.raises(NotImplementedError, match="is not implemented for"):
            gs.linalg.ldl_factor(gs.eye(2, device=device))
