"""vjp, jvp, vhp, hvp, jacobian and hessian; as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import functional
from tests.autograd.compare import Programs, plain

program = Programs()

Function = Callable[..., Any]


def point(m: Any, *shape: int, requires_grad: bool = False) -> Any:
    """Return 1, 2, 3 ... in a shape."""
    count = int(numpy.prod(shape))
    return (m.arange(1.0, count + 1, dtype=m.float64).reshape(shape)).requires_grad_(requires_grad)


# --- against PyTorch, case by case ------------------------------------------------------------------------------------

VECTOR_FUNCTIONS: dict[str, Callable[[Any], tuple[Function, Any, Any]]] = {
    "rows": lambda m: (lambda x: x.exp().sum(1), point(m, 2, 2), point(m, 2)),
    "two inputs, two outputs": lambda m: (
        lambda x, y: (x @ y, (x * y).sum()),
        (point(m, 2, 2), point(m, 2)),
        (point(m, 2), point(m)),
    ),
    "linear": lambda m: (lambda x: 2 * x, point(m, 2, requires_grad=True), point(m, 2)),
    "no vector": lambda m: (lambda x: (x * x).sum(), point(m, 2, requires_grad=True), None),
    "constant": lambda m: (lambda x: point(m, 2), point(m, 2), point(m, 2)),
    "unused input": lambda m: (lambda x, y: x * 2, (point(m, 2), point(m, 2)), point(m, 2)),
    "number": lambda m: (lambda x: x**3, point(m), None),
    "list": lambda m: (lambda x: [x], point(m, 2), point(m, 2)),
    "detached": lambda m: (lambda x: x.detach() * 2, point(m, 2), point(m, 2)),
    "product": lambda m: (lambda x: x.prod() * x, point(m, 2, requires_grad=True), point(m, 2)),
    "longer v": lambda m: (lambda x: x * 2, point(m, 2), (point(m, 2), point(m, 2))),
    "shorter v": lambda m: (lambda x, y: (x * y, y), (point(m, 2), point(m, 2)), point(m, 2)),
    "v of another shape": lambda m: (lambda x: x * 2, point(m, 2), point(m, 1)),
    "v no tensor": lambda m: (lambda x: x * 2, point(m, 2), 3),
    "list of inputs": lambda m: (lambda x: x * 2, [point(m, 2)], point(m, 2)),
    "number among inputs": lambda m: (lambda x, y: x * y, (point(m, 2), 3), point(m, 2)),
    "number as output": lambda m: (lambda x: 3, point(m, 2), point(m, 2)),
}

SCALAR_FUNCTIONS: dict[str, Callable[[Any], tuple[Function, Any]]] = {
    "cubes": lambda m: (lambda x: x.pow(3).sum(), point(m, 2, 2)),
    "two inputs": lambda m: (lambda x, y: (2 * x.pow(2) * y + 3 * y.pow(2)).sum(), (point(m, 2, 2), point(m, 2))),
    "exp": lambda m: (lambda x: x.exp().sum(), point(m, 2, requires_grad=True)),
    "quadratic": lambda m: (lambda x: (x**2).sum(), point(m, 2, requires_grad=True)),
    "linear": lambda m: (lambda x: x.sum(), point(m, 2)),
    "vector": lambda m: (lambda x: x * 2, point(m, 2)),
    "tuple": lambda m: (lambda x: (x.sum(),), point(m, 2)),
    "unused input": lambda m: (lambda x, y: (x**2).sum(), (point(m, 2), point(m, 2))),
    "number": lambda m: (lambda x: x**3, point(m)),
    "one element": lambda m: (lambda x: (x**3).sum().reshape(1, 1), point(m, 2)),
}


def facts(value: Any) -> Any:
    """Return values, shapes and whether they are recorded."""
    if isinstance(value, (tuple, list)):
        return [facts(item) for item in value]
    return [plain(value), list(value.shape), value.requires_grad]


def outcome(m: Any, run: Callable[[Any], Any]) -> Any:
    """Return the facts of a result, or class and first line of an error."""
    try:
        return facts(run(m.autograd.functional))
    except (RuntimeError, TypeError) as error:
        kind = next(base for base in (TypeError, RuntimeError) if isinstance(error, base))
        line = str(error).splitlines()[0].replace("gradscope", "torch").replace(".runtime.tensor", "")
        return [kind.__name__, line]


@pytest.mark.torch
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", VECTOR_FUNCTIONS)
def test_vector_functions_in_torch(name, create_graph, strict, torch):
    options = {"create_graph": create_graph, "strict": strict}

    def run(m: Any, product: str) -> Any:
        function, inputs, v = VECTOR_FUNCTIONS[name](m)
        if product == "jacobian":
            return outcome(m, lambda f: f.jacobian(function, inputs, **options))
        vector = v if product == "vjp" or v is None or not isinstance(v, m.Tensor) else inputs
        return outcome(m, lambda f: getattr(f, product)(function, inputs, vector, **options))

    for product in ("vjp", "jvp", "jacobian"):
        assert run(gs, product) == run(torch, product), product


@pytest.mark.torch
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_scalar_functions_in_torch(name, create_graph, strict, torch):
    options = {"create_graph": create_graph, "strict": strict}

    def run(m: Any, product: str, *, given: bool) -> Any:
        function, inputs = SCALAR_FUNCTIONS[name](m)
        if product == "hessian":
            return outcome(m, lambda f: f.hessian(function, inputs, **options))
        return outcome(m, lambda f: getattr(f, product)(function, inputs, inputs if given else None, **options))

    for product in ("vhp", "hvp", "hessian"):
        for given in (True, False):
            assert run(gs, product, given=given) == run(torch, product, given=given), product


# --- programs ---------------------------------------------------------------------------------------------------------


@program(returns=[[[5.7, [3.0, 4.0]], [25.0, [6.0, 8.0]]], [25.0, 10.0]])
def vector_products(m):
    x = m.tensor([3.0, 4.0])
    f = m.autograd.functional
    vjp = f.vjp(lambda x: (x * x).sum().sqrt() + 0.7, x, m.tensor(5.0))
    doubled = f.vjp(lambda x: (x * x).sum(), x)
    return [[vjp, doubled], f.jvp(lambda x: (x * x).sum(), x, m.tensor([1.0, 0.5]))]


@program(returns=[[9.0, [6.0, 0.0]], [9.0, [6.0, 0.0]], [[6.0, 0.0], [0.0, 12.0]]])
def hessian_products(m):
    x, v = m.tensor([1.0, 2.0]), m.tensor([1.0, 0.0])
    f = m.autograd.functional
    cubes = [lambda x: (x**3).sum(), x]
    return [f.vhp(*cubes, v), f.hvp(*cubes, v), f.hessian(*cubes)]


@program(returns=[[[3.0, 0.0], [0.0, 3.0]], [1.0, 2.0]])
def a_jacobian_for_each_input(m):
    return m.autograd.functional.jacobian(lambda x, y: x * y, (m.tensor([1.0, 2.0]), m.tensor(3.0)))


@program(returns=[[6.0, 12.0], [24.0, 96.0]])
def what_is_recorded_can_be_differentiated(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    f = m.autograd.functional
    slopes = f.jacobian(lambda x: x**3, x, create_graph=True).sum()
    product = f.hvp(lambda x: (x**4).sum(), x, x.detach(), create_graph=True)[1].sum()
    return [m.autograd.grad(slopes, x)[0], m.autograd.grad(product, x)[0]]


@program(returns=[[[2.0, 0.0], [0.0, 4.0]], [[2.0, 0.0], [0.0, 2.0]], [2.0, 8.0], False])
def under_no_grad(m):
    x = m.tensor([1.0, 2.0])
    f = m.autograd.functional
    with m.no_grad():
        jacobian = f.jacobian(lambda x: x * x, x)
        hessian = f.hessian(lambda x: (x * x).sum(), x)
        _, product = f.jvp(lambda x: x * x, x, x)
    return [jacobian, hessian, product, product.requires_grad]


@program(returns=[None, False])
def the_arguments_are_left_alone(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    result = m.autograd.functional.jacobian(lambda x: x * x, x)
    return [x.grad, result.requires_grad]


@program(raises=(RuntimeError, "grad can be implicitly created only for real scalar outputs"))
def a_complex_jacobian(m):
    m.autograd.functional.jacobian(lambda z: z * z, m.tensor([1.0 + 2.0j]))


@program(returns=[2.0, 4.0])
def a_complex_product(m):
    one = m.tensor([1.0 + 0.0j])
    _, slope = m.autograd.functional.jvp(lambda z: z * z, m.tensor([1.0 + 2.0j]), one)
    return [float(slope.real[0]), float(slope.imag[0])]


@program(raises=(AssertionError, 'Expected strategy to be either "forward-mode" or "reverse-mode"'))
def an_unknown_strategy(m):
    m.autograd.functional.jacobian(lambda x: x, m.ones(2), strategy="sideways")


@program(raises=(RuntimeError, "`strict=True`"))
def strict_forward_mode(m):
    m.autograd.functional.jacobian(lambda x: x, m.ones(2), strict=True, vectorize=True, strategy="forward-mode")


@program(raises=(RuntimeError, "`strict=True`"))
def strict_vectorized(m):
    m.autograd.functional.jacobian(lambda x: x, m.ones(2), strict=True, vectorize=True)


@program(raises=(RuntimeError, "only Tensors of floating point"))
def integer_inputs(m):
    m.autograd.functional.jacobian(lambda x: x, m.tensor([1, 2]))


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)


# --- forward mode -----------------------------------------------------------------------------------------------------


def values(result: Any) -> Any:
    """Return values and shapes."""
    if isinstance(result, tuple):
        return [values(item) for item in result]
    return [plain(result), list(result.shape)]


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("name", ["rows", "two inputs, two outputs", "linear", "constant", "unused input", "product"])
def test_the_strategies_agree(name, vectorize):
    function, inputs, _ = VECTOR_FUNCTIONS[name](gs)
    expected = values(functional.jacobian(function, inputs))
    assert values(functional.jacobian(function, inputs, vectorize=vectorize, strategy="forward-mode")) == expected
    assert values(functional.jacobian(function, inputs, vectorize=vectorize)) == expected


@pytest.mark.parametrize("name", ["cubes", "two inputs", "exp", "unused input", "number", "one element"])
def test_the_strategies_agree_on_hessians(name):
    function, inputs = SCALAR_FUNCTIONS[name](gs)
    expected = values(functional.hessian(function, inputs))
    found = functional.hessian(function, inputs, outer_jacobian_strategy="forward-mode")
    assert values(found) == expected


def test_a_forward_mode_jacobian_can_be_recorded():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    options = {"create_graph": True, "strategy": "forward-mode"}
    slopes = functional.jacobian(lambda x: x**3, x, **options)
    assert gs.autograd.grad(slopes.sum(), x)[0].tolist() == [6.0, 12.0]
    assert not functional.jacobian(lambda x: x**3, x, strategy="forward-mode").requires_grad


def test_the_dtype_of_a_jacobian():
    def function(x: Any) -> Any:
        return x.double() * 2

    x = gs.ones(2)
    assert functional.jacobian(function, x).dtype is gs.float32
    assert functional.jacobian(function, x, strategy="forward-mode").dtype is gs.float64


@pytest.mark.parametrize("strategy", functional.STRATEGIES)
def test_empty_tensors(strategy):
    empty = gs.zeros(0, 3)
    assert tuple(functional.jacobian(lambda x: x * 2, empty, strategy=strategy).shape) == (0, 3, 0, 3)
    assert tuple(functional.jacobian(lambda x: x.sum(1), empty, strategy=strategy).shape) == (0, 0, 3)
    assert tuple(functional.jacobian(lambda x: x[:0], gs.ones(2), strategy=strategy).shape) == (0, 2)


def test_the_names_of_the_module():
    assert gs.autograd.functional is functional
    assert all(hasattr(functional, name) for name in functional.__all__)
