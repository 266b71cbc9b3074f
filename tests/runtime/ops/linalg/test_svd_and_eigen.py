"""Singular values and eigenvalues, compared with PyTorch where signs and phases do not matter."""

from __future__ import annotations

import types
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import forward_ad, gradcheck
from gradscope.runtime.ops.execution.array_errors import LinAlgError
from gradscope.runtime.tensor.tensor import Tensor
from tests.runtime.ops.matrix_cases import matrices, positive, same_in_both
from tests.side_by_side import same_complaint
from tests.strict_arrays import strict, to_strict

KINDS = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 1, 2, 3)]


def close(a: Any, b: Any) -> bool:
    tolerance = 1e-4 if a.dtype in (gs.float32, gs.complex64) else 1e-10
    return bool(gs.allclose(a, b.to(a.dtype), rtol=tolerance, atol=tolerance))


def identity(x: Any) -> Any:
    return gs.eye(x.shape[-1], dtype=x.dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_are_orthonormal_and_give_the_matrix_back(kind: str, shape: Any, full: bool) -> None:
    A = gs.from_numpy(matrices(*shape, kind=kind))
    U, S, Vh = gs.linalg.svd(A, full_matrices=full)
    k = min(shape[-2:])
    assert U.shape[-1] == (shape[-2] if full else k)
    assert Vh.shape[-2] == (shape[-1] if full else k)
    assert close(U.mH @ U, identity(U).expand(*U.shape[:-2], -1, -1))
    assert close(Vh @ Vh.mH, identity(Vh.mH).expand(*Vh.shape[:-2], -1, -1))
    assert close(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], A)
    assert S.dtype == (gs.float32 if kind in ("float32", "complex64") else gs.float64)
    assert bool((S[..., :-1] >= S[..., 1:]).all())


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_losses_of_singular_vectors_have_pytorchs_gradients(torch: Any, kind: str, shape: Any) -> None:
    def low_rank(m: Any, x: Any) -> Any:
        U, S, Vh = m.linalg.svd(x, full_matrices=False)
        return U[..., :1] @ Vh[..., :1, :], S

    for use in (low_rank, lambda m, x: m.linalg.svd(x)[1], lambda m, x: m.linalg.svdvals(x)):
        same_in_both(torch, use, matrices(*shape, kind=kind))


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_losses_of_one_side_have_pytorchs_gradients(torch: Any, kind: str) -> None:
    for index in (0, 2):

        def magnitudes(m: Any, x: Any, index: int = index) -> Any:
            return m.linalg.svd(x, full_matrices=False)[index].abs() ** 3

        for shape in SHAPES:
            same_in_both(torch, magnitudes, matrices(*shape, kind=kind))


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("UPLO", ["L", "U", "l"])
def test_losses_of_eigenvectors_have_pytorchs_gradients(torch: Any, kind: str, UPLO: str) -> None:
    def use(m: Any, x: Any) -> Any:
        L, V = m.linalg.eigh(x, UPLO)
        return L, V.abs() ** 3

    # Of a matrix that is not Hermitian one triangle is read.
    for array in (positive(3, kind=kind), positive(2, 2, kind=kind), matrices(3, 3, kind=kind)):
        same_in_both(torch, use, array)
        same_in_both(torch, lambda m, x: m.linalg.eigvalsh(x, UPLO), array)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1)])
def test_eigenvalues_of_any_matrix_have_pytorchs_gradients(torch: Any, kind: str, shape: Any) -> None:
    def in_order(m: Any, values: Any) -> Any:
        return (values**2).sum(-1), (values**3).sum(-1)

    def use(m: Any, x: Any) -> Any:
        L, V = m.linalg.eig(x)
        return (*in_order(m, L), ((V.abs() ** 4).sum(-2) * L).sum(-1))

    same_in_both(torch, use, matrices(*shape, kind=kind))
    same_in_both(torch, lambda m, x: in_order(m, m.linalg.eigvals(x)), matrices(*shape, kind=kind))


@pytest.mark.parametrize("kind", KINDS)
def test_eigenvectors_satisfy_their_equation(kind: str) -> None:
    A = gs.from_numpy(matrices(2, 4, 4, kind=kind))
    L, V = gs.linalg.eig(A)
    assert L.dtype == V.dtype == (gs.complex64 if kind in ("float32", "complex64") else gs.complex128)
    assert close(A.to(V.dtype) @ V, V * L.unsqueeze(-2))
    H = A + A.mH
    L, V = gs.linalg.eigh(H)
    assert close(H @ V, V * L.unsqueeze(-2))


GAUGED = {
    "svd": lambda m, x: m.linalg.svd(x)[0].real.sum(),
    "svd Vh": lambda m, x: m.linalg.svd(x)[2].imag.sum(),
    "eigh": lambda m, x: m.linalg.eigh(x + x.mH)[1].real.sum(),
    "eig": lambda m, x: m.linalg.eig(x)[1].real.sum(),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", GAUGED)
def test_losses_that_depend_on_phases_are_refused(torch: Any, name: str) -> None:
    array = matrices(3, 3, kind="complex128")
    same_complaint(torch, lambda m: GAUGED[name](m, m.tensor(array, requires_grad=True)).backward())


@pytest.mark.torch
def test_gradients_at_repeated_values_are_not_finite_where_pytorchs_are_not(torch: Any) -> None:
    for name in ("svd", "eigh"):
        found = []
        for m in (gs, torch):
            x = m.eye(2, dtype=m.float64).requires_grad_()
            with numpy.errstate(all="ignore"):
                first = getattr(m.linalg, name)(x)[0 if name == "svd" else 1]
                (first * m.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=m.float64)).sum().backward()
            found.append(numpy.isfinite(x.grad.numpy()))
        assert not found[0].all()
        numpy.testing.assert_array_equal(*found)


@pytest.mark.torch
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("parts", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize(
    "values", [[[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [[1.0, 2.0, 3.0, 4.0], [0.0] * 4], [[0.0] * 3] * 2]
)
def test_gradients_at_singular_values_of_0_have_pytorchs_nan(torch: Any, values: Any, parts: Any, full: bool) -> None:
    def derivatives(m: Any) -> Any:
        x = m.tensor(values, dtype=m.float64, requires_grad=True)
        with numpy.errstate(all="ignore"):
            found = m.linalg.svd(x, full_matrices=full)
            loss = sum((found[i] * m.arange(1.0, 1.0 + found[i].numel()).reshape(found[i].shape)).sum() for i in parts)
            (first,) = m.autograd.grad(loss, x, create_graph=True)
            (second,) = m.autograd.grad(first.sum(), x)
        return [numpy.isnan(g.detach().numpy()).tolist() for g in (first, second)]

    assert derivatives(gs) == derivatives(torch)


@pytest.mark.torch
@pytest.mark.parametrize("values", [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]])
def test_the_second_derivative_of_repeated_eigenvectors_is_refused(torch: Any, values: Any) -> None:
    def second(m: Any) -> None:
        x = m.tensor(values, dtype=m.float64, requires_grad=True)
        (first,) = m.autograd.grad(m.linalg.eig(x)[1].abs().sum(), x, create_graph=True)
        first.sum().backward()

    with numpy.errstate(all="ignore"):
        same_complaint(torch, second)


@pytest.mark.torch
def test_nodes_save_under_pytorchs_names(torch: Any) -> None:
    for name, index in (("svd", 1), ("eigh", 0), ("eig", 1), ("svdvals", None), ("eigvalsh", None), ("eigvals", None)):
        nodes = []
        for m in (gs, torch):
            found = getattr(m.linalg, name)(m.eye(2).requires_grad_())
            nodes.append((found if index is None else found[index]).grad_fn)
        assert nodes[0].name() == nodes[1].name()
        saved = {n for n in dir(nodes[0]) if n.startswith("_saved_")}
        assert {n for n in dir(nodes[1]) if n.startswith("_saved_") and "sym_" not in n} - saved <= {
            "_saved_full_matrices"
        }


@pytest.mark.torch
@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_results_have_pytorchs_names(torch: Any, name: str) -> None:
    found, expected = (getattr(m.linalg, name)(m.eye(2)) for m in (gs, torch))
    assert type(found).__name__ == type(expected).__name__
    for field in found._fields:
        assert getattr(found, field).shape == getattr(expected, field).shape


def test_values_alone_are_those_of_the_decomposition() -> None:
    A = gs.from_numpy(matrices(4, 4))
    assert gs.allclose(gs.linalg.svdvals(A), gs.linalg.svd(A).S)
    assert gs.allclose(gs.linalg.eigvalsh(A, "U"), gs.linalg.eigh(A, "U").eigenvalues)
    assert gs.allclose(gs.linalg.eigvals(A), gs.linalg.eig(A).eigenvalues)
    out = gs.empty(0, dtype=gs.float64)
    assert gs.linalg.svdvals(A, out=out) is out
    assert out.shape == (4,)


@pytest.mark.parametrize(
    "function",
    [
        *(getattr(gs.linalg, name) for name in ("svdvals", "eigvalsh", "eigvals", "svd", "eigh", "qr", "slogdet")),
        lambda x: gs.linalg.lu(x)[1:],
        lambda x: gs.linalg.lstsq(x, gs.ones(3, 1, dtype=x.dtype)).solution,
    ],
)
def test_forward_mode_agrees_with_differences_in_every_output(function: Any) -> None:
    def outputs(x: Any) -> Any:
        found = function(x)
        return [found] if hasattr(found, "shape") else list(found)

    A, direction = (gs.from_numpy(positive(3, seed=seed)) for seed in (0, 1))
    with forward_ad.dual_level():
        found = outputs(forward_ad.make_dual(A, direction))
        tangents = [forward_ad.unpack_dual(output).tangent for output in found]
    step = 1e-6
    for tangent, above, below in zip(
        tangents, outputs(A + step * direction), outputs(A - step * direction), strict=True
    ):
        assert gs.allclose(tangent, (above - below) / (2 * step), rtol=1e-5, atol=1e-7)


def test_what_is_not_finite() -> None:
    nan = gs.tensor([[1.0, 0.0], [0.0, float("nan")]])
    pair = gs.stack([gs.eye(2), gs.full((2, 2), float("inf"))])
    with pytest.raises(LinAlgError, match=r"svd: \(Batch element 1\): The algorithm failed to converge"):
        gs.linalg.svd(gs.stack([gs.eye(2), nan]))
    with pytest.raises(LinAlgError, match="contained non-finite values"):
        gs.linalg.svdvals(nan)
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        gs.linalg.eig(pair)
    values = gs.linalg.eigvalsh(pair)
    assert values[0].tolist() == [1.0, 1.0]
    assert values[1].isnan().all()
    assert gs.linalg.eigh(pair).eigenvectors[1].isnan().all()


def test_eigenvalues_on_a_device_whose_module_has_no_eig(monkeypatch: pytest.MonkeyPatch) -> None:
    array = to_strict(matrices(3, 3))
    expected = gs.linalg.eigvals(gs.from_numpy(matrices(3, 3)))
    monkeypatch.setattr(strict, "linalg", types.SimpleNamespace())
    found = gs.linalg.eigvals(Tensor._wrap(array))
    assert found.device.type == "strict"
    assert gs.allclose(found.cpu(), expected)


def test_truncated_reconstruction_passes_gradcheck_for_complex_numbers() -> None:
    def use(x: Any) -> Any:
        U, S, Vh = gs.linalg.svd(x, full_matrices=False)
        return U[:, :2] * S[:2] @ Vh[:2]

    assert gradcheck(use, (gs.from_numpy(matrices(4, 3, kind="complex128")).requires_grad_(),))


@pytest.mark.torch
def test_the_singular_values_of_an_infinite_matrix_are_nan(torch: Any) -> None:
    values = [[[numpy.inf, 1.0], [2.0, 3.0]], [[1.0, 2.0], [3.0, 4.0]]]
    mine, theirs = (lib.linalg.svdvals(lib.tensor(values)).numpy() for lib in (gs, torch))
    numpy.testing.assert_allclose(mine, theirs, rtol=1e-6)
    U, S, Vh = gs.linalg.svd(gs.tensor(values))
    assert all(part[0].isnan().all() and part[1].isfinite().all() for part in (U, S, Vh))
    assert gs.linalg.matrix_norm(gs.tensor(values[0]), 2).isnan()
    same_complaint(torch, lambda lib: lib.linalg.svdvals(lib.tensor([[float("nan"), 1.0], [2.0, 3.0]])))
