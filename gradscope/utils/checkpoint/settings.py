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
    """Context manager: checkpoints made inside stop computing again as soon as they can, or do not."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Context manager: checkpoints made inside note their operators, or do not; None leaves it to their argument."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before
