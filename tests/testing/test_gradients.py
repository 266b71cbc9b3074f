"""assert_gradients: what it passes, and what its failure says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd.gradcheck import Mismatch
from gradscope.inspect.source.source_paths import relative_path
from gradscope.inspect.source.source_syntax import definition_line
from gradscope.testing import assert_gradients
from gradscope.testing.gradients import hints

X = numpy.array([[0.5, 2.0], [1.5, 0.25]])


def leaf(values: Any = X) -> gs.Tensor:
    return gs.tensor(values, dtype=gs.float64, requires_grad=True)


def failure(function: Callable[..., Any], *inputs: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_gradients(function, *inputs, **options)
    return str(caught.value)


def test_right_gradients_pass_to_second_order() -> None:
    assert_gradients(lambda x, y: (x * y).exp(), leaf(), leaf([0.5, 1.0]))
    assert_gradients(lambda x, y: (x * y).exp(), leaf(), leaf([0.5, 1.0]), order=2)
    assert_gradients(lambda x, n: x**n, leaf(), 3, order=2)
    assert_gradients(lambda x: x * x, leaf(), fast_mode=True, check_batched_grad=True)


def cut_in_half(x: gs.Tensor, y: gs.Tensor) -> gs.Tensor:
    return x * x.detach() + y


def test_a_failure_names_the_function_the_inputs_and_the_worst_elements() -> None:
    text = failure(cut_in_half, leaf(), gs.ones(2, dtype=gs.float32))
    assert "wrong gradient in cut_in_half() at " in text
    assert "test_gradients.py:" in text
    assert "  input 0: float64 [2, 2], requires grad\n  input 1: float32 [2]\n" in text
    assert "Jacobian mismatch for output 0 with respect to input 0," in text
    assert "Hint: the gradient is 0.5 times the right one at every wrong element: a factor is missing" in text


def test_pytest_shows_the_line_that_asserts(tmp_path: Path) -> None:
    source = """
import gradscope as gs

def test_wrong():
    gs.testing.assert_gradients(lambda x: x * x.detach(), gs.ones(2, dtype=gs.float64, requires_grad=True))

def test_nothing_to_check():
    gs.testing.assert_gradients(lambda x: x * x, gs.ones(2, dtype=gs.float64))

def test_written():
    x = gs.ones(2, dtype=gs.float64, requires_grad=True)
    gs.testing.assert_gradients(lambda x, y: x * y.add_(1), x, gs.ones(2))
"""
    (tmp_path / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "3 failed" in said
    assert said.count(">       gs.testing.assert_gradients(lambda") == 3
    assert "raise " not in said


class Square(gs.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: gs.Tensor) -> gs.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: gs.Tensor) -> gs.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * grad


class Scaled(gs.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: gs.Tensor, factor: float) -> gs.Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: gs.Tensor) -> tuple[gs.Tensor, None]:
        return grad, None


def backward_at(kind: Any) -> str:
    return f"{kind.__name__}.backward() at {relative_path(__file__)}:{definition_line(kind.backward.__code__)}"


def test_a_custom_function_is_named_by_its_backward() -> None:
    assert failure(Square.apply, leaf()).startswith(f"wrong gradient in {backward_at(Square)}\n")


def test_the_custom_function_in_a_model_that_is_wrong_is_named() -> None:
    text = failure(lambda x: Square.apply(Scaled.apply(x.exp(), 1.0)).sum(), leaf())
    assert text.endswith(f"{backward_at(Square)} is wrong by itself")


def test_a_custom_function_with_other_arguments_is_named_too() -> None:
    text = failure(lambda x: Scaled.apply(x.exp(), 3.0).sum(), leaf())
    assert text.endswith(f"{backward_at(Scaled)} is wrong by itself")


def test_custom_functions_that_are_right_are_named_as_a_possibility() -> None:
    text = failure(lambda x: Scaled.apply(x, 1.0) * x.detach(), leaf())
    assert text.endswith(f"it goes through {backward_at(Scaled)}")


def test_a_second_derivative_says_what_its_numbers_mean() -> None:
    def function(x: gs.Tensor) -> gs.Tensor:
        y = x * 1
        y.register_hook(lambda g: g * 2 * x.detach())
        return y + (x * x - x).detach()

    text = failure(function, leaf(), order=2, check_undefined_grad=False)
    assert text.startswith("wrong second derivative in ")
    assert "That is: how the gradient number 0 (of those the inputs get) changes with input 0." in text


def test_an_input_written_in_place_is_named() -> None:
    def function(x: gs.Tensor, y: gs.Tensor) -> gs.Tensor:
        y.add_(1)
        return x * y

    text = failure(function, leaf(), gs.ones(2, dtype=gs.float64))
    assert "modified input 1 in place" in text
    assert "Give the in-place operator a clone()." in text


def test_a_wrong_order_is_refused() -> None:
    with pytest.raises(ValueError, match="order must be 1 or 2, got 3"):
        assert_gradients(lambda x: x, leaf(), order=3)
    with pytest.raises(ValueError, match="to require gradient"):
        assert_gradients(lambda x: x, gs.ones(2))


# --- hints ------------------------------------------------------------------------------------------------------------


def mismatch(found: Any, expected: Any, shape: tuple[int, ...] = (4,)) -> Mismatch:
    found, expected = numpy.array(found), numpy.array(expected)
    return Mismatch(found, expected, 0, 0, shape, (expected.shape[1],), "", 1e-5, 1e-3)


RIGHT = numpy.diag([1.0, 2.0, 3.0, 5.0])
DENSE = RIGHT + 0.25


@pytest.mark.parametrize(
    ("found", "expected", "shape", "words"),
    [
        (RIGHT * 0, RIGHT, (4,), "backward gives no gradient (None, or zeros)"),
        (-RIGHT, RIGHT, (4,), "wrong sign"),
        (DENSE * 2, DENSE, (4,), "the gradient is 2 times the right one everywhere"),
        (RIGHT * 2, RIGHT, (4,), "the gradient is 2 times the right one at every wrong element"),
        (DENSE - 0.5, DENSE, (4,), "the gradient lacks 0.5 everywhere: a term is missing"),
        (RIGHT[[0, 2, 1, 3]], RIGHT, (2, 2), "the gradient is transposed"),
        (numpy.diag([1.0, 0.0, 3.0, 5.0]), RIGHT, (4,), "zero exactly where it is wrong"),
        (RIGHT * numpy.nan, RIGHT, (4,), "backward produces NaN"),
        (RIGHT * (1 - 2j), RIGHT * (1 + 2j), (4,), "the complex conjugate of the right one"),
    ],
)
def test_hints_know_the_usual_mistakes(found: Any, expected: Any, shape: tuple[int, ...], words: str) -> None:
    assert any(words in hint for hint in hints(mismatch(found, expected, shape)))


def test_a_mismatch_without_a_pattern_gets_no_hint() -> None:
    generator = numpy.random.default_rng(0)
    assert hints(mismatch(generator.random((4, 4)), generator.random((4, 4)))) == []


def test_float32_inputs_are_hinted_at() -> None:
    with pytest.warns(UserWarning, match="not a double precision"):
        text = failure(lambda x: (x * 1.1).exp(), gs.ones(3, requires_grad=True), check_undefined_grad=False)
    assert "Hint: the input is float32: finite differences need .double()." in text
