"""What the doctor's watches are: observers whose own errors do not reach the program."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

from ...runtime.user_warnings import warn
from ..adapters import Observer

__all__ = ["Watch", "fault_of", "guarded", "not_looked_into"]

raising = False
"""Whether errors of watches are raised all the same: in tests of the watches."""

_EVENTS = frozenset(name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_"))


class Watch(Observer):
    """An observer that hears no more once it has failed, while the program goes on.

    Attributes
    ----------
    fault : str
        The error that it failed by, and the line; empty while it works.
    meant : tuple of type
        The errors that it raises for the program to hear of.

    See Also
    --------
    guarded : for what else calls a watch, such as the hooks of an optimizer.

    Examples
    --------
    >>> class Names(Watch):
    ...     def __init__(self):
    ...         self.seen = []
    ...
    ...     def module_entered(self, module):
    ...         self.seen.append(type(module).__name__)
    >>> watch = Names()
    >>> watch.module_entered(3)
    >>> watch.seen, watch.fault
    (['int'], '')
    """

    fault = ""
    meant: ClassVar[tuple[type[Exception], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in dir(cls):
            if name in _EVENTS or name.startswith("on_"):
                method = getattr(cls, name)
                if method is not getattr(Observer, name, None) and not hasattr(method, "guards"):
                    setattr(cls, name, guarded(method))


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a :class:`Watch` that keeps its errors from whoever calls it."""

    def told(self: Any, *args: Any) -> Any:
        if self.fault:
            return None
        try:
            return method(self, *args)
        except Exception as error:
            _note(self, error)
            return None

    def told_of_one(self: Any, given: Any) -> Any:
        if self.fault:
            return None
        try:
            return method(self, given)
        except Exception as error:
            _note(self, error)
            return None

    # Most events have one argument, and some come at every operator: to pack it takes as long as the rest.
    alone = isinstance(method, FunctionType) and method.__code__.co_argcount == 2 and not method.__defaults__
    guard = functools.wraps(method)(told_of_one if alone else told)
    guard.guards = method  # type: ignore[attr-defined]
    return guard


def fault_of(error: Exception) -> str:
    """Return an error of our own in one line, and where in our code it was raised; in tests of ours, raise it."""
    if raising:
        raise error
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
    told = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}{told and f': {told}'}{place}"


def not_looked_into(name: str, fault: str) -> str:
    """Return what a report says of a part of it that an error of ours has cost."""
    return f"{name}, where gradscope's own code failed; please report it: {fault}"


def _note(watch: Watch, error: Exception) -> None:
    if isinstance(error, watch.meant):
        raise error
    watch.fault = fault_of(error)
    with contextlib.suppress(UserWarning):  # where the program makes warnings errors, it is none of its errors
        warn(
            f"gradscope's own code failed, and {type(watch).__name__} looks no further; please report it: {watch.fault}"
        )
