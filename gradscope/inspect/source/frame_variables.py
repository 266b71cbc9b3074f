"""Variables of frames: read, and set, so that the program's own are as they were.

Before Python 3.13 ``f_locals`` of a function's frame is a dictionary that the frame keeps, and with it what it holds,
until the function returns; and when a trace or profile function returns, the variables become what is in there.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
import threading
from types import CodeType, FrameType
from typing import Any

__all__ = ["run_in", "variables_of"]

_COPIES = sys.version_info < (3, 13)


def variables_of(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of a frame, without keeping them alive.

    Returns
    -------
    dict of str to object
        The caller's own.

    Examples
    --------
    >>> import sys
    >>> def work(x):
    ...     return variables_of(sys._getframe())
    >>> work(3)
    {'x': 3}
    """
    kept = frame.f_locals
    found = dict(kept)
    unshared = sys.getrefcount(kept) <= 3  # these are the frame, `kept`, and the argument of getrefcount()
    copied = _COPIES and frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if copied and unshared and not _is_traced(frame):
        kept.clear()
    return found


def run_in(frame: FrameType, code: CodeType) -> None:
    """Run code in a frame, as if it stood there.

    Parameters
    ----------
    code : code
        A variable that it deletes is still there afterwards.

    Examples
    --------
    >>> import sys
    >>> def work(x):
    ...     run_in(sys._getframe(), compile("x = x + 1", "here", "exec"))
    ...     return x
    >>> work(3)
    4
    """
    names = frame.f_locals
    try:
        exec(code, frame.f_globals, names)
    finally:
        if _COPIES and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    del names
    variables_of(frame)  # the call itself keeps none of them


def _is_traced(frame: FrameType) -> bool:
    """Whether a trace or profile function may be at work on a frame: it would delete what has gone from there."""
    functions = (sys.gettrace, sys.getprofile, threading.gettrace, threading.getprofile)
    return frame.f_trace is not None or any(function() is not None for function in functions)
