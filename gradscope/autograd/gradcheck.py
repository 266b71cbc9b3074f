"""Checking derivatives against finite differences: gradcheck and gradgradcheck.

Both compute the Jacobian twice: by central differences, moving one input element at a time, and by one backward per
output element, or by one forward pass per input element. A complex input has two directions, 1 and i; for backward a
complex output is two real functions, its real and its imaginary part, whose backward starts from 1 and from i. Griewank
and Walther, *Evaluating Derivatives* (2008), section 3, is the theory of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..runtime.engine.backward import grad
from ..runtime.memory.storage import overlaps_itself
from ..runtime.user_warnings import warn
from .gradcheck_forward import check_forward, check_forward_fast, check_undefined_tangents
from .jacobian_mismatch import GradcheckError, Mismatch
from .numerical_jacobian import Checker, as_tuple, differentiable, random_seed, requires_grad

__all__ = ["GradcheckError", "Mismatch", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients that backward computes with those of finite differences.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of tensors.
    inputs : Tensor or sequence
        Its arguments; those that require grad are checked, in float64 or complex128 (less precise ones warn).
    eps : float
        How far an element is moved to either side.
    atol, rtol : float
        Tolerances: ``|analytical - numerical| <= atol + rtol * |numerical|``. Two NaN are equal.
    raise_exception : bool
        Raise :class:`GradcheckError` where False would be returned.
    nondet_tol : float
        How far two backwards over the same graph may differ.
    check_undefined_grad : bool
        Also check that undefined gradients of outputs are treated as zeros.
    check_grad_dtypes : bool
        Also check that gradients have the dtype of their inputs.
    check_batched_grad : bool
        Also check ``is_grads_batched=True``.
    check_forward_ad : bool
        Also check forward mode. `func` must use the arguments it is given, not the same tensors captured otherwise.
    check_batched_forward_grad : bool
        True raises NotImplementedError: tangents do not come in batches here.
    check_backward_ad : bool
        False checks nothing that needs backward.
    fast_mode : bool
        Compare one random projection of each Jacobian instead of every element: cheap for large inputs.
    masked : bool, optional
        Allow gradients of zero ``grad_outputs`` to be only close to zero. (PyTorch's sparse masks have no counterpart.)

    Raises
    ------
    GradcheckError
        If a derivative is wrong: which output and input, and the worst elements.
    ValueError
        If no input requires grad.
    RuntimeError
        If an input's elements overlap in memory.
    TypeError
        If `func` cannot be called.
    AssertionError
        If neither mode is to be checked, or the batched form of one that is not.

    See Also
    --------
    gradgradcheck, testing.assert_gradients

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([0.5, 2.0], dtype=gs.float64, requires_grad=True)
    >>> gs.autograd.gradcheck(lambda x: x * x, x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    refuse_batched_forward(check_batched_forward_grad, check_forward_ad)
    check_callable("gradcheck", func)
    arguments = as_tuple(inputs)
    check_inputs(arguments)
    checker = Checker(func, arguments, eps, atol, rtol, nondet_tol, check_grad_dtypes, bool(masked))
    try:
        if not checker.outputs:
            checker.check_constant()
            return True
        if check_backward_ad:
            checker.check_fast() if fast_mode else checker.check_full()
        if check_forward_ad:
            check_forward_fast(checker) if fast_mode else check_forward(checker)
            if check_undefined_grad:
                check_undefined_tangents(checker)
        if check_batched_grad:
            checker.check_batched()
        if check_backward_ad:
            checker.check_proportional()
        if check_backward_ad and check_undefined_grad:
            checker.check_undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives, computed through ``create_graph=True``, with finite differences of the first.

    Parameters
    ----------
    func, inputs
        As for :func:`gradcheck`, which also explains the parameters not named here.
    grad_outputs : Tensor or sequence of Tensor, optional
        The gradients of the outputs; random ones that require grad unless given.
    gen_non_contig_grad_outputs : bool
        Make the random ones non-contiguous.
    check_fwd_over_rev : bool
        Also check forward mode run over the backward.
    check_rev_over_rev : bool
        False checks nothing that needs a backward of the backward.

    Raises
    ------
    GradcheckError
        If a second derivative is wrong. "Input" counts the arguments, then `grad_outputs`; "output" counts the
        gradients of the arguments.

    See Also
    --------
    gradcheck

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.autograd.gradgradcheck(gs.exp, gs.zeros(2, dtype=gs.float64, requires_grad=True))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if (check_undefined_grad or check_batched_grad) and not check_rev_over_rev:
        name = "check_undefined_grad" if check_undefined_grad else "check_batched_grad"
        raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    check_callable("gradgradcheck", func)
    arguments = as_tuple(inputs)
    check_inputs(arguments)
    if grad_outputs is None:
        seeds = tuple(random_seed(o, gen_non_contig_grad_outputs) for o in differentiable(func(*arguments)))
    else:
        seeds = as_tuple(grad_outputs)
    count = len(arguments)
    positions = [i for i, value in enumerate(arguments + seeds) if requires_grad(value)]

    def first_derivative(*values: Any) -> tuple[Any, ...]:
        for position in positions:
            values[position].requires_grad_()  # in forward mode the values come detached
        outputs = differentiable(func(*values[:count]))
        wanted = [values[i] for i in positions if i < count]
        grads = grad(outputs, wanted, values[count:], create_graph=True, allow_unused=True) if outputs else ()
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        first_derivative,
        arguments + seeds,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


# --- arguments --------------------------------------------------------------------------------------------------------


def check_callable(name: str, func: Any) -> None:
    """Raise for a function that is none."""
    if not callable(func):
        raise TypeError(
            f"{name}() expects a function to check, but got {type(func).__name__}\n"
            "Give the function first, then its inputs."
        )


def refuse_batched_forward(check_batched_forward_grad: bool, check_forward_ad: bool) -> None:
    """Raise where batches of tangents are to be checked."""
    if not check_batched_forward_grad:
        return
    if not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    raise NotImplementedError(
        "check_batched_forward_grad=True checks vmap over forward mode, and gradscope has no vmap.\n"
        "Leave it out: check_forward_ad=True checks every tangent, one at a time."
    )


def check_inputs(inputs: Sequence[Any]) -> None:
    """Raise for inputs that finite differences cannot check; warn of those they check badly."""
    for index, value in enumerate(inputs):
        if not requires_grad(value):
            continue
        if value._dtype.itemsize < (16 if value.is_complex() else 8):
            warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. "
                f"This check will likely fail if all the inputs are not of double precision floating point or complex. "
                f"Its dtype is {value.dtype}: convert it with .double() before requires_grad_().",
            )
        if overlaps_itself(value._array):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                f"on the input before passing it to gradcheck. (shape {list(value.shape)}, strides "
                f"{list(value.stride())})"
            )
    if not any(requires_grad(value) for value in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True.\nCall requires_grad_() on the inputs to check."
        )
