"""Hooks that change gradients, by name: what is left out where a node is run alone."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...program_files import is_library_file, source_name

__all__ = ["NodeHook", "frame_name", "hook_name"]


class NodeHook(NamedTuple):
    """A hook on a node, or on a tensor whose gradient the node is given.

    Attributes
    ----------
    name : str
        See :func:`hook_name`.
    before : bool
        Whether it runs before the node.
    """

    name: str
    before: bool


def hook_name(hook: Callable[..., Any]) -> str:
    """Return the name of a hook, and where a person's own is defined.

    Examples
    --------
    >>> import functools
    >>> hook_name(functools.partial(max)), hook_name(print)
    ('max', 'print')
    """
    while isinstance(hook, functools.partial):
        hook = hook.func
    code = getattr(hook, "__code__", None)
    if code is None or is_library_file(code.co_filename):
        return getattr(hook, "__name__", type(hook).__name__)
    return _code_name(code)


def frame_name(frame: FrameType) -> str:
    """Return the name of the hook that a frame of a person's own runs."""
    return _code_name(frame.f_code)


def _code_name(code: CodeType) -> str:
    return f"{code.co_name} ({os.path.basename(source_name(code.co_filename))}:{code.co_firstlineno})"
