"""Guards of observers: an error of gradscope's own, while an event is told, does not reach the program."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..output.error_text import error_text
from .protocol import Observer

__all__ = ["OWN_ERROR", "fault_of", "guard_events", "guarded", "not_looked_into", "own_error"]

OWN_ERROR = "gradscope's own code failed"
"""How all that is said of such an error begins."""

raising = False
"""Whether errors of gradscope's own are raised all the same: in tests of its own code."""

_EVENTS = frozenset(name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_"))
_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def guarded(
    method: Callable[..., Any], failed: Callable[[Any, Exception], None], *, unless: str = ""
) -> Callable[..., Any]:
    """Return a method that hands its errors to ``failed(self, error)``, and returns None then.

    It is written out for the method's arguments: events come at every operator and node, and to pack what they are
    told with takes as long as all the rest.

    Parameters
    ----------
    unless : str
        The attribute of the object (``'fault'``) that keeps the method from being called where it is true.

    Examples
    --------
    >>> class Halves:
    ...     def half(self, number):
    ...         return 1 / number
    >>> Halves.half = guarded(Halves.half, lambda self, error: print(type(error).__name__))
    >>> Halves().half(2)
    0.5
    >>> Halves().half(0)
    ZeroDivisionError
    """
    given = "*given"
    code = method.__code__ if isinstance(method, FunctionType) else None
    if code is not None and not (method.__defaults__ or code.co_kwonlyargcount or code.co_flags & _MORE):
        given = ", ".join(f"given{number}" for number in range(1, code.co_argcount))
    lines = [
        f"def told(self, {given}):",
        *([f"    if self.{unless}:", "        return None"] if unless else []),
        "    try:",
        f"        return method(self, {given})",
        "    except Exception as error:",
        "        failed(self, error)",
    ]
    scope: dict[str, Any] = {"method": method, "failed": failed}
    exec(compile("\n".join(lines), f"{__file__} (a guard)", "exec"), scope)
    guard: Callable[..., Any] = functools.wraps(method)(scope["told"])
    guard.guards = method  # type: ignore[attr-defined]
    return guard


def guard_events(observer: type[Observer], guard: Callable[[Callable[..., Any]], Any]) -> None:
    """Guard all methods of an observer to which events are told, its own and those that it inherits.

    Parameters
    ----------
    guard : callable
        Returns the guard of a method.
    """
    for name in dir(observer):
        if name in _EVENTS or name.startswith("on_"):
            method = getattr(observer, name)
            if method is not getattr(Observer, name, None) and not hasattr(method, "guards"):
                setattr(observer, name, guard(method))


def fault_of(error: Exception) -> str:
    """Return an error of our own in one line, and where in our code it was raised; in tests of ours, raise it."""
    if raising:
        raise error
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
    told = error_text(error).partition("\n")[0]
    return f"{type(error).__name__}{told and f': {told}'}{place}"


def own_error(fault: str) -> str:
    """Return what is said of an error that :func:`fault_of` has put into words."""
    return f"{OWN_ERROR}; please report it: {fault}"


def not_looked_into(name: str, fault: str) -> str:
    """Return what a report says of a part of it that an error of ours has cost."""
    return f"{name}, where {own_error(fault)}"
