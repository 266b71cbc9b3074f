"""Inverses, pseudoinverses, least squares, ranks and condition numbers, equations of tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import gradcheck, gradgradcheck
from tests.runtime.ops.matrix_cases import matrices, positive, same_in_both

KINDS = ["float64", "complex128"]
SINGULAR = numpy.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
def test_inverses_and_solutions_with_infos_are_pytorchs(torch: Any, kind: str) -> None:
    A, B = positive(2, 3, kind=kind), matrices(2, 3, 2, kind=kind)
    same_in_both(torch, lambda m, a: m.linalg.inv_ex(a), A)
    same_in_both(torch, lambda m, a, b: m.linalg.solve_ex(a, b), A, B)
    same_in_both(torch, lambda m, a, b: m.linalg.solve_ex(a, b.mT, left=False), A, B)
    same_in_both(torch, lambda m, a, b: m.linalg.solve(a, b.mT, left=False), A, B)
    same_in_both(torch, lambda m, a, b: m.linalg.solve_ex(a, b[..., 0]), A, B)


@pytest.mark.torch
def test_singular_matrices_have_pytorchs_infos(torch: Any, other_device: str) -> None:
    with numpy.errstate(all="ignore"):
        same_in_both(torch, lambda m, a: m.linalg.inv_ex(a.detach()), SINGULAR)
        same_in_both(torch, lambda m, a: m.linalg.solve_ex(a.detach(), m.ones(2, 1, dtype=a.dtype)), SINGULAR)
        found = gs.linalg.inv_ex(gs.from_numpy(SINGULAR).to(other_device))
    assert found.info.tolist() == [2, 0, 1]


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 2, 4), (0, 3), (2, 0, 0)])
def test_pseudoinverses_are_pytorchs(torch: Any, kind: str, shape: Any) -> None:
    array = matrices(*shape, kind=kind)
    same_in_both(torch, lambda m, a: m.linalg.pinv(a), array)
    same_in_both(torch, lambda m, a: m.pinverse(a), array)
    if shape[-1] == shape[-2]:
        hermitian = array + array.conj().swapaxes(-1, -2)
        same_in_both(torch, lambda m, a: m.linalg.pinv(a, hermitian=True), hermitian)


@pytest.mark.torch
@pytest.mark.parametrize(
    "options", [{}, {"atol": 0.5}, {"rtol": 0.5}, {"atol": 0.1, "rtol": 0.4}, {"atol": 100.0}, {"atol": 0.0}]
)
def test_small_singular_values_are_left_out_as_in_pytorch(torch: Any, options: Any) -> None:
    array = matrices(3, 4, 3)
    same_in_both(torch, lambda m, a: m.linalg.pinv(a.detach(), **options), array)
    same_in_both(torch, lambda m, a: m.linalg.matrix_rank(a, **options), array)
    as_tensors = {name: numpy.array([value, 0.3, 2.0]) for name, value in options.items()}

    def use(m: Any, a: Any, **given: Any) -> Any:
        limits = {name: m.from_numpy(value) for name, value in given.items()}
        return m.linalg.pinv(a.detach(), **limits), m.linalg.matrix_rank(a, **limits)

    same_in_both(torch, lambda m, a: use(m, a, **as_tensors), array)


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shapes", [((4, 2), (4, 3)), ((3, 3), (3, 1)), ((2, 4, 2), (2, 4)), ((2, 4), (2, 1))])
def test_least_squares_solutions_are_pytorchs(torch: Any, kind: str, driver: Any, shapes: Any) -> None:
    A, B = matrices(*shapes[0], kind=kind), matrices(*shapes[1], kind=kind, seed=1)
    same_in_both(torch, lambda m, a, b: m.linalg.lstsq(a, b, driver=driver), A, B)
    same_in_both(torch, lambda m, a, b: m.linalg.lstsq(a, b, driver=driver).solution, A, B)


def test_residuals_are_squared_lengths_with_a_gradient() -> None:
    A, B = (gs.from_numpy(matrices(4, k, seed=k)).requires_grad_() for k in (2, 3))

    def residuals(a: Any, b: Any) -> Any:
        return gs.linalg.lstsq(a, b, driver="gelsd").residuals

    assert gs.allclose(residuals(A, B), ((A @ gs.linalg.lstsq(A, B).solution - B) ** 2).sum(0))
    assert gradcheck(residuals, (A, B))
    assert gradgradcheck(residuals, (A, B))


def test_the_shortest_of_several_solutions() -> None:
    A = gs.tensor([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    found = gs.linalg.lstsq(A, gs.tensor([[2.0], [2.0], [4.0]]), driver="gelsd")
    assert gs.allclose(found.solution, gs.tensor([[1.0], [1.0]]))
    assert found.rank.item() == 1
    assert found.residuals.shape == (0,)


NOT_SOLVED = {
    "NaN": (["gels", "gelsy", "gelsd", "gelss"], [[math.nan, 2.0], [0.0, 1.0]], [[1.0], [1.0]]),
    "NaN in a batch": (
        ["gels", "gelsy", "gelsd", "gelss"],
        [numpy.eye(2), [[1.0, math.nan], [2, 1]]],
        [[[1.0], [1]]] * 2,
    ),
    "NaN on the right": (["gels", "gelsy", "gelsd", "gelss"], [[1.0, 2.0], [0.0, 1.0]], [[1.0], [math.nan]]),
    "an infinity": (["gelsd"], [[math.inf, 2.0], [0.0, 1.0]], [[1.0], [1.0]]),
    # Exactly singular whatever the kernel: of equal rows rounding may leave a last pivot that is not quite zero.
    "a row of zeros in a square": (["gels"], [[1.0, 1.0], [0.0, 0.0]], [[1.0], [1.0]]),
    "a column of zeros": (["gels"], [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]], [[1.0], [1.0], [1.0]]),
    "a row of zeros": (["gels"], [[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]], [[1.0], [1.0]]),
    "a column of zeros in a batch": (["gels"], [numpy.eye(2), [[1.0, 0.0], [0.0, 0.0]]], [[[1.0], [1.0]]] * 2),
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("case", NOT_SOLVED)
def test_least_squares_are_refused_with_pytorchs_class(torch: Any, case: str, kind: str) -> None:
    drivers, A, B = NOT_SOLVED[case]
    for driver in drivers:
        found, expected = (refusal_of_lstsq(m, A, B, kind, driver) for m in (gs, torch))
        assert (found[0], "rank" in found[1]) == (expected[0], "rank" in expected[1])
        if "rank" in expected[1]:
            assert found[1] == expected[1].replace("torch.", "gradscope.")
        assert found[1].startswith("gradscope.linalg.lstsq: ")


def refusal_of_lstsq(m: Any, A: Any, B: Any, kind: str, driver: str) -> tuple[str, str]:
    a, b = (m.from_numpy(numpy.array(matrix, dtype=kind)) for matrix in (A, B))
    with pytest.raises(RuntimeError) as caught:
        m.linalg.lstsq(a, b, driver=driver)
    return type(caught.value).__name__.lstrip("_"), str(caught.value).splitlines()[0]


@pytest.mark.torch
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_of_zeros_are_zeros_and_of_infinities_nan(torch: Any, driver: str) -> None:
    zeros, rows = numpy.zeros((3, 2)), numpy.array([[1.0, 2.0], [3.0, 1.0], [4.0, 0.0]])
    with numpy.errstate(all="ignore"):
        for A, B in ((zeros, numpy.ones((3, 2))), (rows, numpy.array([[1.0, 1.0], [1.0, math.inf], [2.0, 2.0]]))):
            same_in_both(torch, lambda m, a, b: m.linalg.lstsq(a.detach(), b.detach(), driver=driver).solution, A, B)


@pytest.mark.torch
@pytest.mark.parametrize("turned", [False, True])
def test_gels_counts_no_small_column_as_zero(torch: Any, turned: bool) -> None:
    tall = matrices(4, 3) * [1.0, 1e-20, 1e20]
    A = numpy.ascontiguousarray(tall.T) if turned else tall
    B = matrices(len(A), 2, seed=1)
    found, expected = (
        m.linalg.lstsq(m.from_numpy(A), m.from_numpy(B), driver="gels").solution.numpy() for m in (gs, torch)
    )
    numpy.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.torch
@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc"])
def test_condition_numbers_are_pytorchs(torch: Any, p: Any) -> None:
    # PyTorch writes the inverse in place that the gradient of the others needs, and raises.
    by_values = p in (None, 2, -2, "nuc")
    for array in (matrices(3, 3), matrices(2, 2, 2), matrices(2, 2, kind="complex128"), matrices(0, 2, 2)):
        same_in_both(torch, lambda m, a: m.linalg.cond(a if by_values else a.detach(), p), array)
    assert gradcheck(lambda a: gs.linalg.cond(a, p), (gs.from_numpy(matrices(3, 3)).requires_grad_(),))
    if p != "nuc":
        with numpy.errstate(all="ignore"):
            same_in_both(torch, lambda m, a: m.linalg.cond(a.detach(), p), SINGULAR[2])


@pytest.mark.torch
def test_ranks_are_pytorchs(torch: Any) -> None:
    low = matrices(4, 2) @ matrices(2, 4)
    for array in (low, numpy.stack([low, matrices(4, 4)]), numpy.zeros((3, 0, 2)), numpy.zeros((2, 3))):
        same_in_both(torch, lambda m, a: m.linalg.matrix_rank(a), array)
    same_in_both(torch, lambda m, a: m.linalg.matrix_rank(a, hermitian=True), low @ low.T)


@pytest.mark.torch
def test_equations_of_tensors_are_pytorchs(torch: Any) -> None:
    same_in_both(torch, lambda m, a: m.linalg.tensorinv(a, ind=1), matrices(6, 2, 3))
    same_in_both(torch, lambda m, a: m.linalg.tensorinv(a), matrices(2, 3, 6))
    same_in_both(torch, lambda m, a, b: m.linalg.tensorsolve(a, b), matrices(2, 3, 6), matrices(2, 3))
    same_in_both(torch, lambda m, a, b: m.linalg.tensorsolve(a, b, dims=(0,)), matrices(6, 2, 3), matrices(2, 3))
