"""Settings for all checkpoints of a block: whether they stop early, whether they note operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["debug_enabled", "early_stop_enabled", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop"]

# None leaves it to the argument of checkpoint().
_early_stop: bool | None = None
_debug: bool | None = None


def early_stop_enabled(given: bool) -> bool:
    """Return whether a checkpoint stops early, given its argument."""
    return given if _early_stop is None else _early_stop


def debug_enabled(given: bool) -> bool:
    """Return whether a checkpoint notes operators, given its argument."""
    return given if _debug is None else _debug


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Context manager: checkpoints made inside stop computing again as soon as they can, or do not.

    See Also
    --------
    gradscope.utils.checkpoint.checkpoint : takes it as ``early_stop`` for one checkpoint.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> def function(x):
    ...     y = x.exp()
    ...     print("reached the end")
    ...     return y + 1
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(function, gs.ones(2, requires_grad=True), use_reentrant=False)
    reached the end
    >>> y.sum().backward()
    reached the end
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Context manager: checkpoints made inside note their operators, or do not; None leaves it to their argument.

    See Also
    --------
    gradscope.utils.checkpoint.checkpoint : takes it as ``debug`` for one checkpoint.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import CheckpointError, checkpoint, set_checkpoint_debug_enabled
    >>> functions = iter([gs.exp, gs.neg])
    >>> x = gs.ones(2, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(True):
    ...     y = checkpoint(lambda t: next(functions)(t), x, use_reentrant=False)
    >>> try:
    ...     y.sum().backward()
    ... except CheckpointError as error:
    ...     print("exp" in str(error))
    True
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before
