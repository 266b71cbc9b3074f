"""The checkpoint by saved-tensor hooks: placeholders are saved, and tensors computed again when they are needed.

The graph is the usual one, so that gradients of gradients, ``autograd.grad()`` and nested checkpoints work.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ... import autograd
from ...runtime import autocast, state
from ...runtime.modes import enable_grad, saved_tensors_hooks
from ...runtime.tensor.creation import empty
from ...runtime.tensor.tensor import Tensor
from .logs import OperatorLog, difference
from .randomness import RandomNumbers
from .settings import debug_enabled, early_stop_enabled

__all__ = ["CheckpointError", "run_in_frame"]

_CHECKS = ["default", "none"]


class CheckpointError(RuntimeError):
    """A function in a checkpoint did not compute the same when it was called again.

    See Also
    --------
    checkpoint : with ``debug=True`` the message names the operators.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import CheckpointError, checkpoint
    >>> sizes = iter([2, 3])
    >>> y = checkpoint(lambda x: x.expand(next(sizes)).exp(), gs.ones(1, requires_grad=True), use_reentrant=False)
    >>> try:
    ...     y.sum().backward()
    ... except CheckpointError:
    ...     print("it computed something else")
    it computed something else
    """

    __module__ = "gradscope.utils.checkpoint"


class _RecomputedEnoughError(Exception):
    """All that is needed has been computed."""


class _NoBackward:
    """The key of saved tensors that are read outside of any backward."""


class _Placeholder:
    """Stands in the place of a saved tensor, which each backward computes for itself."""

    __slots__ = ("__weakref__", "tensors")

    def __init__(self) -> None:
        # The tensors, by the backward that has computed them, whose end removes them.
        self.tensors: weakref.WeakKeyDictionary[Any, Tensor] = weakref.WeakKeyDictionary()


class _Inputs(autograd.Function):
    """Saves the tensors among the arguments, so that their versions are checked and outer checkpoints know them."""

    @staticmethod
    def forward(ctx: Any, dummy: Tensor, *tensors: Tensor) -> Tensor:
        """Save them."""
        ctx.save_for_backward(*tensors)
        return empty((0,))


class _Arguments:
    """The arguments of a call, to call it with again."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self._places = [place for place, item in enumerate(args) if isinstance(item, Tensor)]
        self._others = [None if isinstance(item, Tensor) else item for item in args]
        tensors = [args[place] for place in self._places]
        self._node: Any = _Inputs.apply(empty((0,), requires_grad=True), *tensors).grad_fn

    def again(self) -> list[Any]:
        """Return them."""
        args = list(self._others)
        for place, tensor in zip(self._places, self._node.saved_tensors, strict=True):
            args[place] = tensor
        return args


class _Frame:
    """One call of a checkpointed function.

    Parameters
    ----------
    compute : callable
        Calls the function again.
    logs : tuple of OperatorLog, optional
        For the call, and the call in the backward pass.
    """

    def __init__(
        self, compute: Callable[[], Any], check: bool, early_stop: bool, logs: tuple[OperatorLog, OperatorLog] | None
    ) -> None:
        self.early_stop = early_stop
        # Until the call has returned, a backward inside of it computes again what has been saved so far.
        self.returned = False
        self.placeholders: list[weakref.ref[_Placeholder]] = []
        self._compute = compute
        self._facts: list[tuple[Any, ...]] | None = [] if check else None
        self._logs = logs

    def pack(self, tensor: Tensor) -> _Placeholder:
        """Return what is saved in the place of a tensor."""
        placeholder = _Placeholder()
        self.placeholders.append(weakref.ref(placeholder))
        if self._facts is not None:
            self._facts.append(_facts(tensor))
        return placeholder

    def unpack(self, placeholder: _Placeholder) -> Tensor:
        """Return the tensor, computed again if this backward has not done so."""
        task = state.local.current_task or _NoBackward()
        if task not in placeholder.tensors:
            self._compute_for(task)
        return placeholder.tensors[task]

    def _compute_for(self, task: Any) -> None:
        recomputation = _Recomputation(self, task)
        log: AbstractContextManager[Any] = nullcontext() if self._logs is None else self._logs[1].noting()
        try:
            with saved_tensors_hooks(recomputation.pack, _same), enable_grad(), log:
                self._compute()
        except _RecomputedEnoughError:
            pass
        if len(recomputation.facts) != len(self.placeholders):
            raise self.error(
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.placeholders)}\n"
                f"Number of tensors saved during recomputation: {len(recomputation.facts)}."
            )
        if self._facts is not None and self._facts != recomputation.facts:
            raise self.error(_changed(self._facts, recomputation.facts))

    def error(self, text: str) -> CheckpointError:
        """Return an error that says what to do."""
        if self._logs is not None:
            return CheckpointError(f"{text}\n{difference(self._logs[0].operators, self._logs[1].operators)}")
        return CheckpointError(
            f"{text}\nThe function must compute the same both times; checkpoint(..., debug=True) names the first "
            "operator that differs."
        )


class _Recomputation:
    """The call repeated in a backward pass: it fills the placeholders, in the order in which they were made."""

    def __init__(self, frame: _Frame, task: Any) -> None:
        self._frame, self._task = frame, task
        self.facts: list[tuple[Any, ...]] = []

    def pack(self, tensor: Tensor) -> Tensor:
        """Put a recomputed tensor into its placeholder."""
        place, placeholders = len(self.facts), self._frame.placeholders
        if place >= len(placeholders):
            if not self._frame.returned:
                return tensor.detach()
            raise self._frame.error(
                "trying to save more tensors during recomputation than during the original forward pass."
            )
        self.facts.append(_facts(tensor))
        placeholder = placeholders[place]()
        values = Tensor._wrap(tensor._array)  # detach() would be one more operator in the log
        values._vc = tensor._counter()
        if placeholder is not None:
            placeholder.tensors[self._task] = values
        if self._frame.early_stop and len(self.facts) == len(placeholders):
            raise _RecomputedEnoughError
        return values


def _same(value: Any) -> Any:
    return value


def _facts(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _changed(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> str:
    lines = ["Recomputed values for the following tensors have different metadata than during the forward pass."]
    for place, (one, two) in enumerate(zip(first, second)):
        if one != two:
            lines.append(f"tensor at position {place}:")
            lines += [f"saved metadata: {_text(one)}", f"recomputed metadata: {_text(two)}"]
    return "\n".join(lines)


def _text(facts: tuple[Any, ...]) -> str:
    shape, dtype, device = facts
    return f"{list(shape)}, {dtype}, {device}"


def run_in_frame(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve: bool,
    contexts: tuple[AbstractContextManager[Any], AbstractContextManager[Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    """Call a function, and keep of what it saves only how to compute it again.

    Parameters
    ----------
    function, args, kwargs, determinism_check, debug, early_stop
        As for :func:`checkpoint`.
    preserve : bool
        Whether the same random numbers are drawn again.
    contexts : tuple of two context managers
        Around the call, and around the call in the backward pass.

    Returns
    -------
    object
        What the function returned.
    """
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {_CHECKS}, but got {determinism_check}")
    if not state.local.grad_enabled:
        return function(*args, **kwargs)
    numbers = RandomNumbers((*args, kwargs)) if preserve else None
    casting = autocast.settings.kept()
    arguments = _Arguments(args)
    logs = (OperatorLog(), OperatorLog()) if debug_enabled(debug) else None
    first, second = contexts

    def compute() -> None:
        with nullcontext() if numbers is None else numbers.again(), autocast.settings.again(casting), second:
            function(*arguments.again(), **kwargs)

    frame = _Frame(compute, determinism_check == "default", early_stop_enabled(early_stop), logs)
    with saved_tensors_hooks(frame.pack, frame.unpack), first, nullcontext() if logs is None else logs[0].noting():
        result = function(*args, **kwargs)
    frame.returned = True
    return result
