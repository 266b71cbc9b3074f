"""Dtypes that are looked up by pairs are those that the general way finds, for every operator, pair and rank."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.dispatch import OPERATORS
from gradscope.runtime.memory.dtype import ALL_DTYPES
from gradscope.runtime.ops.execution import general
from gradscope.runtime.ops.execution.bare_functions import CONSTANTS
from gradscope.runtime.ops.execution.codegen.calls import is_simple
from gradscope.runtime.ops.execution.codegen.compiling import literal
from gradscope.runtime.ops.execution.promotion import common_dtype, number_dtype

BINARY = [
    name
    for name, op in OPERATORS.items()
    if op.promote
    and is_simple(op)
    and len(op.tensors) == 2
    and not op.draws
    and name != "div.mode"
    and not op.family.endswith("orthogonal_polynomials")  # a degree of 2**40 takes its time
]
INTEGRAL = [kind for kind in ALL_DTYPES if kind.kind in "iub"]
NUMBERS = [0, 3, -2, 2.5, 0.0, -0.0, 300, 2**40, 2**70, 1e300, True, float("inf")]


def operand(kind: Any, shape: tuple[int, ...], numbers: Any) -> gs.Tensor:
    values = gs.tensor(numpy.asarray(numbers[: int(numpy.prod(shape))]).reshape(shape).tolist()).to(kind)
    return values.requires_grad_(kind.is_floating_point or kind.is_complex)


def outcome(function: Any, *arguments: Any) -> tuple[Any, ...]:
    """Return all that two results, or two complaints, have in common if they are the same."""
    try:
        result = function(*arguments)
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    node = result.grad_fn
    recorded = node if node is None else (node.name(), len(node.next_functions), node.shape, node.dtype)
    array = result.detach().resolve_conj()._array
    return result.dtype, tuple(result.shape), type(array), array.dtype, array.tobytes(), recorded


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_pairs_are_brought_together_as_the_general_way_does(name: str) -> None:
    op = OPERATORS[name]
    rest = tuple(literal(p.default) for p in op.parameters[2:])
    for (a, b), shapes in product(product(ALL_DTYPES, repeat=2), (((3,), (3,)), ((3,), ()), ((), (3,)), ((), ()))):
        one, other = operand(a, shapes[0], [3.0, 1.0, 2.0]), operand(b, shapes[1], [2.0, 1.0, 3.0])
        arguments = (one, other, *rest)
        assert outcome(op.function, one, other) == outcome(general.run, op, arguments), (a, b, shapes)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in BINARY if OPERATORS[name].numbers])
def test_numbers_are_brought_together_as_the_general_way_does(name: str) -> None:
    op = OPERATORS[name]
    rest = tuple(literal(p.default) for p in op.parameters[2:])
    for kind, shape, number in product(INTEGRAL, ((3,), ()), NUMBERS):
        one = operand(kind, shape, [3.0, 1.0, 2.0])
        assert outcome(op.function, one, number) == outcome(general.run, op, (one, number, *rest)), (kind, number)


def test_the_default_dtype_is_asked_each_time() -> None:
    count = gs.tensor([1, 2])
    assert (count * 0.5).dtype is (count / count).dtype is gs.float32
    gs.set_default_dtype(gs.float64)
    try:
        assert (count * 0.5).dtype is (count / count).dtype is gs.float64
    finally:
        gs.set_default_dtype(gs.float32)


def test_what_has_rules_of_its_own_is_left_to_the_general_way() -> None:
    kind = {d.name: d.numpy for d in ALL_DTYPES}
    multiplied, subtracted = common_dtype(OPERATORS["mul"]), common_dtype(OPERATORS["sub"])
    assert multiplied(kind["float32"], (2,), kind["float64"], (2,)) is kind["float64"]
    assert multiplied(kind["float32"], (2,), kind["float64"], ()) is kind["float32"]
    assert multiplied(kind["float16"], (2,), kind["int64"], (2,)) is None
    assert subtracted(kind["bool"], (2,), kind["float32"], (2,)) is None
    assert number_dtype(OPERATORS["mul"])(kind["uint8"], 300) is None
    assert number_dtype(OPERATORS["mul"])(kind["uint8"], 3) is kind["uint8"]


def test_a_mixed_product_has_the_gradients_of_pytorch(torch: Any) -> None:
    def gradients(lib: Any) -> list[Any]:
        x = lib.tensor([1.5, -2.0], requires_grad=True)
        y = lib.tensor([0.5, 3.0], dtype=lib.float64, requires_grad=True)
        count = lib.tensor([2, 5])
        (x * y + x * count + count / y + (count - 2.5) * x).sum().backward()
        return [(g.tolist(), str(g.dtype).split(".")[1]) for g in (x.grad, y.grad)]

    assert gradients(gs) == gradients(torch)


@pytest.mark.parametrize("number", [1e300, 0.0, -0.0, float("nan")])
@pytest.mark.parametrize("name", ["clamp_min.Tensor", "div.true"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_a_program_computed_before_changes_no_result(name: str, number: float) -> None:
    """The arrays of numbers that are kept for the next call are so many at most."""
    op, ones = OPERATORS[name], gs.ones(3)
    first = outcome(op.function, ones, number)
    kept = {kind: dict(numbers) for kind, numbers in CONSTANTS.items()}
    try:
        CONSTANTS["f"].pop(number, None)
        for n in range(300):
            ones * (n + 0.5)
        assert outcome(op.function, ones, number) == first
        assert len(CONSTANTS["f"]) <= 256
    finally:
        for kind, numbers in kept.items():
            CONSTANTS[kind].clear()
            CONSTANTS[kind].update(numbers)
