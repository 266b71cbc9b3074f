"""The older checkpoint: one node, whose backward runs the function again, and a backward of its own."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from ... import autograd
from ...runtime import autocast, state
from ...runtime.modes import enable_grad, no_grad
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn
from .randomness import RandomNumbers

__all__ = ["CheckpointFunction", "check_backward_validity", "detach_variable"]


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments with their tensors detached, which require grad as they did.

    Raises
    ------
    RuntimeError
        If it is no tuple.

    See Also
    --------
    Tensor.detach

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import detach_variable
    >>> y = gs.ones(2, requires_grad=True) * 2
    >>> detached, other = detach_variable((y, "a flag"))
    >>> detached.is_leaf, detached.requires_grad, other
    (True, True, 'a flag')
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}\n"
            "Give the arguments as a tuple."
        )
    return tuple(_detached(item) if isinstance(item, Tensor) else item for item in inputs)


def _detached(tensor: Tensor) -> Tensor:
    result = tensor.detach()
    result.requires_grad = tensor.requires_grad
    return result


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among some arguments requires grad: then the parameters inside get no gradient either.

    See Also
    --------
    checkpoint

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import check_backward_validity
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     check_backward_validity([gs.ones(2)])
    >>> str(told[0].message)
    'None of the inputs have requires_grad=True. Gradients will be None'
    """
    if not any(item.requires_grad for item in inputs if isinstance(item, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


class CheckpointFunction(autograd.Function):
    """The node of a reentrant checkpoint.

    See Also
    --------
    checkpoint : calls it with ``use_reentrant=True``.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import checkpoint
    >>> y = checkpoint(gs.exp, gs.zeros(2, requires_grad=True), use_reentrant=True)
    >>> y.grad_fn.name()
    'CheckpointFunctionBackward'
    """

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Call the function without recording."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.numbers = RandomNumbers(args) if preserve_rng_state else None
        ctx.casting = autocast.settings.kept()
        ctx.places = [place for place, item in enumerate(args) if isinstance(item, Tensor)]
        ctx.others = [None if isinstance(item, Tensor) else item for item in args]
        ctx.save_for_backward(*(args[place] for place in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call it again, recording, and run a backward from its results."""
        if state.local.current_task.is_restricted:
            raise RuntimeError(
                "When use_reentrant=True, a checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward()\nPass use_reentrant=False, or call .backward() without `inputs`."
            )
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        detached = detach_variable(tuple(inputs))
        numbers = nullcontext() if ctx.numbers is None else ctx.numbers.again()
        with numbers, autocast.settings.again(ctx.casting), enable_grad():
            outputs = ctx.run_function(*detached)
        given = [(o, g) for o, g in zip(_tuple(outputs), grads) if isinstance(o, Tensor) and o.requires_grad]
        if not given:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        autograd.backward([o for o, _ in given], [g for _, g in given])
        return None, None, *(item.grad if isinstance(item, Tensor) else None for item in detached)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
