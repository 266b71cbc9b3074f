"""What most instruments are: observers whose own errors do not reach the program, and that hear no more after one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from ...runtime.user_warnings import warn
from . import event_guards
from .event_guards import OWN_ERROR, fault_of, guard_events
from .protocol import Observer

__all__ = ["AdapterGuard", "GuardedObserver", "adapter_failed", "guarded", "guards_itself"]

Method = TypeVar("Method", bound=Callable[..., Any])


class GuardedObserver(Observer):
    """An observer that hears no more once it has failed, while the program goes on.

    Attributes
    ----------
    fault : str
        The error that it failed by, and the line; empty while it works.
    meant : tuple of type
        The errors that it raises for the program to hear of.

    See Also
    --------
    guarded : for what else calls it, such as the hooks of an optimizer.
    guards_itself : for what is called at every node.

    Examples
    --------
    >>> class Names(GuardedObserver):
    ...     def __init__(self):
    ...         self.seen = []
    ...
    ...     def module_entered(self, module):
    ...         self.seen.append(type(module).__name__)
    >>> observer = Names()
    >>> observer.module_entered(3)
    >>> observer.seen, observer.fault
    (['int'], '')
    """

    fault = ""
    meant: ClassVar[tuple[type[Exception], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard_events(cls, guarded)

    def fail(self, error: Exception) -> None:
        """Note an error of its own, and tell of the first; raise one that is meant.

        Parameters
        ----------
        error : Exception
            What one of its methods has raised.
        """
        if isinstance(error, self.meant):
            raise error
        self.give_up(fault_of(error))

    def give_up(self, fault: str) -> None:
        """Hear no more, for an error of its own or of a part of it; tell of the first.

        Parameters
        ----------
        fault : str
            As :func:`.fault_of` puts it.
        """
        if not self.fault:
            self.fault = fault
            with contextlib.suppress(Exception):  # what fails while an error is told is none of the program's
                self.report_fault(fault)

    def report_fault(self, fault: str) -> None:
        """Tell of its :attr:`fault`: a warning, unless it has a better way."""
        warn(f"{OWN_ERROR}, and {type(self).__name__} looks no further; please report it: {fault}")


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a :class:`GuardedObserver` that keeps its errors from whoever calls it."""
    return event_guards.guarded(method, _fail, unless="fault")


def _fail(observer: GuardedObserver, error: Exception) -> None:
    observer.fail(error)


def guards_itself(method: Method) -> Method:
    """Mark a method of a :class:`GuardedObserver` that hands its errors to :meth:`GuardedObserver.fail` itself.

    That spares what is called at every node a call around each.
    """
    method.guards = method  # type: ignore[attr-defined]
    return method


def adapter_failed(observers: Iterable[Observer], error: Exception) -> None:
    """Hand an error of an adapter's own, or of what it is made of, to all who listen there.

    Parameters
    ----------
    error : Exception
        It is raised where one who listens may have meant it to be: guarded ones raise what they mean alone.
    """
    listening = list(observers)
    guarded = [observer for observer in listening if isinstance(observer, GuardedObserver)]
    if len(guarded) < len(listening) or any(isinstance(error, observer.meant) for observer in guarded):
        raise error
    fault = fault_of(error)
    for observer in guarded:
        observer.give_up(fault)


class AdapterGuard:
    """A block of an adapter's own code around the program's: its errors go to :func:`adapter_failed`.

    Parameters
    ----------
    observers : sequence of Observer
        Those who listen.
    """

    __slots__ = ("_observers",)

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        adapter_failed(self._observers, error)
        return True
