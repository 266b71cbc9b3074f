"""The settings of a session's stops, which a person changes: breakpoints, watches, threads."""

from __future__ import annotations

from typing import Any

from ...records.records import DebuggerEvent
from ..session.session_lifecycle import DebuggerCore
from ..session.session_records import TaskRecord, ThreadRecord, WatchRecord
from .breakpoint_specs import split_spec
from .breakpoints import Breakpoint, saved_tensor
from .stop_verbs import StopVerbs

__all__ = ["StopSettings"]


class StopSettings(StopVerbs, DebuggerCore):
    """Breakpoints, watches and threads of a session."""

    # --- breakpoints ---

    @property
    def catching(self) -> dict[str, bool]:
        """At which kinds of trouble the session stops: ``'violation'``, ``'exception'``, ``'nan'``, ``'inf'``."""
        return dict(self._table.caught)

    def add_breakpoint(
        self, spec: str, *, condition: str | None = None, temporary: bool = False, log: str | None = None
    ) -> Breakpoint:
        """Stop before every node that `spec` names.

        Parameters
        ----------
        spec : str
            ``'AddmmBackward0'``, ``'Addmm'`` or ``'op:Mul*'`` (operators; ``*`` and ``?`` as in file names),
            ``'node:12'`` (number in the engine's order), ``'param:fc1.weight'``, ``'mod:layers.3.*'`` (the
            module and all inside it),
            ``'line:train.py:31'`` (the line that made the node), ``'iter:3'`` (the first node of the third backward
            called from one line), ``'backward:3'`` (of the third of the program), ``'nan'`` or ``'inf'`` (where one
            first appears), ``'saved:12.result'`` (each write into what node 12 of this backward has saved so) or
            ``'*'``. ``' if CONDITION'`` or ``' and CONDITION'`` may follow; a condition alone is
            one for every node.
        condition : str, optional
            A Python expression that must be true: ``'norm > 10'``, ``'isnan(grad)'``, ``'norm > 2 * last.norm'`` (the
            same node in the iteration before), ``'changed(norm)'``.
        temporary : bool
            Remove it when it stops the program.
        log : str, optional
            An expression: print it and go on instead of stopping (a logpoint). See :attr:`log`.

        Raises
        ------
        BreakpointError
            If the spec or the condition cannot be understood, or there is no such saved tensor.
        NotParkedError
            If the spec names a saved tensor, and the program is not paused.
        """
        saved = saved_tensor(split_spec(spec)[0])
        memory = None if saved is None else self._there(lambda: self._session.saved_memory(*saved))
        added = self._table.add(spec, condition=condition, temporary=temporary, log=log, memory=memory)
        self._tell("breakpoints")
        return added

    breakpoint = add_breakpoint

    def ignore_breakpoint(self, id: int, count: int) -> None:
        """Pass a breakpoint by the next `count` times.

        Raises
        ------
        BreakpointError
            If there is none of that number.
        """
        if count < 0:
            raise ValueError(f"a breakpoint is passed by a number of times, got {count}")
        self._table.find(id).ignore = count
        self._tell("breakpoints")

    def catch(self, kind: str, on: bool = True) -> None:
        """Stop at trouble of a kind, or do not.

        Parameters
        ----------
        kind : str
            ``'violation'``, ``'exception'``, ``'nan'`` or ``'inf'``: all are on unless switched off.

        Raises
        ------
        BreakpointError
            If there is no such kind.
        """
        self._table.catch(kind, on)
        self._tell("breakpoints")

    # --- watches ---

    def add_watch(self, expression: str) -> WatchRecord:
        """Evaluate an expression at every stop, on the program's own thread.

        Parameters
        ----------
        expression : str
            As for :meth:`Debugger.evaluate`.

        Returns
        -------
        WatchRecord
            With its value, if the program is paused.

        Raises
        ------
        SyntaxError
            If it is not an expression.
        """
        id = self._watches.add(expression).id
        if self._state.paused:
            self._there(lambda: self._session.update_watches(id))
        return self._added(id)

    # --- names ---

    def add_module(self, module: Any) -> None:
        """Call the parameters of a module by their paths, though the session has not seen it run."""
        self._session.tracker.add_root(module)

    # --- threads and backwards in progress ---

    @property
    def threads(self) -> tuple[ThreadRecord, ...]:
        """The threads that have called backward() and run."""
        return self._session.threads.records()

    def follow_thread(self, number: int) -> None:
        """Stop in this thread only, from when the program goes on; the others run through.

        Raises
        ------
        ValueError
            If there is no such thread.
        """
        self._session.threads.choose(number)

    @property
    def tasks(self) -> tuple[TaskRecord, ...]:
        """The backwards in progress on the thread that is followed, the outermost first."""
        return self._session.tasks()

    def _tell(self, kind: str) -> None:
        self._session.listen_as_needed()
        self._broadcast.tell(DebuggerEvent(kind, self._state))
