"""Determinants, inverses, Kronecker and cross products, distances."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import gradcheck, gradgradcheck
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal


def regular(m: Any, x: Any) -> Any:
    """Return a matrix that is far from singular."""
    return x @ x.mT + m.eye(x.shape[-1], dtype=x.dtype)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("use", "shapes"),
    [
        (lambda m, x: m.det(regular(m, x)), [(3, 3)]),
        (lambda m, x: regular(m, x).logdet(), [(2, 2)]),
        (lambda m, x: m.slogdet(regular(m, x)).logabsdet, [(2, 2, 2)]),
        (lambda m, x: m.inverse(regular(m, x)), [(2, 3, 3)]),
        (lambda m, x: m.matrix_power(x, 3), [(2, 2)]),
        (lambda m, x: m.matrix_power(regular(m, x), -2), [(2, 2)]),
        (lambda m, x, y: m.kron(x, y), [(2, 2), (2, 3)]),
        (lambda m, x, y: m.kron(x, y), [(2,), (2, 3)]),
        (lambda m, x, y: m.cross(x, y, dim=0), [(3,), (3,)]),
        (lambda m, x, y: x.cross(y, dim=-1), [(2, 3), (2, 3)]),
        (lambda m, x, y: m.ger(x, y), [(2,), (3,)]),
        (lambda m, x, y: m.vdot(x, y), [(3,), (3,)]),
    ],
)
def test_agrees_with_pytorch(torch: Any, use: Any, shapes: Any) -> None:
    assert_agrees(torch, use, *shapes)


@pytest.mark.torch
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0])
def test_distances(torch: Any, p: float) -> None:
    # PyTorch has nodes of their own for them.
    assert_agrees(torch, lambda m, x, y: m.cdist(x, y, p=p), (2, 3), (4, 3), nodes=False)
    assert_agrees(torch, lambda m, x, y: m.dist(x, y, p), (3,), (3,), nodes=False)


@pytest.mark.torch
@pytest.mark.parametrize("p", [0.0, 2.0, float("inf")])
def test_points_without_coordinates_are_no_distance_apart(torch: Any, p: float) -> None:
    found, expected = (m.cdist(m.ones(3, 0), m.ones(4, 0), p) for m in (gs, torch))
    assert found.tolist() == expected.tolist()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.det(m.zeros(2, 3)),
        lambda m: m.inverse(m.zeros(2)),
        lambda m: m.inverse(m.ones(2, 2, dtype=m.int64)),
        lambda m: m.cross(m.ones(2), m.ones(2), dim=0),
        lambda m: m.cdist(m.ones(2), m.ones(2, 2)),
        lambda m: m.cdist(m.ones(2, 3), m.ones(2, 2)),
        lambda m: m.matrix_power(m.ones(2, 3), 2),
        lambda m: m.vdot(m.ones(2), m.ones(3)),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_a_singular_matrix_has_no_inverse_but_a_determinant_with_a_gradient() -> None:
    x = gs.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=gs.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="the input matrix is singular"):
        gs.inverse(x)
    x.det().backward()
    assert gs.allclose(x.grad, gs.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=gs.float64))


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0], [2.0, 4.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]],
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]],
    ],
)
def test_the_determinant_of_a_singular_matrix_has_a_second_derivative(rows: Any) -> None:
    assert gradgradcheck(gs.det, (gs.tensor(rows, dtype=gs.float64, requires_grad=True),))


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_three_derivatives_of_the_determinant_are_pytorchs(torch: Any, size: int, dtype: str) -> None:
    draws = numpy.random.default_rng(size).normal(size=(4, 2, 2, size, size))
    matrix, first, second, _ = draws[:, 0] + 1j * draws[:, 1] if dtype == "complex128" else draws[:, 0]

    def square(values: Any) -> Any:
        return (values * values.conj()).real.sum()

    def derivatives(m: Any) -> list[Any]:
        A, B = m.tensor(matrix, requires_grad=True), m.tensor(first, requires_grad=True)
        (g,) = m.autograd.grad(square(m.linalg.det(A)), A, create_graph=True)
        found = [g, *m.autograd.grad(square((g * B).sum()), (A, B), create_graph=True)]
        found += m.autograd.grad(square((found[1] * m.tensor(second)).sum()), A)
        return [one.detach().resolve_conj().numpy() for one in found]

    for mine, theirs in zip(derivatives(gs), derivatives(torch), strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * abs(theirs).max())


def test_higher_derivatives_of_composites() -> None:
    x = gs.tensor([[1.5, 0.5], [-0.25, 2.0]], dtype=gs.float64, requires_grad=True)
    y = gs.tensor([[0.3, -1.0]], dtype=gs.float64, requires_grad=True)
    for function, inputs in ((gs.logdet, (x,)), (gs.kron, (x, y)), (gs.cdist, (x, y))):
        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)


def test_power_zero_is_the_identity() -> None:
    assert gs.matrix_power(gs.full((2, 2), 3.0), 0).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_the_logarithm_of_a_complex_determinant_is_complex(torch: Any, shape: Any) -> None:
    values = numpy.random.default_rng(0).normal(size=(*shape, 2)) @ numpy.array([1, 1j])
    found = []
    for lib in (gs, torch):
        A = lib.tensor(values, requires_grad=True)
        result = A.logdet()
        (result * result.conj()).real.sum().backward()
        found.append((result.detach().numpy(), A.grad.numpy()))
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["int64", "float16", "uint8", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_powers_take_all_that_has_a_product(torch: Any, kind: str, n: int) -> None:
    found, expected = (m.matrix_power(m.tensor([[1, 2], [0, 1]], dtype=getattr(m, kind)), n) for m in (gs, torch))
    assert found.tolist() == expected.tolist()
    assert str(found.dtype).removeprefix("gradscope.") == kind


def test_the_zeroth_power_has_a_gradient_of_zeros() -> None:
    A = gs.ones(2, 2, requires_grad=True)
    gs.matrix_power(A, 0).sum().backward()
    assert A.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.torch
@pytest.mark.parametrize("values", [[[1.0, 2.0], [2.0, 4.0]], [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]]])
def test_the_logarithm_of_a_determinant_of_0_has_an_infinite_gradient(torch: Any, values: Any) -> None:
    gradients = []
    for lib in (gs, torch):
        x = lib.tensor(values, requires_grad=True)
        lib.linalg.slogdet(x)[1].sum().backward()
        gradients.append(x.grad.numpy())
    numpy.testing.assert_allclose(*gradients, rtol=1e-6)
    x = gs.tensor(values, requires_grad=True)
    gs.logdet(x)[..., None].max().backward()


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_a_solution_that_was_found_has_a_gradient() -> None:
    # Elimination meets a 0 in the adjoint alone, where a product of denormal numbers is one.
    small = 5e-324
    A = gs.tensor([[0.0, -0.0, small], [-small, 1.0, 0.0], [-0.0, small, -small]], dtype=gs.float64, requires_grad=True)
    solution = gs.linalg.solve(A, gs.ones(3, dtype=gs.float64))
    (found,) = gs.autograd.grad(solution.sum(), A)
    assert found.shape == A.shape
