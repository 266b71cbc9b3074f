"""Selective checkpoints: the results of chosen operators are kept, and not computed again.

An operator whose results are kept is called again all the same, so that the graph is the usual one; just its forward
does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from ...nn import functional
from ...runtime import state
from ...runtime.modes import no_grad
from ...runtime.ops.families import OPERATORS, PUBLIC

if TYPE_CHECKING:
    from ...runtime.ops.declaration.registry import Operator

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


class CheckpointPolicy(Enum):
    """The choice for an operator's results: they are kept (``SAVE``), or computed again (``RECOMPUTE``).

    ``PREFER`` leaves it to a compiler to do otherwise; here it means the same as ``MUST``.

    See Also
    --------
    create_selective_checkpoint_contexts : takes a function that returns one.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import CheckpointPolicy
    >>> [policy.name for policy in CheckpointPolicy]
    ['MUST_SAVE', 'PREFER_SAVE', 'MUST_RECOMPUTE', 'PREFER_RECOMPUTE']
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)

Policy = Callable[..., CheckpointPolicy]


class SelectiveCheckpointContext:
    """The facts about a call that its policy decides by.

    Attributes
    ----------
    is_recompute : bool
        Whether the function in the checkpoint is being called again.
    op_output : object
        What the operator returned; None while it is called again.

    See Also
    --------
    create_selective_checkpoint_contexts : calls the policy with one.

    Examples
    --------
    >>> import functools
    >>> import gradscope as gs
    >>> from gradscope.utils import checkpoint as cp
    >>> def policy(context, operator, *args, **kwargs):
    ...     print(type(context).__name__, context.is_recompute)
    ...     return cp.CheckpointPolicy.PREFER_RECOMPUTE
    >>> contexts = functools.partial(cp.create_selective_checkpoint_contexts, policy)
    >>> x = gs.zeros(2, requires_grad=True)
    >>> y = cp.checkpoint(lambda t: t.exp(), x, use_reentrant=False, context_fn=contexts)
    SelectiveCheckpointContext False
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _KeptResults:
    """The results of one call of an operator, and the versions of their memory."""

    def __init__(self, results: Any, output: Any) -> None:
        self._results: Any = results
        counters = [tensor._counter() for tensor in _tuple(output)]
        self._versions = [(counter, counter.version) for counter in counters]

    def taken(self, function: Any, mutable: bool) -> Any:
        """Return them, once."""
        results, self._results = self._results, None
        if results is None:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint.\nCall the function again, or checkpoint it without a policy."
            )
        if not mutable and any(counter.version != version for counter, version in self._versions):
            raise RuntimeError(
                f"Tensor cached during selective activation checkpoint has been mutated: a result of "
                f"{function.__name__}()\nDo not write it in place, or pass allow_cache_entry_mutation=True."
            )
        return results


class _SelectiveCheckpoint:
    """While it is on, it is asked about the operators of its thread."""

    def __init__(self, policy: Policy, kept: dict[Any, list[_KeptResults]]) -> None:
        self._policy, self._kept = policy, kept

    def __enter__(self) -> None:
        self._before, state.local.selective_checkpoint = state.local.selective_checkpoint, self
        state.add_modes(1)

    def __exit__(self, *exc_info: object) -> None:
        state.add_modes(-1)
        state.local.selective_checkpoint = self._before

    def take(self, op: Operator, arguments: tuple[Any, ...]) -> Any:
        """Return the results of an operator, to be used in the place of its forward's; None to compute them."""
        return None

    def keep(self, op: Operator, arguments: tuple[Any, ...], results: Any, output: Any) -> None:
        """Take notice of the results of an operator, and of the tensors made of them."""

    def _is_saved(self, function: Any, op: Operator, arguments: tuple[Any, ...], output: Any) -> bool:
        """Ask the policy, whose own operators are neither recorded nor asked about.

        A view costs nothing, and what draws random numbers draws them again, for those after it to be the same.
        """
        if op.view is not None or op.draws:
            return False
        context = SelectiveCheckpointContext(is_recompute=output is None, op_output=output)
        args = [value for p, value in zip(op.parameters, arguments, strict=True) if not p.keyword_only]
        kwargs = {p.name: value for p, value in zip(op.parameters, arguments, strict=True) if p.keyword_only}
        modes = state.local
        checkpoint, modes.selective_checkpoint = modes.selective_checkpoint, None
        try:
            with no_grad():
                return self._policy(context, function, *args, **kwargs) in _SAVED
        finally:
            modes.selective_checkpoint = checkpoint


class _KeptCall(_SelectiveCheckpoint):
    """Keeps results of the first call."""

    def keep(self, op: Operator, arguments: tuple[Any, ...], results: Any, output: Any) -> None:
        """Keep them if the policy says so."""
        function = _public_function(op)
        if self._is_saved(function, op, arguments, output):
            self._kept.setdefault(function, []).append(_KeptResults(results, output))


class _RecomputedCall(_SelectiveCheckpoint):
    """Has the results of the first call for the second one."""

    def __init__(self, policy: Policy, kept: dict[Any, list[_KeptResults]], mutable: bool) -> None:
        super().__init__(policy, kept)
        self._mutable = mutable

    def __enter__(self) -> None:
        super().__enter__()
        self._calls: dict[Any, int] = {}

    def take(self, op: Operator, arguments: tuple[Any, ...]) -> Any:
        """Return what was kept at this call of the operator."""
        function = _public_function(op)
        if not self._is_saved(function, op, arguments, None):
            return None
        number = self._calls.get(function, 0)
        self._calls[function] = number + 1
        kept = self._kept.get(function, [])
        if number >= len(kept):
            raise RuntimeError(
                f"{function.__name__}() call {number + 1} encountered during backward but not found in storage\n"
                "The function and the policy must do the same both times."
            )
        return kept[number].taken(function, self._mutable)


def _public_function(op: Operator) -> Any:
    """Return the function that programs know an operator by: its own, where it is part of another function."""
    name = op.name.partition(".")[0]
    return PUBLIC.get(name) or getattr(functional, name, op.function)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Callable[..., Any]], allow_cache_entry_mutation: bool = False
) -> tuple[_SelectiveCheckpoint, _SelectiveCheckpoint]:
    """Return the two contexts of a checkpoint in which the results of some operators are kept.

    Operators that make views, write in place or draw random numbers are not asked about: they run both times. In a
    checkpoint inside of this one the contexts of the inner one count.

    Parameters
    ----------
    policy_fn_or_list : callable or list of callable
        ``policy(ctx, op, *args, **kwargs)`` returns a :class:`CheckpointPolicy` for a call of the operator whose public
        function is `op` (``gs.mm``, ``nn.functional.linear``); it must say the same both times. `ctx` is a
        :class:`SelectiveCheckpointContext`. A list names the operators that are saved.
    allow_cache_entry_mutation : bool
        Whether a result that is kept may be written in place before it is used again.

    Returns
    -------
    tuple of two context managers
        For the `context_fn` of :func:`checkpoint`.

    Raises
    ------
    TypeError
        If it is neither a function nor a list.
    ValueError
        If a function in the list is no operator's.
    RuntimeError
        In the backward pass: if it is the second through the same checkpoint, if a result that is kept was written in
        place, or if the function called other operators than before.

    See Also
    --------
    checkpoint

    Examples
    --------
    >>> import functools
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = gs.ones(2, 2, requires_grad=True)
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, [gs.mm])
    >>> y = checkpoint(lambda t: gs.mm(t, t).sin(), x, use_reentrant=False, context_fn=contexts)
    >>> y.sum().backward()
    >>> x.grad
    tensor([[-1.6646, -1.6646],
            [-1.6646, -1.6646]])
    """
    policy = policy_fn_or_list if callable(policy_fn_or_list) else _saving(policy_fn_or_list)
    kept: dict[Any, list[_KeptResults]] = {}
    return _KeptCall(policy, kept), _RecomputedCall(policy, kept, allow_cache_entry_mutation)


def _saving(functions: Any) -> Policy:
    """Return the policy that saves the results of some operators."""
    if not isinstance(functions, (list, tuple)):
        raise TypeError(
            f"policy_fn_or_list must be either a function or a list of ops, not {type(functions).__name__}\n"
            "Give the operators' functions, such as [gs.mm, gs.bmm]."
        )
    known = [_public_function(op) for op in OPERATORS.values()]
    for function in functions:
        if function not in known:
            raise ValueError(
                f"Expected op in `op_list` to be the function of an operator but got: {function!r}\n"
                "Give the operators that it is made of; a policy function is told each of them."
            )

    def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in functions else CheckpointPolicy.PREFER_RECOMPUTE

    return policy
