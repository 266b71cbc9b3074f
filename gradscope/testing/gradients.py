"""assert_gradients: gradcheck for test suites, with a failure message that says what is probably wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..autograd.gradcheck import GradcheckError, Mismatch, gradcheck, gradgradcheck
from ..runtime.memory import device
from ..runtime.tensor.tensor import Tensor
from .suspect_functions import backward_of, functions_behind, place_of
from .torch_functions import as_native, is_foreign

__all__ = ["assert_gradients", "hints"]


def assert_gradients(
    function: Callable[..., Any],
    *inputs: Any,
    order: int = 1,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_batched_grad: bool = False,
    fast_mode: bool = False,
) -> None:
    """Assert that the gradients of `function` at `inputs` are those of finite differences.

    Parameters
    ----------
    function : callable
        Takes `inputs`, returns a tensor or a tuple of tensors.
    *inputs
        Tensors that require grad (float64 or complex128), of gradscope or of PyTorch, are checked; anything else is
        passed on.
    order : {1, 2}
        2 checks the second derivatives too.
    eps, atol, rtol, nondet_tol, check_undefined_grad, check_batched_grad, fast_mode
        As for :func:`gradscope.autograd.gradcheck`.

    Raises
    ------
    AssertionError
        If a gradient is wrong: the function, its inputs, the worst elements, and a hint at the usual mistake.
    ValueError
        If `order` is neither 1 nor 2, or no input requires grad.
    TypeError
        If an input that requires grad is of another library, or they are not all of one.

    See Also
    --------
    autograd.gradcheck

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([0.5, 2.0], dtype=gs.float64, requires_grad=True)
    >>> gs.testing.assert_gradients(lambda x: x.exp() * x, x, order=2)
    """
    __tracebackhide__ = True  # pytest shows the line that has called it
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}\nHigher orders: check the function's gradient itself.")
    refuse_others(inputs)
    named, called_with = function, inputs
    if any(map(is_foreign, inputs)):
        function, natives = as_native(function, inputs)
        inputs = tuple(natives)
    before = [numpy.array(device.to_host(v._array)) if isinstance(v, Tensor) else None for v in inputs]
    options: dict[str, Any] = {
        "eps": eps,
        "atol": atol,
        "rtol": rtol,
        "nondet_tol": nondet_tol,
        "check_undefined_grad": check_undefined_grad,
        "check_batched_grad": check_batched_grad,
        "fast_mode": fast_mode,
    }
    try:
        function(*inputs)
        refuse_written_inputs(named, inputs, before)
        gradcheck(function, inputs, **options)
    except GradcheckError as error:
        behind = [] if backward_of(named) else functions_behind(named, called_with)
        raise AssertionError("\n".join([report(named, inputs, "gradient", error), *behind])) from None
    if order == 2:
        try:
            gradgradcheck(function, inputs, **options)
        except GradcheckError as error:
            raise AssertionError(report(named, inputs, "second derivative", error)) from None


def refuse_others(inputs: Sequence[Any]) -> None:
    """Raise unless tensors require grad that are all gradscope's, or all PyTorch's."""
    __tracebackhide__ = True
    wanted = [(i, value) for i, value in enumerate(inputs) if getattr(value, "requires_grad", False)]
    if not wanted:
        raise ValueError("assert_gradients expects an input to require gradient\nCall requires_grad_() on one.")
    for index, value in wanted:
        if not isinstance(value, Tensor) and not is_foreign(value):
            raise TypeError(
                f"assert_gradients checks tensors of gradscope and of PyTorch; input {index} is a "
                f"{type(value).__module__}.{type(value).__qualname__}\nConvert it, e.g. with gradscope.from_numpy()."
            )
    if len({isinstance(value, Tensor) for _, value in wanted}) > 1:
        raise TypeError(
            "of the inputs that require grad some are gradscope's and some PyTorch's\n"
            "A graph is of one library: convert the others."
        )


def refuse_written_inputs(function: Callable[..., Any], inputs: Sequence[Any], before: Sequence[Any]) -> None:
    """Raise when `function` has written its inputs: finite differences would then compare different points."""
    __tracebackhide__ = True
    for index, (value, values) in enumerate(zip(inputs, before, strict=True)):
        if values is not None and not numpy.array_equal(device.to_host(value._array), values, equal_nan=True):
            raise AssertionError(
                f"{describe_function(function)} modified input {index} in place.\n{describe_inputs(inputs)}\n"
                "Give the in-place operator a clone()."
            )


# --- the message ------------------------------------------------------------------------------------------------------


def report(function: Callable[..., Any], inputs: Sequence[Any], what: str, error: GradcheckError) -> str:
    """Return the whole failure message."""
    lines = [f"wrong {what} in {describe_function(function)}", describe_inputs(inputs), str(error)]
    mismatch = error.mismatch
    if mismatch is not None:
        if what != "gradient":
            lines.append(name_places(mismatch, len(inputs)))
        lines.extend(f"Hint: {hint}" for hint in hints(mismatch, inputs))
    return "\n".join(lines)


def describe_function(function: Callable[..., Any]) -> str:
    """Return the name of a function and where it stands."""
    backward = backward_of(function)
    if backward:
        return backward
    name = getattr(function, "__qualname__", None) or repr(function)
    code = getattr(function, "__code__", None)
    return f"{name}()" + (f" at {place_of(code)}" if code is not None else "")


def describe_inputs(inputs: Sequence[Any]) -> str:
    """Return one line per input: dtype, shape, whether it requires grad."""
    lines = []
    for index, value in enumerate(inputs):
        if isinstance(value, Tensor):
            grad = ", requires grad" if value.requires_grad else ""
            lines.append(f"  input {index}: {value.dtype.name} {list(value.shape)}{grad}")
        else:
            lines.append(f"  input {index}: {value!r}")
    return "\n".join(lines)


def name_places(mismatch: Mismatch, count: int) -> str:
    """Say what the numbers of a second derivative's input and output mean."""
    position = mismatch.input_index
    source = f"input {position}" if position < count else f"the gradient of output {position - count}"
    return f"That is: how the gradient number {mismatch.output_index} (of those the inputs get) changes with {source}."


def hints(mismatch: Mismatch, inputs: Sequence[Any] = ()) -> list[str]:
    """Return what the pattern of a mismatch usually means, most telling first."""
    found, expected = mismatch.analytical, mismatch.numerical
    tolerance: dict[str, Any] = {"rtol": max(mismatch.rtol, 1e-4), "atol": max(mismatch.atol, 1e-7), "equal_nan": True}
    wrong = mismatch.wrong()

    def same(a: Any, b: Any) -> bool:
        return bool(numpy.isclose(a, b, **tolerance).all())

    result = []
    if (found == 0).all():
        result.append(
            "backward gives no gradient (None, or zeros) for this input: look for detach(), .data, numpy(), item(), or "
            "a backward that returns None."
        )
    elif (found[wrong] == 0).all():
        result.append("the gradient is zero exactly where it is wrong: a branch, a mask or an index is left out.")
    elif same(found, -expected):
        result.append("the gradient has the wrong sign everywhere.")
    elif numpy.iscomplexobj(expected) and same(found, expected.conj()):
        result.append("the gradient is the complex conjugate of the right one: use conj() of the derivative.")
    elif same(_input_transposed(mismatch), expected):
        result.append("the gradient is transposed: the right values stand at the swapped indices of the input.")
    else:
        result.extend(_constant(found[wrong], expected[wrong], whole=bool(wrong.all())))
    if numpy.isnan(found).any() and not numpy.isnan(expected).any():
        result.append("backward produces NaN: look for 0/0, log(0) or sqrt(0), and for where() after the division.")
    position = mismatch.input_index
    if position < len(inputs) and inputs[position]._dtype.itemsize <= 4:
        result.append(f"the input is {inputs[position].dtype.name}: finite differences need .double().")
    return result


def _input_transposed(mismatch: Mismatch) -> numpy.ndarray:
    """Return the analytical Jacobian with the two dimensions of a square input swapped."""
    shape = mismatch.input_shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return numpy.full_like(mismatch.analytical, numpy.nan)
    return mismatch.analytical.reshape(*shape, -1).swapaxes(0, 1).reshape(mismatch.analytical.shape)


def _constant(found: numpy.ndarray, expected: numpy.ndarray, *, whole: bool) -> list[str]:
    """Look for a constant ratio or a constant difference among the elements that are wrong."""
    where = "everywhere" if whole else "at every wrong element"
    nonzero = expected != 0
    if nonzero.all():
        ratio = found / expected
        if len(ratio) > 1 and numpy.isclose(ratio, ratio[0], rtol=1e-3, atol=0).all():
            return [f"the gradient is {ratio[0]:.4g} times the right one {where}: a factor is missing or too many."]
    difference = expected - found
    if len(difference) > 1 and numpy.isclose(difference, difference[0], rtol=1e-3, atol=1e-6).all():
        return [f"the gradient lacks {difference[0]:.4g} {where}: a term is missing."]
    return []
