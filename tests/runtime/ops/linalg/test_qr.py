"""QR factors and Householder reflections."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.matrix_cases import matrices, same_in_both
from tests.side_by_side import same_complaint

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2), (2, 0)]


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_and_gradients_are_pytorchs(torch: Any, kind: str, shape: Any) -> None:
    array = matrices(*shape, kind=kind)
    for part in (slice(None), slice(0, 1), slice(1, 2)):
        same_in_both(torch, lambda m, x, part=part: tuple(m.linalg.qr(x))[part], array)
    if shape[-2] <= shape[-1]:
        same_in_both(torch, lambda m, x: tuple(m.linalg.qr(x, "complete")), array)


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_modes_have_pytorchs_results_and_nodes(torch: Any, mode: str) -> None:
    for shape in SHAPES:
        array = matrices(*shape)
        same_in_both(torch, lambda m, x: [p.detach() for p in m.linalg.qr(x, mode)], array)
    found, expected = (m.linalg.qr(m.ones(2, 2).requires_grad_(), mode) for m in (gs, torch))
    assert type(found).__name__ == type(expected).__name__
    assert found._fields == ("Q", "R")
    assert found.R.grad_fn.name() == expected.R.grad_fn.name()
    assert found.R.output_nr == expected.R.output_nr == 1
    assert found.R.grad_fn._saved_mode == mode


REFUSED = {
    "complete": lambda m: m.linalg.qr(m.ones(3, 2).requires_grad_(), "complete")[0].sum().backward(),
    "r": lambda m: m.linalg.qr(m.ones(3, 2).requires_grad_(), "r")[1].sum().backward(),
    "mode": lambda m: m.linalg.qr(m.ones(3, 2), "x"),
    "geqrf": lambda m: m.geqrf(m.ones(3, 2).requires_grad_())[0].sum().backward(),
    "geqrf of a vector": lambda m: m.geqrf(m.ones(3)),
    "householder wide": lambda m: m.linalg.householder_product(m.ones(2, 3), m.ones(2)),
    "householder factors": lambda m: m.linalg.householder_product(m.ones(3, 2), m.ones(3)),
    "householder batch": lambda m: m.linalg.householder_product(m.ones(2, 3, 2), m.ones(3, 2)),
    "householder dtype": lambda m: m.linalg.householder_product(m.ones(3, 2), m.ones(2).double()),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_pytorchs(torch: Any, name: str) -> None:
    same_complaint(torch, REFUSED[name])


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_reflections_multiply_to_q(torch: Any, kind: str) -> None:
    A = gs.from_numpy(matrices(2, 4, 3, kind=kind))
    a, tau = gs.geqrf(A)
    Q, R = gs.linalg.qr(A)
    assert gs.allclose(gs.linalg.householder_product(a, tau), Q)
    assert gs.allclose(a.triu()[..., :3, :], R)
    same_in_both(torch, lambda m, x: tuple(m.geqrf(x.detach())), A.numpy())
    same_in_both(torch, lambda m, x, t: m.orgqr(x, t), A.numpy(), tau.numpy())
