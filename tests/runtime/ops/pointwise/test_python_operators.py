"""Python's operators on tensors: plain, reflected and in place, as on NumPy's arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy
import pytest

import gradscope as gs

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
FLOATS, INTEGERS = numpy.array([0.5, 2.0, 3.5]), numpy.array([1, 2, 5])


def both(name: str) -> tuple[Any, Any]:
    array = INTEGERS if name in BITS else FLOATS
    return array, gs.tensor(array)


@pytest.mark.parametrize("name", [*ARITHMETIC, *BITS, *COMPARISONS])
def test_an_operator_between_tensors_and_with_a_number_on_either_side(name: str) -> None:
    act = getattr(operator, name)
    array, tensor = both(name)
    for found, expected in (
        (act(tensor, gs.tensor(array[::-1].copy())), act(array, array[::-1])),
        (act(tensor, 2), act(array, 2)),
        (act(2, tensor), act(2, array)),
    ):
        numpy.testing.assert_allclose(found.numpy(), expected)


@pytest.mark.parametrize("name", [*ARITHMETIC, *BITS])
def test_an_operator_in_place_writes_the_tensor_itself(name: str) -> None:
    array, tensor = both(name)
    act, same = getattr(operator, "i" + name.rstrip("_")), tensor
    tensor = act(tensor, 2)
    assert tensor is same
    assert tensor._version == 1
    numpy.testing.assert_allclose(tensor.numpy(), getattr(operator, name)(array, 2))


def test_a_matrix_product_with_what_is_no_tensor_on_the_left() -> None:
    matrix = gs.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert matrix.__rmatmul__(gs.tensor([1.0, 1.0])).tolist() == [4.0, 6.0]


def test_unary_operators() -> None:
    tensor = gs.tensor([-1.5, 2.0])
    assert (-tensor).tolist() == [1.5, -2.0]
    assert abs(tensor).tolist() == [1.5, 2.0]
    assert +tensor is tensor
    assert (~gs.tensor([0, 5])).tolist() == [-1, -6]
    assert (~gs.tensor([True, False])).tolist() == [False, True]
    with pytest.raises(TypeError, match=r"^~ \(operator\.invert\) is only implemented on integer and Boolean"):
        ~tensor


@pytest.mark.parametrize(
    ("name", "slope"), [("truediv", [-8.0, -0.5]), ("pow", [2.0**0.5 * 0.6931471805599453, 2.772588722239781])]
)
def test_a_reflected_operator_is_differentiated(name: str, slope: list[float]) -> None:
    x = gs.tensor([0.5, 2.0], dtype=gs.float64, requires_grad=True)
    getattr(operator, name)(2, x).sum().backward()
    numpy.testing.assert_allclose(x.grad.numpy(), slope)
