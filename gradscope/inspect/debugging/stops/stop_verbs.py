"""What a person does with breakpoints and watches, whether the nodes are a program's or a recording's."""

from __future__ import annotations

from ..session.session_records import WatchRecord
from .breakpoints import Breakpoint, BreakpointTable
from .watches import WatchList

__all__ = ["StopVerbs"]


class StopVerbs:
    """The verbs that need nothing but the tables; adding, catching and passing by are the session's own."""

    _table: BreakpointTable
    _watches: WatchList

    def _tell(self, kind: str) -> None:
        """Tell listeners that the ``"breakpoints"`` or the ``"watches"`` have changed."""
        raise NotImplementedError(f"{type(self).__name__} does not define _tell()")

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """The breakpoints, by number."""
        return self._table.all()

    def remove_breakpoint(self, id: int) -> None:
        """Remove a breakpoint by its number.

        Raises
        ------
        BreakpointError
            If there is none of that number.
        """
        self._table.remove(id)
        self._tell("breakpoints")

    def enable_breakpoint(self, id: int, enabled: bool = True) -> None:
        """Let a breakpoint stop the program, or not.

        Raises
        ------
        BreakpointError
            If there is none of that number.
        """
        self._table.find(id).enabled = enabled
        self._tell("breakpoints")

    @property
    def watches(self) -> tuple[WatchRecord, ...]:
        """The watch expressions, with their values at the last stop."""
        return self._watches.all()

    def remove_watch(self, id: int) -> None:
        """Remove a watch by its number.

        Raises
        ------
        ValueError
            If there is none of that number.
        """
        self._watches.remove(id)
        self._tell("watches")

    def _added(self, id: int) -> WatchRecord:
        """Tell of a new watch, and return it."""
        self._tell("watches")
        return next(watch for watch in self._watches.all() if watch.id == id)
