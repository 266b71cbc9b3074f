"""grad(), vjp(), jvp() and linearize(), beside PyTorch's: nesting, and what keeps its history."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

import gradscope as gs
from tests.func.side_by_side import POINT, agree, cubes, plain
from tests.side_by_side import same_complaint

pytestmark = pytest.mark.torch


USES: dict[str, Any] = {
    "grad": lambda m, x: m.func.grad(cubes)(x),
    "grad of a grad": lambda m, x: m.func.grad(lambda y: m.func.grad(cubes)(y).sin().sum())(x),
    "three times": lambda m, x: m.func.grad(m.func.grad(m.func.grad(lambda y: y.sin() * y**4)))(x[1]),
    "argnums": lambda m, x: m.func.grad(lambda a, b: (a * a * b).sum(), argnums=(1, 0))(x, x.sin()),
    "a negative argnum": lambda m, x: m.func.grad(lambda a, b: (a * a * b).sum(), argnums=-1)(x, x.sin()),
    "keywords": lambda m, x: m.func.grad(lambda a, *, b: (a * a * b).sum())(x, b=x.sin()),
    "a dict": lambda m, x: m.func.grad(lambda d: (d["a"] * d["b"][0] ** 2).sum())({"a": x, "b": [x.cos()]}),
    "a named tuple": lambda m, x: m.func.grad(lambda p: (p.first * p.second**2).sum())(Pair(x, x.cos())),
    "nothing depends on it": lambda m, x: m.func.grad(lambda a: m.ones(()))(x),
    "aux": lambda m, x: m.func.grad(lambda a: ((a * a).sum(), {"twice": a * 2}), has_aux=True)(x),
    "grad_and_value": lambda m, x: m.func.grad_and_value(cubes)(x),
    "grad_and_value with aux": lambda m, x: m.func.grad_and_value(lambda a: ((a * a).sum(), a), has_aux=True)(x),
    "vjp": lambda m, x: m.func.vjp(m.sin, x)[1](x),
    "vjp's value": lambda m, x: m.func.vjp(m.sin, x)[0],
    "vjp of two": lambda m, x: m.func.vjp(lambda a, b: (a * b, b.sum()), x, x.cos())[1]((x, x.sum())),
    "vjp with aux": lambda m, x: m.func.vjp(lambda a: (a * a, a.exp()), x, has_aux=True)[2],
    "vjp twice": lambda m, x: [(f := m.func.vjp(lambda a: a**3, x)[1])(x), f(x * 2)],
    "grad of a vjp": lambda m, x: m.func.grad(lambda y: m.func.vjp(m.sin, y)[1](y)[0].sum())(x),
    "jvp": lambda m, x: m.func.jvp(m.sin, (x,), (x.cos(),)),
    "jvp of a dict": lambda m, x: m.func.jvp(lambda d: {"out": d["a"] ** 2}, ({"a": x},), ({"a": x.cos()},)),
    "jvp with aux": lambda m, x: m.func.jvp(lambda a: (a * a, a.exp()), (x,), (x,), has_aux=True),
    "jvp of nothing": lambda m, x: m.func.jvp(lambda a: m.ones(2), (x,), (x,)),
    "jvp of a jvp": lambda m, x: m.func.jvp(
        lambda y: m.func.jvp(lambda z: z**3 * y.sin(), (y,), (y.cos(),))[1], (x,), (x,)
    ),
    "jvp of a grad": lambda m, x: m.func.jvp(m.func.grad(cubes), (x,), (x.cos(),)),
    "grad of a jvp": lambda m, x: m.func.grad(lambda y: m.func.jvp(m.sin, (y,), (y,))[1].sum())(x),
    "linearize": lambda m, x: m.func.linearize(m.sin, x)[1](x),
}


@pytest.mark.filterwarnings("ignore:Attempt:UserWarning")  # PyTorch traces linearize()
@pytest.mark.parametrize("name", USES)
def test_agrees(torch: Any, name: str) -> None:
    agree(torch, USES[name])


REFUSED: dict[str, Any] = {
    "no scalar": lambda m, x: m.func.grad(lambda a: a)(x),
    "no tensor": lambda m, x: m.func.grad(lambda a: 3.0)(x),
    "no such argument": lambda m, x: m.func.grad(cubes, argnums=1)(x),
    "a number": lambda m, x: m.func.grad(lambda a: a)(3.0),
    "no pair": lambda m, x: m.func.grad(lambda a: a.sum(), has_aux=True)(x),
    "another shape": lambda m, x: m.func.vjp(m.sin, x)[1](m.ones(2)),
    "output of vjp": lambda m, x: m.func.vjp(lambda a: 3.0, x),
    "primals of jvp": lambda m, x: m.func.jvp(m.sin, x, (x,)),
    "tangents of jvp": lambda m, x: m.func.jvp(m.sin, (x,), (m.ones(2),)),
    "strict jvp": lambda m, x: m.func.jvp(lambda a: m.ones(1), (x,), (x,), strict=True),
    "output of jvp": lambda m, x: m.func.jvp(lambda a: 3.0, (x,), (x,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(torch: Any, name: str) -> None:
    same_complaint(torch, lambda m: REFUSED[name](m, m.tensor(POINT)))


Pair = namedtuple("Pair", "first second")


def test_history_that_leads_elsewhere_is_kept(torch: Any) -> None:
    def check(m: Any) -> None:
        w = m.tensor(POINT, requires_grad=True)
        x = m.tensor([1.0, 2.0, 3.0])
        assert not m.func.grad(lambda a: (a * a).sum())(x).requires_grad
        by_weight = m.func.grad(lambda a: (a * a * w).sum())(x)
        by_weight.sum().backward()
        assert w.grad.tolist() == [2.0, 4.0, 6.0]
        again = m.func.grad(lambda a: (a**3).sum())(w)
        assert m.autograd.grad(again.sum(), w)[0].tolist() == [6 * v for v in POINT]
        with m.no_grad():
            assert not m.func.grad(lambda a: (a * a * w).sum())(x).requires_grad
            assert m.func.grad(lambda a: (a * a).sum())(w).tolist() == [2 * v for v in POINT]
        assert x.grad is None
        assert not x.requires_grad

    check(gs)
    check(torch)


def test_nested_forward_products_have_no_history_of_their_own(torch: Any) -> None:
    for m in (gs, torch):
        x, one = m.tensor(2.0), m.ones(())

        def inner(x: Any, m: Any = m, one: Any = one) -> Any:
            return m.func.jvp(lambda y: y**3, (x,), (one,))

        values = m.func.jvp(inner, (x,), (one,))
        assert plain(values) == [[8.0, 12.0], [12.0, 12.0]]
        assert not any(v.requires_grad for pair in values for v in pair)


def test_nested_forward_products_keep_the_history_of_what_the_caller_has(torch: Any) -> None:
    for m in (gs, torch):
        x, one, weight = m.tensor(2.0), m.ones(()), m.tensor(3.0, requires_grad=True)

        def inner(x: Any, m: Any = m, one: Any = one, weight: Any = weight) -> Any:
            return m.func.jvp(lambda y: weight * y**3, (x,), (one,))[1]

        m.autograd.backward(m.func.jvp(inner, (x,), (one,)))
        assert weight.grad.item() == 24.0


def test_cotangents_have_the_keys_of_the_output_in_its_order() -> None:
    _, vjp_fn = gs.func.vjp(lambda x: {"a": x, "b": x * 2}, gs.ones(2))
    assert vjp_fn({"a": gs.ones(2), "b": gs.zeros(2)})[0].tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError):
        vjp_fn({"b": gs.zeros(2), "a": gs.ones(2)})
