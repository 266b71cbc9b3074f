"""vmap() and stacked modules, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.func.side_by_side import POINT, agree, cubes, plain
from tests.side_by_side import same_complaint

pytestmark = pytest.mark.torch


USES: dict[str, Any] = {
    "vmap": lambda m, x: m.vmap(lambda a: a * a.sum())(m.outer(x, x)),
    "vmap of a grad": lambda m, x: m.vmap(m.func.grad(cubes))(m.outer(x, x)),
    "vmap of a vmap": lambda m, x: m.vmap(m.vmap(lambda a: a.exp()))(m.outer(x, x)),
    "vmap along others": lambda m, x: m.vmap(lambda a, b: (a + b, b), in_dims=(1, None), out_dims=(1, 0))(
        m.outer(x, x)[:2], x[:2]
    ),
    "vmap over a tree": lambda m, x: m.vmap(lambda d, k: {"a": d["a"] * k}, in_dims=({"a": 0}, None))({"a": x}, 3.0),
    "vmap by keyword": lambda m, x: m.vmap(lambda a, *, b: a * b)(x, b=x),
    "jacobian by vmap": lambda m, x: m.vmap(m.func.vjp(m.sin, x)[1])(m.eye(3, dtype=m.float64)),
    "grad through vmap": lambda m, x: m.func.grad(lambda y: m.vmap(lambda a: a**2)(y).sum())(x),
}


@pytest.mark.parametrize("name", USES)
def test_agrees(torch: Any, name: str) -> None:
    agree(torch, USES[name])


REFUSED: dict[str, Any] = {
    "output of vmap": lambda m, x: m.vmap(lambda a: 3.0)(x),
    "sizes": lambda m, x: m.vmap(lambda a, b: a)(x, m.ones(2)),
    "in_dims": lambda m, x: m.vmap(lambda a: a, in_dims=2)(x),
    "no in_dims": lambda m, x: m.vmap(lambda a: a, in_dims="a")(x),
    "a number for vmap": lambda m, x: m.vmap(lambda a: a)(3.0),
    "nothing": lambda m, x: m.vmap(lambda: 1)(),
    "random": lambda m, x: m.vmap(lambda a: m.rand(1))(x),
    "randomness": lambda m, x: m.vmap(lambda a: a, randomness="a")(x),
    "chunk_size": lambda m, x: m.vmap(lambda a: a, chunk_size=0)(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(torch: Any, name: str) -> None:
    same_complaint(torch, lambda m: REFUSED[name](m, m.tensor(POINT)))


def test_gradients_of_each_example(torch: Any) -> None:
    def example_gradients(m: Any) -> Any:
        net = m.nn.Linear(2, 1).double()
        with m.no_grad():
            net.weight.copy_(m.tensor([[0.5, -1.0]]))
            net.bias.copy_(m.tensor([0.25]))
        params = {name: p.detach() for name, p in net.named_parameters()}

        def loss(params: Any, x: Any, y: Any) -> Any:
            return ((m.func.functional_call(net, params, (x,)) - y) ** 2).sum()

        x = m.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]], dtype=m.float64)
        y = m.tensor([[1.0], [0.0], [2.0]], dtype=m.float64)
        return m.vmap(m.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)

    assert plain(example_gradients(gs)) == plain(example_gradients(torch))


def test_modules_side_by_side(torch: Any) -> None:
    for m in (gs, torch):
        models = [m.nn.Linear(2, 1) for _ in range(3)]
        params, buffers = m.func.stack_module_state(models)
        assert params["weight"].requires_grad
        assert params["weight"].is_leaf
        assert buffers == {}

        def run(params: Any, x: Any, m: Any = m, models: Any = models) -> Any:
            return m.func.functional_call(models[0], params, (x,))

        found = m.vmap(run, in_dims=(0, None))(params, m.ones(2))
        expected = [model(m.ones(2)).tolist() for model in models]
        numpy.testing.assert_allclose(found.tolist(), expected, rtol=1e-6)


def test_random_numbers_under_vmap() -> None:
    x = gs.ones(3)
    same = gs.vmap(lambda a: a * gs.rand(()), randomness="same")(x).tolist()
    different = gs.vmap(lambda a: a * gs.rand(()), randomness="different")(x).tolist()
    assert len(set(same)) == 1
    assert len(set(different)) == 3


def test_a_random_number_that_only_a_later_call_draws_is_refused_too() -> None:
    x = gs.tensor([0.0, 1.0])
    with pytest.raises(RuntimeError, match="randomness error mode"):
        gs.vmap(lambda a: a + gs.rand(()) if a > 0 else a)(x)


def test_vmap_may_branch_on_values() -> None:
    assert gs.vmap(lambda a: a if a > 1 else -a)(gs.tensor([1.0, 2.0])).tolist() == [-1.0, 2.0]
    with pytest.raises(RuntimeError, match="there are no parts"):
        gs.vmap(lambda a: a)(gs.ones(0, 2))
