"""The debugger session: start a program, stop it inside its backward passes, look, change, go on.

A :class:`Debugger` has no face. Line mode and the terminal UI are faces: they call its verbs, which return at once,
and learn from :meth:`Debugger.wait` or a listener that the program has stopped. The program runs on a thread of its
own; everything that touches its tensors is done by that thread, at the gate where it waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .adapters import Adapter, NativeAdapter
from .breakpoints import Breakpoint, BreakpointTable
from .broadcast import Broadcast, Listener
from .gate import Gate, ProgramAborted
from .program import CallProgram, Program
from .records import DebuggerEvent, NodeRecord, SessionState, StopReason
from .session import Order, Session
from .standing import Standing

__all__ = ["Debugger", "SessionError"]

T = TypeVar("T")


class SessionError(RuntimeError):
    """A verb that makes no sense in the state the session is in."""


class Debugger:
    """A session with one program.

    Parameters
    ----------
    program : Program
        What to run; see :meth:`for_script` and :meth:`for_call`.
    adapter : Adapter, optional
        The framework; gradscope's own runtime by default.

    Attributes
    ----------
    title : str
        What is being debugged: the script's path, or the function's name.

    Notes
    -----
    Verbs (:meth:`start`, :meth:`step`, :meth:`into`, :meth:`out`, :meth:`cont`, :meth:`run_to`,
    :meth:`next_backward`) return at once, with the state already ``RUNNING``; :meth:`wait` blocks until the next stop.
    Before :meth:`start`, the first verb starts the program: ``step()`` to the first node of the first backward,
    ``cont()`` to the first breakpoint. Verbs raise :class:`SessionError` while the program runs and after it has
    ended.

    :meth:`inspect`, :meth:`evaluate`, :meth:`set_grad` and their kin run on the paused program's thread and block until
    it has answered; call them from a worker thread where blocking matters.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect import Debugger
    >>> w = gs.tensor([1.0, 2.0], requires_grad=True)
    >>> session = Debugger.for_call((w * w).sum().backward)
    >>> session.add_breakpoint("op:Mul").id
    1
    >>> session.cont()
    >>> session.wait().value, session.reason.text
    ('paused before', 'breakpoint 1 (op:Mul)')
    >>> [node.name for node in session.nodes], session.current
    (['SumBackward0', 'MulBackward0', 'AccumulateGrad'], 1)
    >>> session.inspect(1).grad_outputs[0].norm
    1.4142135623730951
    >>> session.evaluate("saved['self'] * 10")
    array([10., 20.], dtype=float32)
    >>> session.set_grad(0, 0.5)
    >>> session.cont()
    >>> session.wait().value, w.grad
    ('finished', tensor([1., 2.]))
    """

    def __init__(self, program: Program, adapter: Adapter | None = None) -> None:
        self.title = program.title
        self._program = program
        self._changed = threading.Condition()
        self._state = SessionState.NOT_STARTED
        self._reason: StopReason | None = None
        self._broadcast = Broadcast(lambda: self._state)
        self._gate = Gate()
        self._table = BreakpointTable()
        self._session = Session(adapter or NativeAdapter(), self._gate, self._table, self._stopped)
        self._thread: threading.Thread | None = None
        self._last_stop: StopReason | None = None

    # --- making one ---

    @classmethod
    def for_script(cls, path: str, argv: Sequence[str] = (), *, adapter: Adapter | None = None) -> Debugger:
        """Return a session for a Python script, which will run as ``python path argv...`` runs it.

        Parameters
        ----------
        path : str
        argv : sequence of str
            The script's arguments.
        adapter : Adapter, optional

        Returns
        -------
        Debugger
            Not started.

        Raises
        ------
        FileNotFoundError, IsADirectoryError
            If there is no such script.
        """
        from .script import ScriptProgram

        return cls(ScriptProgram(path, argv), adapter)

    @classmethod
    def for_call(cls, function: Callable[[], Any], *, adapter: Adapter | None = None) -> Debugger:
        """Return a session for a function without arguments.

        Parameters
        ----------
        function : callable
        adapter : Adapter, optional

        Returns
        -------
        Debugger
            Not started.
        """
        return cls(CallProgram(function), adapter)

    # --- where it stands ---

    @property
    def state(self) -> SessionState:
        """Running, paused before or after a node, finished, failed, or not started."""
        return self._state

    @property
    def reason(self) -> StopReason | None:
        """Why the program last stopped."""
        return self._reason

    @property
    def task_index(self) -> int:
        """Which backward of the program this is, from 1; 0 before the first."""
        return self._session.task_count

    @property
    def nodes(self) -> list[NodeRecord]:
        """The nodes of the current backward, in the engine's order: run, current, and predicted.

        The list is the session's own: read it, do not change it. Its records are without gradients as long as nobody
        looked at the node; :meth:`inspect` gives the full one. Another backward brings another list.
        """
        return self._session.nodes

    @property
    def current(self) -> int:
        """Index into :attr:`nodes` of the node where the program has last stopped; -1 before the first stop."""
        return self._session.current

    @property
    def exit_status(self) -> int | None:
        """The program's own exit status, as python would return it; None before it has ended."""
        return self._program.exit_status

    @property
    def error(self) -> BaseException | None:
        """What the program raised, if it ended so."""
        return self._program.error

    @property
    def traceback(self) -> str:
        """The program's traceback, if it raised, without the debugger's own frames."""
        return self._program.traceback

    @property
    def output(self) -> list[str]:
        """Lines the program has written to stdout and stderr, without their ends; the last 100,000."""
        return self._broadcast.output

    def where(self) -> str:
        """Return the user's lines that led to this backward(), outermost first, as a traceback has them."""
        return self._session.where()

    # --- going on ---

    def start(self) -> None:
        """Start the program and stop at the first node of its first backward (or at an earlier breakpoint)."""
        self._go(Order("entry"))

    def step(self, n: int = 1) -> None:
        """Run `n` nodes and stop before the next; past the end of a backward, stop at the next one's first node."""
        if n < 1:
            raise ValueError(f"step() takes a positive number of nodes, got {n}")
        self._go(Order("step", count=n))

    def into(self) -> None:
        """From before a node, run it and stop after it, when what it produced can be seen; else like :meth:`step`."""
        self._go(Order("into"))

    def out(self) -> None:
        """Run until the backward of the current module has ended."""
        self._go(Order("out"))

    def cont(self) -> None:
        """Run to the next breakpoint, failure or the end of the program."""
        self._go(Order("cont"))

    def run_to(self, index: int) -> None:
        """Run until node number `index` of the current backward is about to run.

        Raises
        ------
        ValueError
            If there is no such node, or it has run.
        """
        last, here = len(self.nodes) - 1, self.current
        if not 0 <= index <= last:
            raise ValueError(f"there is no node {index} in this backward: its nodes are 0 to {last}")
        if self.state.paused and index <= here:
            raise ValueError(f"node {index} has already been reached: the program is {self.state.value} node {here}")
        self._go(Order("run-to", index=index))

    def next_backward(self) -> None:
        """Run to the first node of the next backward (or an earlier breakpoint)."""
        self._go(Order("entry"))

    def pause(self) -> None:
        """Ask the running program to stop before the next node it runs."""
        if self.state is not SessionState.RUNNING:
            raise SessionError(f"there is nothing to pause: the program is {self._words()}")
        self._session.pause_requested = True

    def abort(self) -> None:
        """End the program: at once if it is paused, at the next module call or node otherwise.

        What it had accumulated into ``.grad`` by then stays there.
        """
        self._session.abort_requested = True
        with self._changed:
            if self._state is SessionState.NOT_STARTED:
                self._state, self._reason = SessionState.FINISHED, StopReason("finished", "never started")
                self._changed.notify_all()
            elif self._state.paused:
                self._state = SessionState.RUNNING
                self._gate.abort()

    def wait(self, timeout: float | None = None) -> SessionState:
        """Block until the program is paused or has ended.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without end by default.

        Returns
        -------
        SessionState
            ``RUNNING`` after a timeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self._state is SessionState.RUNNING:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                # In slices, so that Ctrl-C reaches a main thread that waits here on every platform.
                self._changed.wait(0.5 if left is None else min(left, 0.5))
            return self._state

    # --- where to stop ---

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """The breakpoints, by number."""
        return self._table.all()

    def add_breakpoint(self, spec: str, *, condition: str | None = None, temporary: bool = False) -> Breakpoint:
        """Stop before every node that `spec` names.

        Parameters
        ----------
        spec : str
            ``'AddmmBackward0'``, ``'Addmm'`` or ``'op:Mul*'`` (operators; ``*`` and ``?`` as in file names),
            ``'node:12'`` (number in the engine's order), ``'param:fc1.weight'``, ``'mod:layers.*'``,
            ``'line:train.py:31'`` (the line that made the node), ``'nan'`` (where a NaN first appears) or ``'*'``.
            ``' if CONDITION'`` may follow.
        condition : str, optional
            A Python expression that must be true: ``'norm > 10'``, ``'isnan(grad)'``.
        temporary : bool
            Remove it when it stops the program.

        Returns
        -------
        Breakpoint

        Raises
        ------
        BreakpointError
            If the spec or the condition cannot be understood.
        """
        added = self._table.add(spec, condition=condition, temporary=temporary)
        self._broadcast.tell(DebuggerEvent("breakpoints", self._state))
        return added

    def remove_breakpoint(self, id: int) -> None:
        """Remove a breakpoint by its number.

        Raises
        ------
        BreakpointError
            If there is none of that number.
        """
        self._table.remove(id)
        self._broadcast.tell(DebuggerEvent("breakpoints", self._state))

    # --- looking and changing, on the program's own thread ---

    def inspect(self, index: int) -> NodeRecord:
        """Return everything known about a node of the current backward.

        Parameters
        ----------
        index : int

        Returns
        -------
        NodeRecord
            With the gradients seen so far. Saved tensors have their summaries if the node has not run and the program
            is paused.

        Raises
        ------
        ValueError
            If there is no such node.
        """
        if not 0 <= index < len(self.nodes):
            raise ValueError(f"there is no node {index} in this backward: it has {len(self.nodes)} nodes")
        if not self.state.paused:
            return self.nodes[index]
        return self._at_stop(lambda place: place.record(index))

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression where the program is paused.

        Parameters
        ----------
        expression : str
            Knows ``grad`` (the first incoming gradient), ``grads``, ``produced``, ``saved``, ``norm``, ``node``,
            ``index``, ``isnan``, ``isinf``, ``np``, and then the variables of the function that called backward().

        Returns
        -------
        object
            Tensors come back as NumPy arrays, copied.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        Exception
            What the expression raised.
        """
        return self._at_stop(lambda place: place.evaluate(expression))

    def evaluate_text(self, expression: str) -> str:
        """Return the ``repr`` of an expression's value, made on the program's thread.

        Parameters
        ----------
        expression : str
            As for :meth:`evaluate`.

        Returns
        -------
        str
        """
        return self._at_stop(lambda place: place.evaluate_text(expression))

    def set_grad(self, slot: int, value: Any) -> None:
        """Replace a gradient: an incoming one before the node, a produced one after it.

        Parameters
        ----------
        slot : int
            Which one, from 0.
        value : number, array, tensor or str
            A string is an expression as in :meth:`evaluate`; numbers and smaller shapes broadcast.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        ValueError, TypeError
            If there is no such gradient, or the value does not fit its shape and dtype.
        """
        self._edit(lambda place: place.set_grad(slot, value))

    def zero_grad_slot(self, slot: int) -> None:
        """Set a gradient to zero: an incoming one before the node, a produced one after it.

        Parameters
        ----------
        slot : int
        """
        self._edit(lambda place: place.set_grad(slot, 0))

    def scale_grad(self, slot: int, factor: float) -> None:
        """Multiply a gradient by a number.

        Parameters
        ----------
        slot : int
        factor : float
        """
        self._edit(lambda place: place.scale_grad(slot, factor))

    def _at_stop(self, function: Callable[[Standing], T]) -> T:
        return self._gate.submit(lambda: self._session.at_stop(function)).result()

    def _edit(self, change: Callable[[Standing], None]) -> None:
        self._at_stop(change)
        self._broadcast.tell(DebuggerEvent("state", self._state, self._reason))

    # --- listening ---

    def add_listener(self, callback: Listener) -> Callable[[], None]:
        """Call ``callback(event)`` when the state, the output or the breakpoints change.

        Parameters
        ----------
        callback : callable
            Called on whatever thread the change happens, often the program's: it must be quick, and must not call verbs
            or :meth:`wait`.

        Returns
        -------
        callable
            Ends it.
        """
        return self._broadcast.listen(callback)

    def conclusion(self) -> tuple[int, str]:
        """Return the exit status for whoever ran the debugger, and the line that explains it.

        Returns
        -------
        status : int
            The program's own if it is not zero; 1 if it raised, or never called backward(), or is being left where a
            backward failed.
        text : str
        """
        name = self.title
        if not self.state.ended:
            failed = self.reason is not None and self.reason.kind in ("exception", "violation")
            return int(failed), f"{name} was left before its end"
        if self._session.abort_requested:
            last = self._last_stop
            failed = last is not None and last.kind in ("exception", "violation")
            return int(failed), f"{name} was ended before its end; gradients accumulated so far stay in .grad"
        status = self.exit_status or 0
        if self.error is not None:
            return status or 1, f"{name} raised {type(self.error).__name__} (exit status {status or 1})"
        if not self._session.tasks_seen and status == 0:
            return 1, (
                f"{name} finished without calling backward(), so there was nothing to stop at.\n"
                "Call .backward() or gradscope.autograd.grad() in it, or pass it the arguments that make it train."
            )
        return status, f"{name} finished (exit status {status})"

    # --- inside ---

    def _go(self, order: Order) -> None:
        with self._changed:
            if self._state is SessionState.RUNNING or self._state.ended:
                raise SessionError(f"the program is {self._words()}")
            fresh = self._state is SessionState.NOT_STARTED
            self._state = SessionState.RUNNING
            if fresh:
                self._begin(Order("entry") if order.kind in ("step", "into", "out") else order)
            else:
                self._gate.go(order)
        self._broadcast.tell(DebuggerEvent("state", SessionState.RUNNING))

    def _begin(self, order: Order) -> None:
        self._session.order = order
        self._thread = threading.Thread(target=self._run, name="gradscope program", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._session.observing():
            self._program.run(self._broadcast.write)
        self._broadcast.flush()
        state = SessionState.FINISHED if self._program.error is None else SessionState.FAILED
        status = self._program.exit_status
        self._stopped(state, StopReason("finished", f"the program has ended (exit status {status})"))

    def _stopped(self, state: SessionState, reason: StopReason) -> None:
        with self._changed:
            if state.paused:
                if self._session.abort_requested:  # asked for while the program was on its way here
                    raise ProgramAborted
                self._last_stop = reason
            self._state, self._reason = state, reason
            self._changed.notify_all()
        self._broadcast.tell(DebuggerEvent("state", state, reason))

    def _words(self) -> str:
        return "running" if self._state is SessionState.RUNNING else f"{self._state.value}"
