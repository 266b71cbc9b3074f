"""What the doctor's watches are: observers whose own errors do not reach the program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Any, ClassVar

from ...runtime.user_warnings import warn
from ..adapters import Observer, event_guards
from ..adapters.event_guards import fault_of, guard_events

__all__ = ["Watch", "guarded", "not_looked_into"]


class Watch(Observer):
    """An observer that hears no more once it has failed, while the program goes on.

    Attributes
    ----------
    fault : str
        The error that it failed by, and the line; empty while it works.
    meant : tuple of type
        The errors that it raises for the program to hear of.
    at_leaves_alone : collection of str
        Which of its methods ``node_entered`` and ``node_exited`` do something at leaves alone.

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
    at_leaves_alone: ClassVar[Collection[str]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard_events(cls, guarded)

    def looks_into(self, task: Any) -> bool:
        """Whether nodes that are no leaves matter to it in a backward of which ``task_started`` has told."""
        return True


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a :class:`Watch` that keeps its errors from whoever calls it."""
    return event_guards.guarded(method, _note, unless="fault")


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
