"""jacrev(), jacfwd() and hessian(), beside PyTorch's: layout, order, what they refuse."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

import gradscope as gs
from tests.func.side_by_side import POINT, agree, cubes
from tests.side_by_side import same_complaint

pytestmark = pytest.mark.torch


USES: dict[str, Any] = {
    "jacrev": lambda m, x: m.func.jacrev(lambda a: (a**2, {"sum": a.sum()}))(x),
    "jacfwd": lambda m, x: m.func.jacfwd(lambda a: (a**2, {"sum": a.sum()}))(x),
    "jacrev by two": lambda m, x: m.func.jacrev(lambda a, b: m.outer(a, b), argnums=(0, 1))(x, x.cos()[:2]),
    "jacfwd by two": lambda m, x: m.func.jacfwd(lambda a, b: m.outer(a, b), argnums=(0, 1))(x, x.cos()[:2]),
    "jacrev by a dict": lambda m, x: m.func.jacrev(lambda d: d["a"] * 2)({"a": x}),
    "jacfwd by a dict": lambda m, x: m.func.jacfwd(lambda d: d["a"] * 2)({"a": x}),
    "jacrev with aux": lambda m, x: m.func.jacrev(lambda a: (a * a, a), has_aux=True)(x),
    "jacfwd with aux": lambda m, x: m.func.jacfwd(lambda a: (a * a, a), has_aux=True)(x),
    "hessian": lambda m, x: m.func.hessian(cubes)(x),
    "hessian by two": lambda m, x: m.func.hessian(lambda a, b: (a * b).sin().sum(), argnums=(0, 1))(x, x),
    "jacfwd of a jacfwd": lambda m, x: m.func.jacfwd(m.func.jacfwd(cubes))(x),
    "jacrev of a jacfwd": lambda m, x: m.func.jacrev(m.func.jacfwd(cubes))(x),
    "jacrev of a jacrev": lambda m, x: m.func.jacrev(m.func.jacrev(m.sin))(x),
}


@pytest.mark.parametrize("name", USES)
def test_agrees(torch: Any, name: str) -> None:
    agree(torch, USES[name])


REFUSED: dict[str, Any] = {
    "chunks": lambda m, x: m.func.jacrev(m.sin, chunk_size=0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(torch: Any, name: str) -> None:
    same_complaint(torch, lambda m: REFUSED[name](m, m.tensor(POINT)))


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_of_and_by_what_lies_transposed(torch: Any, name: str) -> None:
    def use(m: Any, x: Any) -> Any:
        jacobian = getattr(m.func, name)
        transposed = m.stack([x, x**2]).T
        return jacobian(lambda y: y.T * y.sum())(transposed), jacobian(lambda y: y.T * 2)(transposed.T.clone())

    agree(torch, use)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_by_a_dict_with_a_default(torch: Any, name: str) -> None:
    def use(m: Any, x: Any) -> Any:
        found = getattr(m.func, name)(lambda d: d["a"] * d["b"].sum())(defaultdict(list, a=x, b=x**2))
        assert type(found) is defaultdict
        assert found["other"] == []
        return dict(list(found.items())[:2])

    agree(torch, use)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_are_of_real_tensors(torch: Any, name: str) -> None:
    for m in (gs, torch):
        with pytest.raises(RuntimeError, match=f"{name}: Expected all inputs to be real"):
            getattr(m.func, name)(lambda y: y * y)(m.tensor([1j]))
        with pytest.raises(RuntimeError, match=f"{name}: Expected all outputs to be real"):
            getattr(m.func, name)(lambda y: y * 1j)(m.tensor([1.0]))


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_a_jacobian_by_nothing(name: str) -> None:
    jacobian, also = getattr(gs.func, name)(lambda y: (y.sum() * gs.ones(3), 7), has_aux=True)(gs.zeros(2, 0))
    assert (jacobian.shape, also) == ((3, 2, 0), 7)


def test_the_basis_of_transposed_points(torch: Any) -> None:
    def use(m: Any, x: Any) -> Any:
        points = m.stack([x, x**2]).T
        return m.autograd.functional.jacobian(lambda y: y.T * y.sum(), points, strategy="forward-mode", vectorize=True)

    agree(torch, use)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_come_in_the_order_of_argnums(torch: Any, name: str) -> None:
    agree(torch, lambda m, x: getattr(m.func, name)(lambda a, b: a * b.sum(), argnums=(1, 0))(x, x**2))
