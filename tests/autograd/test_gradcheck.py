"""gradcheck and gradgradcheck: what they accept, what they find, what they say; verdicts compared with PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from gradscope.runtime.graph.graph_node import Node
from gradscope.runtime.tensor.tensor import Tensor
from gradscope.runtime.tensor.views import edge_of


def double(*values: Any, **kwargs: Any) -> Tensor:
    return gs.tensor(values, dtype=kwargs.pop("dtype", gs.float64), requires_grad=True)


class BrokenNode(Node):
    """The node of :func:`broken`: its derivative is what the test gives."""

    __slots__ = ("formula",)
    node_name = "BrokenBackward0"

    def apply(self, grad: Any) -> Any:
        return (self.formula(grad),)


def broken(x: Tensor, values: Any, formula: Callable[[Any], Any]) -> Tensor:
    """Return a result of `x` with a backward that may be wrong."""
    result = Tensor._wrap(numpy.asarray(values))
    node = BrokenNode()
    node.edges, node.seq, node.extra = (edge_of(x),), 0, None
    node.shape, node.dtype, node.kind = result._array.shape, result._array.dtype, type(result._array)
    node.formula = formula
    result._set_edge(node)
    return result


# --- right derivatives ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_derivatives_pass(fast_mode: bool) -> None:
    x, y = double([0.5, 2.0], [1.0, 0.3]), double(0.7, 1.3)
    assert gradcheck(lambda x, y: (x * y).exp(), (x, y), fast_mode=fast_mode)
    assert gradcheck(lambda x, y: (x + y, x * y), [x, y], fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: (x * y).exp(), (x, y), fast_mode=fast_mode)
    assert gradcheck(lambda x: x.sum(), x, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_inputs_and_outputs_pass(fast_mode: bool) -> None:
    z = double(0.7 + 1j, 1.3 - 0.4j, dtype=gs.complex128)
    x = double(0.7, 1.3)
    assert gradcheck(lambda z, x: (z * x).sin(), (z, x), fast_mode=fast_mode)
    assert gradcheck(lambda z: z.abs(), z, fast_mode=fast_mode)
    assert gradcheck(lambda x: x * (1 + 2j), x, fast_mode=fast_mode)
    assert gradgradcheck(lambda z, x: z * z * x, (z, x), fast_mode=fast_mode)


def test_0d_empty_and_non_contiguous_inputs_pass() -> None:
    assert gradcheck(lambda x: x.exp(), gs.tensor(0.5, dtype=gs.float64, requires_grad=True))
    assert gradcheck(lambda x: x * 2, gs.zeros(0, 3, dtype=gs.float64, requires_grad=True))
    transposed = gs.arange(6, dtype=gs.float64).view(2, 3).t().detach().requires_grad_()
    assert gradcheck(lambda x: x * x, transposed)


def test_the_inputs_are_as_they_were() -> None:
    x = double(0.5, 2.0)
    gradcheck(lambda x: x * x, x)
    assert (x.tolist(), x._version, x.grad) == ([0.5, 2.0], 0, None)


def test_inputs_are_restored_when_the_function_raises() -> None:
    x = double(0.5, 2.0)

    def picky(x: Tensor) -> Tensor:
        if x.detach().numpy()[0] > 0.5:
            raise ArithmeticError("too large")
        return x * 2

    with pytest.raises(ArithmeticError):
        gradcheck(picky, x)
    assert x.tolist() == [0.5, 2.0]


def test_arguments_that_are_no_tensors_or_need_no_grad_are_passed_on() -> None:
    assert gradcheck(lambda x, y, n: (x * y) ** n, (double(0.5), gs.tensor([2.0], dtype=gs.float64), 3))


def test_equal_nan_is_no_mismatch() -> None:
    assert gradcheck(lambda x: x * x, double(float("nan")))
    assert gradcheck(lambda x: (x * x).sum(), double(float("nan"), float("nan")))
    with pytest.raises(GradcheckError, match="nan"):
        gradcheck(lambda x: broken(x, x.detach().numpy() * 2.0, lambda g: g * numpy.nan), double(1.0))


# --- wrong derivatives ------------------------------------------------------------------------------------------------


def test_a_wrong_derivative_is_shown_element_by_element() -> None:
    x = double(0.5, 2.0, 3.0)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: x.detach() * x, x)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Jacobian mismatch for output 0 with respect to input 0,"
    assert "3 of 9 elements differ by more than 1e-05 + 0.001 * |numerical|" in lines[1]
    assert lines[2].split() == ["output", "input", "analytical", "numerical", "absolute", "relative"]
    assert lines[3].split() == ["[2]", "[2]", "3", "6", "3", "0.5"]
    mismatch = caught.value.mismatch
    assert (mismatch.output_index, mismatch.input_index, mismatch.part) == (0, 0, "")
    numpy.testing.assert_allclose(numpy.diag(mismatch.numerical), [1.0, 4.0, 6.0], rtol=1e-6)


def test_a_long_table_is_cut() -> None:
    x = gs.arange(20, dtype=gs.float64).requires_grad_()
    with pytest.raises(GradcheckError, match=r"and 11 more"):
        gradcheck(lambda x: x.detach() * x, x)


def test_the_wrong_input_and_output_are_named() -> None:
    x, y = double(0.5), double(2.0)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 1 with respect to input 1,"):
        gradcheck(lambda x, y: (x * y, x * y * y.detach()), (x, y))


def test_raise_exception_false_answers_false() -> None:
    x = double(0.5, 2.0)
    assert gradcheck(lambda x: x.detach() * x, x, raise_exception=False) is False
    assert gradgradcheck(lambda x: x * x, x, raise_exception=False) is True


def test_fast_mode_finds_it_too_and_shows_the_elements() -> None:
    x = double(0.5, 2.0)
    with pytest.raises(
        GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 0,\n2 of 4 elements"
    ):
        gradcheck(lambda x: x.detach() * x, x, fast_mode=True)


def test_a_wrong_second_derivative_is_found() -> None:
    def function(x: Tensor) -> Tensor:
        # The first derivative is right; the recorded one is cut from the graph.
        y = x * 1
        y.register_hook(lambda g: (g * 2 * x).detach())
        return broken_square(y, x)

    def broken_square(y: Tensor, x: Tensor) -> Tensor:
        return y + (x * x - x).detach()

    x = double(0.5, 2.0)
    assert gradcheck(function, x, check_undefined_grad=False)
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch|expected to be zero"):
        gradgradcheck(function, x, check_undefined_grad=False)


def test_complex_mismatches_say_which_part() -> None:
    z = double(0.7 + 1j, dtype=gs.complex128)
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only, Jacobian"):
        gradcheck(lambda z: z.detach() * z, z)


def test_a_constant_that_is_none_is_found() -> None:
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, double(0.5))
    assert gradcheck(lambda x: x.detach() * 0, double(0.5))


def test_a_backward_not_multiplied_by_its_gradient_is_found() -> None:
    x = double(0.5)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(lambda x: broken(x, x.detach().numpy() * 2.0, lambda g: numpy.full_like(g, 2.0)), x)


def test_a_backward_that_differs_each_time_is_found() -> None:
    x, count = double(0.5), iter(range(1000))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(lambda x: broken(x, x.detach().numpy() * 2.0, lambda g: g * (2 + 1e-7 * next(count))), x)
    assert gradcheck(
        lambda x: broken(x, x.detach().numpy() * 2.0, lambda g: g * (2 + 1e-7 * next(count))), x, nondet_tol=1e-4,
        check_undefined_grad=False,
    )  # fmt: skip


def test_a_backward_that_cannot_do_without_a_gradient_is_found() -> None:
    x = double(0.5)

    def function(x: Tensor) -> Tensor:
        return broken(x, x.detach().numpy() * 2.0, lambda g: g * 2 if g is not None else [][0])

    with pytest.raises((GradcheckError, IndexError)):
        gradcheck(function, x)
    assert gradcheck(function, x, check_undefined_grad=False)


def test_batched_gradients_are_checked_when_asked() -> None:
    assert gradcheck(lambda x: x * x, double(0.5, 2.0), check_batched_grad=True)
    assert gradgradcheck(lambda x: x * x * x, double(0.5, 2.0), check_batched_grad=True)


# --- wrong calls ------------------------------------------------------------------------------------------------------


def test_no_input_requiring_grad_is_an_error() -> None:
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(lambda x: x, gs.ones(2, dtype=gs.float64))


def test_float32_inputs_warn_with_pytorchs_words() -> None:
    x = gs.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)


def test_overlapping_inputs_are_refused() -> None:
    x = gs.ones(1, dtype=gs.float64).expand(3).detach().requires_grad_()
    with pytest.raises(
        RuntimeError, match=r"The 0th input has a dimension with stride 0. gradcheck only supports inputs"
    ):
        gradcheck(lambda x: x * 2, x)


def test_batches_of_tangents_are_refused_with_a_clear_word() -> None:
    with pytest.raises(NotImplementedError, match="checks vmap over forward mode, and gradscope has no vmap"):
        gradcheck(lambda x: x, double(0.5), check_forward_ad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize(
    ("check", "options", "words"),
    [
        (gradcheck, {"check_backward_ad": False}, "at least one of check_forward_ad or check_backward_ad to be True"),
        (gradcheck, {"check_batched_forward_grad": True}, "requires check_forward_ad to be True"),
        (
            gradcheck,
            {"check_forward_ad": True, "check_backward_ad": False, "check_batched_grad": True},
            "check_batched_grad=True requires check_backward_ad",
        ),
        (gradgradcheck, {"check_rev_over_rev": False}, "at least one of check_fwd_over_rev or check_rev_over_rev"),
        (
            gradgradcheck,
            {"check_fwd_over_rev": True, "check_rev_over_rev": False},
            "check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
    ],
)
def test_options_that_contradict_each_other(check: Any, options: dict[str, bool], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check(lambda x: x, double(0.5), **options)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_what_is_no_function_is_refused(check: Any) -> None:
    with pytest.raises(TypeError, match=r"expects a function to check, but got float\nGive the function first"):
        check(3.0, double(0.5))


# --- forward mode -----------------------------------------------------------------------------------------------------


class WrongTangent(gs.autograd.Function):
    """Squares; its jvp forgets the 2."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return x * tangent


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode_is_checked(fast_mode: bool) -> None:
    x, y = double(0.5, 2.0), double(1.5, -1.0)
    options = {"check_forward_ad": True, "fast_mode": fast_mode}
    assert gradcheck(lambda x, y: (x * y.exp(), (x / y).sum(), (x > 0).long()), (x, y), **options)
    assert gradgradcheck(lambda x, y: x * y.exp(), (x, y), check_fwd_over_rev=True, fast_mode=fast_mode)
    z = gs.tensor([1.0 + 2.0j, -0.5j], dtype=gs.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * z.conj().exp(), z.abs()), z, **options)
    assert gradgradcheck(lambda z: z * z.exp(), z, check_fwd_over_rev=True, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_jvp_is_found(fast_mode: bool) -> None:
    x = double(0.5, 2.0)
    assert gradcheck(WrongTangent.apply, x)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(WrongTangent.apply, x, check_forward_ad=True, fast_mode=fast_mode)
    assert "Jacobian computed with forward mode mismatch for output 0 with respect to input 0" in str(caught.value)
    mismatch = caught.value.mismatch
    assert mismatch is not None
    assert mismatch.forward
    assert mismatch.analytical.tolist() == [[0.5, 0.0], [0.0, 2.0]]
    assert not gradcheck(WrongTangent.apply, x, check_forward_ad=True, raise_exception=False, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradcheck(WrongTangent.apply, x, check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)


def test_the_part_of_a_complex_input_is_named() -> None:
    z = gs.tensor([1.0 + 2.0j], dtype=gs.complex128, requires_grad=True)
    with pytest.raises(GradcheckError, match="While considering the real part of complex inputs only, Jacobian comp"):
        gradcheck(WrongTangent.apply, z, check_forward_ad=True, check_backward_ad=False)


def test_a_jvp_that_counts_missing_tangents_as_ones_is_found() -> None:
    class Sum(gs.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

        @staticmethod
        def jvp(ctx: Any, x: Any, y: Any) -> Any:
            return (1 if x is None else x) + (1 if y is None else y)

    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index 0 when input 0 has"):
        gradcheck(Sum.apply, (double(0.5), double(1.5)), check_forward_ad=True)


def test_results_that_are_no_tensors_are_refused() -> None:
    with pytest.raises(ValueError, match="result 0 is a float"):
        gradcheck(lambda x: x.item(), double(0.5))


# --- PyTorch's verdicts -----------------------------------------------------------------------------------------------

VERDICTS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda m, x: x * x,
    "cut": lambda m, x: x * x.detach(),
    "two outputs": lambda m, x: (x.exp(), x.sum()),
    "one wrong output": lambda m, x: (x.exp(), x.detach().sum() * x),
    "constant": lambda m, x: x.detach() * 0 + 1,
    "kink": lambda m, x: (x - x.detach()).abs(),
    "integer result": lambda m, x: (x * 0 + 3).long(),
    "tiny factor": lambda m, x: x * 1e-7,
    "cube": lambda m, x: x * x * x,
    "itself": lambda m, x: x,
    "view": lambda m, x: x.view(2, 1),
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("case", VERDICTS)
def test_verdicts_are_pytorchs(torch: Any, case: str, fast_mode: bool) -> None:
    function = VERDICTS[case]
    theirs = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, expected in ((gradcheck, torch.autograd.gradcheck), (gradgradcheck, torch.autograd.gradgradcheck)):
            if expected is torch.autograd.gradgradcheck and case in ("constant", "integer result"):
                continue
            wanted = expected(lambda x: function(torch, x), theirs, raise_exception=False, fast_mode=fast_mode)
            assert (
                ours(lambda x: function(gs, x), double(0.5, 2.0), raise_exception=False, fast_mode=fast_mode) is wanted
            )
