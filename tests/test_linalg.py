"""gs.linalg: norms, and other names of operators that are tested with the operators."""

from __future__ import annotations

import doctest
import math
from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal


@pytest.mark.torch
@pytest.mark.parametrize(
    ("use", "shapes"),
    [
        (lambda m, x: m.linalg.norm(x), [(2, 3)]),
        (lambda m, x: m.linalg.norm(x, 3), [(4,)]),
        (lambda m, x: m.linalg.norm(x, 1, 0), [(2, 3)]),
        (lambda m, x: m.linalg.norm(x, "fro"), [(2, 3)]),
        (lambda m, x: m.linalg.vector_norm(x.detach(), 0), [(2, 3)]),
        (lambda m, x: m.linalg.vector_norm(x, math.inf, (0, 1), True), [(2, 3)]),
        (lambda m, x: m.linalg.matrix_norm(x), [(2, 2, 3)]),
        (lambda m, x: m.linalg.inv(x @ x.mT + m.eye(2, dtype=x.dtype)), [(2, 2)]),
        (lambda m, x, y: m.linalg.cross(x, y), [(2, 3), (2, 3)]),
        (lambda m, x, y: m.linalg.solve(x @ x.mT + m.eye(2, dtype=x.dtype), y), [(2, 2), (2, 3)]),
        (lambda m, x, y: m.linalg.solve(x @ x.mT + m.eye(2, dtype=x.dtype), y), [(3, 2, 2), (2,)]),
    ],
)
def test_agrees_with_pytorch(torch: Any, use: Any, shapes: Any) -> None:
    assert_agrees(torch, use, *shapes)


@pytest.mark.torch
@pytest.mark.parametrize("ord", [1, -1, math.inf, -math.inf])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_rows_and_columns(torch: Any, ord: float, keepdim: bool) -> None:
    # The nodes along the way are others.
    assert_agrees(torch, lambda m, x: m.linalg.matrix_norm(x, ord, keepdim=keepdim), (2, 3, 2), nodes=False)
    assert_agrees(torch, lambda m, x: m.linalg.norm(x, ord), (2, 3), nodes=False)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.linalg.matrix_norm(m.ones(2)),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), 1),
        lambda m: m.linalg.matrix_norm(m.ones(2, 2), 3),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


@pytest.mark.torch
@pytest.mark.parametrize("ord", ["nuc", 2, -2])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_singular_values(torch: Any, ord: Any, keepdim: bool) -> None:
    assert_agrees(torch, lambda m, x: m.linalg.matrix_norm(x.sin(), ord, keepdim=keepdim), (2, 3, 2), nodes=False)
    assert_agrees(torch, lambda m, x: m.linalg.norm(x.sin(), ord, dim=(2, 0), keepdim=keepdim), (2, 3, 2), nodes=False)


def test_a_singular_matrix_has_no_inverse() -> None:
    with pytest.raises(gs.linalg.LinAlgError, match="the input matrix is singular"):
        gs.linalg.inv(gs.zeros(2, 2))


def test_the_examples_of_its_documentation() -> None:
    assert doctest.testmod(gs.linalg).failed == 0


@pytest.mark.torch
def test_equations_with_the_matrix_on_the_right(torch: Any) -> None:
    def use(m: Any, x: Any, y: Any) -> Any:
        return m.linalg.solve(x @ x.mT + m.eye(2, dtype=x.dtype), y, left=False)

    assert_agrees(torch, use, (2, 2), (3, 2), nodes=False)
    out = gs.zeros(1, 2)
    assert gs.linalg.solve(gs.eye(2) * 2, gs.ones(1, 2), left=False, out=out) is out
    assert out.tolist() == [[0.5, 0.5]]


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.linalg.solve(m.eye(2), m.ones(3)),
        lambda m: m.linalg.solve(m.ones(2, 3), m.ones(2)),
        lambda m: m.linalg.solve(m.eye(2), m.ones(2).double()),
    ],
    ids=["sizes", "not square", "dtypes"],
)
def test_equations_without_a_solution(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_equations_of_a_singular_matrix() -> None:
    with pytest.raises(gs.linalg.LinAlgError, match="The solver failed because the input matrix is singular"):
        gs.linalg.solve(gs.zeros(2, 2), gs.ones(2))
