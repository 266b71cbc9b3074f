"""Functions of matrices under the names that were there before torch.linalg."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.matrix_cases import matrices, positive, same_in_both
from tests.side_by_side import same_complaint

# PyTorch advises the newer forms.
pytestmark = pytest.mark.filterwarnings("ignore:torch.[a-z_]+ is deprecated")


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("some", [True, False])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 2, 3)])
def test_decompositions_are_pytorchs(torch: Any, kind: str, some: bool, shape: Any) -> None:
    array = matrices(*shape, kind=kind)

    def svd(m: Any, x: Any) -> Any:
        U, S, V = m.svd(x, some)
        return U[..., :1] @ V[..., :1].mH, S, m.zeros(V.shape)

    same_in_both(torch, svd, array)
    same_in_both(torch, lambda m, x: [p.detach() for p in x.qr(some)], array)
    same_in_both(torch, lambda m, x: x.svd(compute_uv=False)[1], array)
    U, _, V = gs.svd(gs.from_numpy(array), compute_uv=False)
    assert (U.shape[-2:], V.shape[-2:]) == ((shape[-2],) * 2, (shape[-1],) * 2)
    assert U.abs().sum() == V.abs().sum() == 0


@pytest.mark.torch
def test_lu_is_pytorchs(torch: Any) -> None:
    A, B = positive(2, 3), matrices(2, 3, 2)
    same_in_both(torch, lambda m, a: a.lu(), A)
    same_in_both(torch, lambda m, a: a.lu(get_infos=True), A)
    same_in_both(torch, lambda m, a, b: b.lu_solve(*m.linalg.lu_factor(a)), A, B)
    same_in_both(torch, lambda m, a: m.lu_unpack(*a.lu(), unpack_pivots=False), A)
    same_in_both(torch, lambda m, a: m.lu_unpack(*a.lu(), unpack_data=False), A)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", ["cholesky", "svd", "qr", "pinverse", "matrix_exp", "logdet", "slogdet", "geqrf", "cholesky_inverse"]
)
def test_methods_are_there_with_pytorchs_node(torch: Any, name: str) -> None:
    found, expected = (getattr(m.tensor(positive(2), requires_grad=True), name)() for m in (gs, torch))
    if isinstance(expected, tuple):
        assert type(found).__name__ == type(expected).__name__
        assert [o.grad_fn.name() for o in found] == [o.grad_fn.name() for o in expected]
        return
    assert found.grad_fn.name() == expected.grad_fn.name()


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_reflections_are_pytorchs(torch: Any, kind: str, left: bool, transpose: bool) -> None:
    a, tau = gs.geqrf(gs.from_numpy(matrices(4, 2, kind=kind)))
    C = matrices(*((4, 3) if left else (3, 4)), kind=kind, seed=1)
    same_in_both(torch, lambda m, v, t, c: m.ormqr(v, t, c, left, transpose), a.numpy(), tau.numpy(), C)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("transpose", [True, False])
def test_triangular_solutions_are_pytorchs(torch: Any, kind: str, transpose: bool) -> None:
    A, B = matrices(3, 3, kind=kind), matrices(2, 3, 2, kind=kind, seed=1)
    for upper in (True, False):
        same_in_both(torch, lambda m, a, b, up=upper: m.triangular_solve(b, a, up, transpose), A, B)


@pytest.mark.torch
def test_norms_of_singular_values_by_their_old_name(torch: Any) -> None:
    same_in_both(torch, lambda m, x: m.norm(x, "nuc"), matrices(3, 2))
    same_in_both(torch, lambda m, x: x.norm("nuc", dim=(0, 2), keepdim=True), matrices(3, 2, 2))


REFUSED = {
    "norm": lambda m: m.norm(m.ones(2), "nuc"),
    "norm name": lambda m: m.norm(m.ones(2, 2), "x"),
    "ormqr sizes": lambda m: m.ormqr(m.ones(3, 2), m.ones(2), m.ones(2, 2)),
    "ormqr vector": lambda m: m.ormqr(m.ones(3), m.ones(2), m.ones(2, 2)),
    "ormqr count": lambda m: m.ormqr(m.ones(3, 2), m.ones(1), m.ones(3, 2)),
    "ormqr dtype": lambda m: m.ormqr(m.ones(3, 2), m.ones(2).double(), m.ones(3, 2)),
    "triangular_solve sizes": lambda m: m.triangular_solve(m.ones(3, 2), m.ones(2, 2)),
    "triangular_solve vector": lambda m: m.triangular_solve(m.ones(2), m.ones(2, 2)),
    "triangular_solve dtype": lambda m: m.triangular_solve(m.ones(2, 2), m.ones(2, 2).double()),
    "svd": lambda m: m.svd(m.ones(2)),
    "qr": lambda m: m.qr(m.ones(2)),
    "pinverse": lambda m: m.pinverse(m.ones(2)),
    "cholesky": lambda m: m.cholesky(-m.eye(2)),
    "lu_unpack": lambda m: m.lu_unpack(m.eye(2), m.ones(2, dtype=m.int64)),
    "vander": lambda m: m.vander(m.ones(2, 2)),
    "vander N": lambda m: m.vander(m.ones(2), -1),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_pytorchs(torch: Any, name: str) -> None:
    same_complaint(torch, REFUSED[name])
