"""assert_close: PyTorch's verdict and PyTorch's words, over pairs of everything it compares."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.testing import assert_close, default_tolerances

NAN, INF = float("nan"), float("inf")
# Arguments as functions of a module, and options.
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "equal": (lambda m: m.tensor([1.0]), lambda m: m.tensor([1.0]), {}),
    "within": (lambda m: m.tensor([1.0]), lambda m: m.tensor([1.000001]), {}),
    "one of two": (lambda m: m.tensor([1.0, 2.0]), lambda m: m.tensor([1.0, 3.0]), {}),
    "matrix": (lambda m: m.tensor([[1.0, 2], [4, 5]]), lambda m: m.tensor([[1.0, 3], [4, 9]]), {}),
    "0-d": (lambda m: m.tensor(1.0), lambda m: m.tensor(2.0), {}),
    "double": (lambda m: m.tensor([1.0], dtype=m.float64), lambda m: m.tensor([1.000001], dtype=m.float64), {}),
    "numbers": (lambda m: 1.0, lambda m: 2.0, {}),
    "close numbers": (lambda m: 1.0, lambda m: 1.0 + 1e-9, {}),
    "int and float": (lambda m: 1, lambda m: 2.0, {}),
    "int and equal float": (lambda m: 1, lambda m: 1.0, {"check_dtype": False}),
    "complex numbers": (lambda m: 1j, lambda m: 2j, {}),
    "booleans": (lambda m: True, lambda m: False, {}),
    "none": (lambda m: None, lambda m: None, {}),
    "list": (lambda m: [m.tensor([1.0]), m.tensor([2.0])], lambda m: [m.tensor([1.0]), m.tensor([3.0])], {}),
    "nested": (lambda m: [{"a": (1.0, m.ones(2))}], lambda m: [{"a": (1.0, m.zeros(2))}], {}),
    "list and tuple": (lambda m: [1.0], lambda m: (1.0,), {}),
    "lengths": (lambda m: [1.0], lambda m: [1.0, 2.0], {}),
    "mapping": (lambda m: {"a": 1.0, "b": 2.0}, lambda m: {"a": 1.0, "b": 3.0}, {}),
    "keys": (lambda m: {"a": 1.0, "c": 1.0}, lambda m: {"b": 1.0, "c": 1.0}, {}),
    "shapes": (lambda m: m.zeros(1), lambda m: m.zeros(1, 2), {}),
    "dtypes": (lambda m: m.zeros(1), lambda m: m.zeros(1, dtype=m.float64), {}),
    "dtypes unchecked": (lambda m: m.zeros(1), lambda m: m.zeros(1, dtype=m.float64), {"check_dtype": False}),
    "strides": (lambda m: m.ones(2, 2).t(), lambda m: m.ones(2, 2), {"check_stride": True}),
    "strides unchecked": (lambda m: m.ones(2, 2).t(), lambda m: m.ones(2, 2), {}),
    "ints": (lambda m: m.tensor([1, 5]), lambda m: m.tensor([2, 5]), {}),
    "bools": (lambda m: m.tensor([True]), lambda m: m.tensor([False]), {}),
    "nan": (lambda m: m.tensor([NAN]), lambda m: m.tensor([NAN]), {}),
    "equal nan": (lambda m: m.tensor([NAN]), lambda m: m.tensor([NAN]), {"equal_nan": True}),
    "inf": (lambda m: m.tensor([INF, 1.0]), lambda m: m.tensor([INF, 1.0]), {}),
    "inf and number": (lambda m: m.tensor([1.0, INF]), lambda m: m.tensor([1.0, 2.0]), {}),
    "expected zero": (lambda m: m.tensor([1.0, 0.1]), lambda m: m.tensor([1.0, 0.0]), {}),
    "empty": (lambda m: m.zeros(0), lambda m: m.zeros(0), {}),
    "exact": (lambda m: m.tensor([1.0]), lambda m: m.tensor([1.0000001]), {"rtol": 0, "atol": 0}),
    "tolerances": (lambda m: m.tensor([1.0]), lambda m: m.tensor([1.5]), {"rtol": 0, "atol": 1}),
    "message": (lambda m: 1.0, lambda m: 2.0, {"msg": "mine"}),
    "message from": (lambda m: 1.0, lambda m: 2.0, {"msg": lambda text: "before\n" + text}),
    "arrays": (lambda m: numpy.ones(2), lambda m: numpy.zeros(2), {}),
    "one tolerance": (lambda m: 1.0, lambda m: 1.0, {"rtol": 1.0}),
    "strings": (lambda m: "a", lambda m: "b", {}),
    "array and tensor": (lambda m: numpy.ones(2), lambda m: m.ones(2), {}),
}


def verdict(compare: Any, actual: Any, expected: Any, options: dict[str, Any]) -> tuple[type | None, str]:
    try:
        compare(actual, expected, **options)
    except (AssertionError, TypeError, ValueError) as error:
        return type(error), str(error)
    return None, ""


@pytest.mark.parametrize("case", CASES)
def test_verdict_and_message_are_pytorchs(torch: Any, case: str) -> None:
    actual, expected, options = CASES[case]
    found = verdict(assert_close, actual(gs), expected(gs), options)
    wanted = verdict(torch.testing.assert_close, actual(torch), expected(torch), options)
    assert found[0] is wanted[0]
    if wanted[0] is not TypeError:
        assert found[1].replace("gradscope.", "torch.") == wanted[1]


def test_default_tolerances_are_the_loosest() -> None:
    assert default_tolerances(gs.float64) == (1e-7, 1e-7)
    assert default_tolerances(gs.float16, gs.float64) == (1e-3, 1e-5)
    assert default_tolerances(gs.int64) == (0.0, 0.0)
