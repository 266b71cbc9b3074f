"""gs.func beside torch.func: values, forms, nesting, and what keeps its history."""

from __future__ import annotations

import doctest
import sys
from collections import defaultdict, namedtuple
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

pytest.importorskip("torch", reason="compares with PyTorch")
pytestmark = pytest.mark.torch

POINT = [0.5, 1.5, -2.0]
Pair = namedtuple("Pair", "first second")


def plain(value: Any) -> Any:
    """Return a tree of tensors of either library as lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.detach().numpy().tolist() if hasattr(value, "detach") else value


def agree(torch: Any, use: Any) -> None:
    found, expected = (plain(use(m, m.tensor(POINT, dtype=m.float64))) for m in (gs, torch))
    flat_found, flat_expected = (numpy.array(flat(x)) for x in (found, expected))
    assert shape_of(found) == shape_of(expected)
    numpy.testing.assert_allclose(flat_found, flat_expected, rtol=1e-9, atol=1e-12)


def flat(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [x for item in value.values() for x in flat(item)]
    return [x for item in value for x in flat(item)] if isinstance(value, list) else [float(value)]


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    return [shape_of(item) for item in value] if isinstance(value, list) else ()


def cubes(x: Any) -> Any:
    return (x**3).sum() + x.prod()


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
    "chunks": lambda m, x: m.func.jacrev(m.sin, chunk_size=0),
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


def test_vmap_may_branch_on_values() -> None:
    assert gs.vmap(lambda a: a if a > 1 else -a)(gs.tensor([1.0, 2.0])).tolist() == [-1.0, 2.0]
    with pytest.raises(RuntimeError, match="there are no parts"):
        gs.vmap(lambda a: a)(gs.ones(0, 2))


def test_the_names_of_the_package(torch: Any) -> None:
    missing = {name for name in dir(torch.func) if not name.startswith("_")} - set(dir(gs.func))
    assert missing == {"debug_unwrap", "functionalize", "rearrange", "replace_all_batch_norm_modules_"}
    assert gs.vmap is gs.func.vmap


def test_the_examples_of_its_documentation() -> None:
    homes = {sys.modules[getattr(gs.func, name).__module__] for name in gs.func.__all__} | {gs.func}
    assert sum(doctest.testmod(home).attempted for home in homes) > 20
    assert [home for home in homes if doctest.testmod(home).failed] == []


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


def test_cotangents_have_the_keys_of_the_output_in_its_order() -> None:
    _, vjp_fn = gs.func.vjp(lambda x: {"a": x, "b": x * 2}, gs.ones(2))
    assert vjp_fn({"a": gs.ones(2), "b": gs.zeros(2)})[0].tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError):
        vjp_fn({"b": gs.zeros(2), "a": gs.ones(2)})
