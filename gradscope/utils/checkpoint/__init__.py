"""Checkpoints: activations are computed anew in the backward pass, and need no memory until then.

The variant that PyTorch recommends (``use_reentrant=False``) stands in :mod:`.frames`, the older one in
:mod:`.reentrant`. What is dear to compute can be kept all the same, as :mod:`.selective` does.

- :mod:`~.frames`: ``use_reentrant=False``, the variant that PyTorch recommends
- :mod:`~.reentrant`: ``use_reentrant=True``
- :mod:`~.selective`: which results are kept all the same
- :mod:`~.randomness`: the same random numbers the second time
- :mod:`~.settings`: ``set_checkpoint_early_stop`` and ``set_checkpoint_debug_enabled``
- :mod:`~.logs`: the operators of both times, for the error where they differ

References
----------
T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...nn.modules import Sequential
from ...runtime.user_warnings import warn
from .frames import CheckpointError, run_in_frame
from .randomness import get_device_states, set_device_states
from .reentrant import CheckpointFunction, check_backward_validity, detach_variable
from .selective import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts
from .settings import set_checkpoint_debug_enabled, set_checkpoint_early_stop

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def noop_context_fn() -> Contexts:
    """Return two contexts that do nothing: the default of :func:`checkpoint`.

    See Also
    --------
    checkpoint

    Examples
    --------
    >>> from gradscope.utils.checkpoint import noop_context_fn
    >>> forward, recomputation = noop_context_fn()
    >>> with forward, recomputation:
    ...     print("nothing has changed")
    nothing has changed
    """
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what its backward needs: that is computed again when it is needed.

    Parameters
    ----------
    function : callable
        Called with `args`, once now and once more in the backward pass; it must compute the same both times.
    *args
        Its arguments.
    use_reentrant : bool
        False: what is saved is replaced, and the graph is the usual one. True: the call is one node, whose backward
        runs the function again and a backward of its own; it works only where an argument requires grad, and not with
        ``autograd.grad()``. Without it there is a warning, and it is True, as in PyTorch.
    context_fn : callable
        Returns two context managers: around the call now, and around the call in the backward pass.
    determinism_check : str
        ``'default'`` compares shapes, dtypes and devices of what is saved both times, ``'none'`` does not.
    debug : bool
        Note the operators of both calls, for the error message if they differ.
    early_stop : bool
        Stop computing again as soon as all that is needed is there.
    preserve_rng_state : bool
        Draw the same random numbers both times (True).
    **kwargs
        For `function`, if `use_reentrant` is False.

    Returns
    -------
    object
        What `function` returned.

    Raises
    ------
    ValueError
        If the options do not go together.
    CheckpointError
        In the backward pass, if `function` did not compute the same again.

    See Also
    --------
    checkpoint_sequential, autograd.graph.save_on_cpu

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import checkpoint
    >>> x = gs.ones(2, requires_grad=True)
    >>> y = checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([-2.4784, -2.4784])
    """
    use_reentrant = _chosen("checkpoint", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return run_in_frame(function, args, kwargs, preserve, context_fn(), determinism_check, debug, early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Sequential | Iterable[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call functions one after the other, in segments of which all but the last are checkpoints.

    Parameters
    ----------
    use_reentrant : bool
        See :func:`checkpoint`.

    Returns
    -------
    object
        What the last function returned.

    Raises
    ------
    ValueError
        If another keyword is given.

    See Also
    --------
    checkpoint

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import checkpoint_sequential
    >>> model = gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.Tanh(), gs.nn.Linear(3, 1))
    >>> checkpoint_sequential(model, 2, gs.ones(1, 2), use_reentrant=False).shape
    gradscope.Size([1, 1])
    """
    use_reentrant = _chosen("checkpoint_sequential", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions)
    size = len(steps) // segments
    starts = [number * size for number in range(segments)]
    for start in starts[:-1]:
        segment = _one_after_the_other(steps[start : start + size])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _one_after_the_other(steps[starts[-1] :])(input)


def _one_after_the_other(steps: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


def _chosen(name: str, use_reentrant: bool | None) -> bool:
    if use_reentrant is not None:
        return use_reentrant
    warn(
        f"{name}(): the use_reentrant parameter should be passed explicitly\n"
        "use_reentrant=False is recommended; without it, it is True.",
    )
    return True
