"""assert_gradients of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.inspect.source.source_paths import relative_path
from gradscope.inspect.source.source_syntax import definition_line
from gradscope.testing import assert_gradients

pytestmark = pytest.mark.torch


def leaf(torch: Any, dtype: Any = None) -> Any:
    return torch.tensor([[0.5, 2.0], [1.5, 0.25]], dtype=dtype or torch.float64, requires_grad=True)


def failure(function: Callable[..., Any], *inputs: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_gradients(function, *inputs, **options)
    return str(caught.value)


def test_right_gradients_pass_to_second_order(torch: Any) -> None:
    x = leaf(torch)
    assert_gradients(lambda x, n: (x**n).sin(), x, 3, order=2)
    assert_gradients(torch.nn.Linear(2, 3).double(), x, order=2)
    assert_gradients(lambda x, y: x @ y, x, torch.ones(2, 2, dtype=torch.float64, requires_grad=True), order=2)
    assert_gradients(torch.linalg.svdvals, x, fast_mode=True)


def test_results_without_a_gradient_and_complex_inputs(torch: Any) -> None:
    assert_gradients(torch.max, leaf(torch), 1)
    assert_gradients(torch.view_as_real, leaf(torch, torch.complex128), order=2)
    assert_gradients(lambda x, mask: (x * mask, mask), leaf(torch), torch.ones(2))


def test_the_inputs_are_left_as_they_are(torch: Any) -> None:
    x = leaf(torch)
    before = x.detach().clone()
    assert_gradients(torch.exp, x, order=2)
    assert torch.equal(x, before)
    assert x.grad is None


def functions(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * grad

    return Square


def test_a_wrong_backward_is_named_with_its_worst_elements(torch: Any) -> None:
    square = functions(torch)
    place = f"Square.backward() at {relative_path(__file__)}:{definition_line(square.backward.__code__)}"
    text = failure(square.apply, leaf(torch))
    assert text.startswith(f"wrong gradient in {place}\n  input 0: float64 [2, 2], requires grad\n")
    assert "Hint: the gradient is 1.5 times the right one" in text
    assert failure(lambda x: square.apply(x) + 1, leaf(torch)).endswith(f"{place} is wrong by itself")


def test_a_backward_may_write_into_the_gradient_that_it_is_given(torch: Any) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.mul_(2)

    assert_gradients(Double.apply, leaf(torch))


def test_a_second_derivative_that_is_cut_off(torch: Any) -> None:
    class Cut(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x.detach().exp()

    assert_gradients(Cut.apply, leaf(torch))
    assert failure(Cut.apply, leaf(torch), order=2).startswith("wrong second derivative in Cut.backward() at ")


def test_tensors_of_two_libraries_are_refused(torch: Any) -> None:
    with pytest.raises(TypeError, match="some are gradscope's and some PyTorch's"):
        assert_gradients(lambda x, y: x, leaf(torch), gs.ones(2, dtype=gs.float64, requires_grad=True))


def test_tensors_of_another_library_are_refused() -> None:
    class Array(numpy.ndarray):
        requires_grad = True

    with pytest.raises(TypeError, match=r"input 0 is a .*Array\nConvert it"):
        assert_gradients(lambda x: x, numpy.ones(2).view(Array))
