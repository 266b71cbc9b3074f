"""A debugger in another process, with the verbs and the records of :class:`gradscope.inspect.Debugger`."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from ..debuggee.broadcast import Broadcast, Listener, OutputWriter
from ..debuggee.waiters import Waiters
from ..debugging.session.session_errors import SessionError
from ..debugging.session.session_records import (
    BackwardFinding,
    FrameRecord,
    ModuleRecord,
    ParameterRecord,
    TaskRecord,
    ThreadRecord,
    VariableRecord,
    WatchRecord,
    WhatIf,
)
from ..debugging.stops.breakpoints import Breakpoint
from ..records.records import (
    DebuggerEvent,
    Index,
    NodeRecord,
    SessionState,
    StopReason,
    TensorPage,
    TensorSubject,
    TensorSummary,
)
from . import messages as m
from .addresses import Address, reach
from .channel import Channel, ChannelError
from .handshake import PATIENCE, shake_hands
from .remote_errors import remote_error
from .remote_nodes import KnownNodes, RemoteNodes
from .stopped_process import is_stopped, let_go_on
from .verb_table import GOING_ON, result_type

__all__ = ["RemoteDebugger", "connect", "introduced"]

Ended = Callable[[], tuple[SessionState, str]]

_KEPT_LOG = 100_000
_SOON = 5.0
_GLANCE = 0.2
"""Seconds between two looks at whether a program that owes an answer has been stopped."""

_GONE = "the program is gone"


class _NoAnswerError(SessionError):
    """A program, which a signal may have stopped, leaves a question open that waits for nothing."""


class _HeldError(_NoAnswerError):
    """A signal has stopped the program: what has been sent to it waits for it to go on."""


def connect(address: Address, token: bytes = b"") -> RemoteDebugger:
    """Attach to a program.

    Parameters
    ----------
    address : Address
        Where it listens.
    token : bytes
        What it was told to ask for; nothing for a Unix socket.

    Raises
    ------
    AddressError
        If nothing listens there.
    ChannelError
        If what listens there is another version, does not know the token, or has another front.
    """
    channel: Channel[Any] = Channel(reach(address), m.FromProgram)
    try:
        hello, welcome = introduced(channel, token)
    except ChannelError as error:
        if "\n" in str(error):
            raise
        raise ChannelError(
            f"{error}\nLook whether it is a program under gradscope that listens at {address}, and whether that runs: "
            "`kill -CONT PROCESS` lets a stopped one go on."
        ) from None
    return RemoteDebugger(channel, hello.pid, welcome)


def introduced(channel: Channel[Any], token: bytes = b"", patience: float = PATIENCE) -> tuple[m.Hello, m.Welcome]:
    """Return what a program says first, after the handshake.

    Raises
    ------
    ChannelError
        As for :func:`connect`; the channel is closed then.
    """
    try:
        hello = shake_hands(channel, "front", token, patience)
        welcome = channel.receive(patience)
        if isinstance(welcome, m.Refused):
            raise ChannelError(welcome.text)
        if not isinstance(welcome, m.Welcome):
            raise ChannelError("the program has closed the connection")
    except BaseException:
        channel.close()
        raise
    return hello, welcome


class RemoteDebugger:
    """A session with a program in another process.

    Verbs return when the program has taken them, as those of :class:`~gradscope.inspect.Debugger` do, and raise what
    those raise. What is read (:attr:`state`, :attr:`nodes`, :attr:`watches`, ...) is what the program told last;
    records of nodes are asked for when they are read.

    Parameters
    ----------
    channel : Channel
        After the handshake.
    pid : int
        The program's process.
    welcome : Welcome
        What it has said first.

    Attributes
    ----------
    title : str
        What is being debugged.
    pid : int
        The program's process.
    log : list of str
        What logpoints have printed.
    before_stop : callable
        Called before anybody is told that the program has stopped: what it has written until then is taken first.
    owned : bool
        Whether this front has started the program, which ends with it.
    typing : callable or None
        Takes what a person types for the program; None where that is not typed here.
    resizing : callable or None
        Takes the columns and rows that the program's terminal is to have; None where it has none of its own.
    start_again : callable or None
        Ends the process, starts another one and calls :meth:`attach`; None where this front has not started it.
    how_it_ended : callable or None
        Tells, when the connection has ended though nobody has left, how the process has: the state and the reason.
    runs_unseen : bool
        Whether the connection has ended and the process, which this front has started, has not: `reason` says why.
    here : bool
        Whether `pid` is the number of a process of this machine, at whose state the front can look.
    """

    def __init__(self, channel: Channel[Any], pid: int, welcome: m.Welcome) -> None:
        self.title = welcome.title
        self.log: list[str] = []
        self.before_stop: Callable[[], None] = lambda: None
        self.how_it_ended: Ended | None = None
        self.here = channel.peer == pid
        self.owned = False
        self.exit_status: int | None = None
        self.typing: Callable[[bytes], None] | None = None
        self.resizing: Callable[[int, int], None] | None = None
        self.start_again: Callable[[], None] | None = None
        self._waiting: dict[int, Future[Any]] = {}
        self._next = itertools.count(1).__next__
        self._broadcast = Broadcast(lambda: self.state)
        self._changed = threading.RLock()
        self._waiters = Waiters()
        self.attach(channel, pid, welcome)

    def attach(self, channel: Channel[Any], pid: int, welcome: m.Welcome) -> None:
        """Replace the process, which has ended, by another one that runs the same program."""
        self.pid = pid
        self._channel = channel
        self._standing = welcome.standing
        self._nodes = self._nodes_of(welcome.standing, None)
        self._gone = ""
        self.runs_unseen = False
        self._left = False
        self._silent = self._pausing = False
        self._held = ""
        # The request that a held program goes on with: answers to earlier ones tell where it stood before.
        self._due = 0
        self.exit_status = None
        threading.Thread(target=self._take_all, args=(channel,), name="gradscope-wire", daemon=True).start()

    # --- where the program stands ---

    @property
    def state(self) -> SessionState:
        """Running, paused before or after a node, replaying, finished, failed, or not started."""
        return self._standing.state

    @property
    def reason(self) -> StopReason | None:
        """Why the program last stopped, or how the cursor got where it is."""
        return self._standing.reason

    @property
    def ended(self) -> bool:
        """Whether the program has come to its end."""
        return self._standing.ended

    @property
    def task_index(self) -> int:
        """Which backward is shown, from 1; 0 before the first."""
        return self._standing.task_index

    @property
    def task_count(self) -> int:
        """How many backwards there were when the program last reported."""
        return self._standing.task_count

    @property
    def nodes(self) -> Sequence[NodeRecord]:
        """The nodes of the backward that is shown, in the engine's order."""
        return self._nodes

    @property
    def current(self) -> int:
        """The node where the program has stopped, or the cursor is; -1 for none."""
        return self._standing.current

    @property
    def live(self) -> int:
        """The node where the program stands, wherever the cursor is; -1 outside a backward."""
        return self._standing.live

    @property
    def recorded(self) -> bool:
        """Whether there are nodes in the past to look at."""
        return self._standing.recorded and not self._gone

    @property
    def tasks(self) -> tuple[TaskRecord, ...]:
        """The backwards in progress, the outermost first."""
        return self._standing.tasks

    @property
    def threads(self) -> tuple[ThreadRecord, ...]:
        """The threads that have called backward()."""
        return self._standing.threads

    @property
    def watches(self) -> tuple[WatchRecord, ...]:
        """The watch expressions, with their values at the last stop."""
        return self._standing.watches

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """The breakpoints, by number."""
        return [Breakpoint.told(**msgspec.structs.asdict(point)) for point in self._standing.breakpoints]

    @property
    def catching(self) -> dict[str, bool]:
        """The kinds of trouble at which the session stops."""
        return dict(self._standing.catching)

    @property
    def limits(self) -> dict[str, float]:
        """The numbers beyond which there is a finding."""
        return dict(self._standing.limits)

    @property
    def record_always(self) -> bool:
        """Whether nodes are recorded while the program runs free too; may be set."""
        return self._standing.record_always

    @record_always.setter
    def record_always(self, on: bool) -> None:
        self._ask(m.RecordAlways(on))

    @property
    def node(self) -> NodeRecord:
        """The current node, with all that is known of it."""
        return self.inspect(self.current)

    @property
    def traceback(self) -> str:
        """The program's traceback, if it raised."""
        return self._conclude().traceback

    def __repr__(self) -> str:
        return f"<RemoteDebugger: process {self.pid}, {self._gone or self.state}>"

    # --- going on ---

    def start(self) -> None:
        """Start the program, and stop at the first node of its first backward."""
        self._ask(m.Start())

    def step(self, n: int = 1) -> None:
        """Run `n` nodes."""
        self._ask(m.Step(n))

    def into(self) -> None:
        """Stop after the current node has run."""
        self._ask(m.Into())

    def out(self) -> None:
        """Run until the backward of the current module has ended."""
        self._ask(m.Out())

    def cont(self) -> None:
        """Run to the next breakpoint."""
        self._ask(m.Continue())

    def run_to(self, index: int) -> None:
        """Run until a node is about to run."""
        self._ask(m.RunTo(index))

    def until(self, target: int | str) -> None:
        """Run to a node by its number, or to the next that a spec names."""
        self._ask(m.Until(target))

    def next_backward(self) -> None:
        """Run to the first node of the next backward."""
        self._ask(m.NextBackward())

    def pause(self) -> None:
        """Stop before the next node."""
        self._pausing = True
        self._ask(m.Pause())

    def abort(self) -> None:
        """End the program; does nothing if it is gone, or does not answer."""
        if not self._gone:
            try:
                self._ask(m.Abort())
            except _NoAnswerError:
                self._silent = True

    def detach(self) -> None:
        """Detach: the program runs on; the process of one that has ended, and that this front has started, ends."""
        self._left = True
        if not self._gone:
            with contextlib.suppress(ChannelError):
                self._channel.send(m.Request(self._next(), m.Leave()))

    def leave(self) -> None:
        """End the program if this front has started it, and let it run on otherwise."""
        if self.owned:
            self.abort()
        else:
            self.detach()

    def wait(self, timeout: float | None = None) -> SessionState:
        """Block until the program is paused, has ended or is gone.

        Returns
        -------
        SessionState
            ``RUNNING`` after a timeout, in seconds.
        """
        self._waiters.wait(self._stands, timeout)
        with self._changed:  # with the state come the nodes, and all else that has changed
            return self._standing.state

    def _stands(self) -> bool:
        """Whether the program is paused or has ended; where a signal holds it instead, that is said."""
        if self._standing.state is not SessionState.RUNNING:
            return True
        self._look_whether_held()
        return False

    def wait_for_end(self, timeout: float) -> bool:
        """Return whether the program has ended, or is gone, after so many seconds at most."""
        return self._waiters.wait(lambda: self._standing.ended, timeout)

    def conclusion(self) -> tuple[int, str]:
        """Return the exit status for whoever ran the debugger, and the line that explains it."""
        found = self._conclude()
        return found.status, found.text

    restarts_in = "a new process"
    """What :meth:`restart` starts the program in."""

    def restart(self) -> None:
        """End the program and start it anew, in another process; stop at the first node of its first backward.

        Breakpoints but those on saved tensors, watches, limits and whether all is recorded stay.

        Raises
        ------
        SessionError
            If this front has not started the program.
        """
        if self.start_again is None:
            raise SessionError(
                "the program was not started by the debugger, so it cannot be started again\n"
                "`quit` leaves it running; start it anew where it was started."
            )
        before = self._standing
        self.start_again()
        for point in before.breakpoints:
            if Breakpoint.told(point.id, point.spec).on_write:  # its memory was the former process's
                continue
            options = {"condition": point.condition, "temporary": point.temporary, "log": point.log}
            added = self.add_breakpoint(point.spec, **options)  # type: ignore[arg-type]
            if not point.enabled:
                self.enable_breakpoint(added.id, False)
        for kind, on in before.catching.items():
            self.catch(kind, on)
        for name, value in before.limits.items():
            if value != self.limits[name]:
                self.set_limit(f"{name}={value:.17g}")
        for watch in before.watches:
            self.add_watch(watch.expression)
        if before.record_always:
            self.record_always = True
        self.start()

    # --- going through the past ---

    def back(self, n: int = 1) -> None:
        """Go `n` nodes back."""
        self._ask(m.Back(n))

    def reverse_continue(self) -> None:
        """Go back to where a breakpoint would have stopped."""
        self._ask(m.ReverseContinue())

    def goto(self, index: int) -> None:
        """Go to a recorded node of this backward."""
        self._ask(m.Goto(index))

    def go_live(self) -> None:
        """Go to where the program is."""
        self._ask(m.GoLive())

    # --- where to stop, what to show ---

    def add_breakpoint(
        self, spec: str, *, condition: str | None = None, temporary: bool = False, log: str | None = None
    ) -> Breakpoint:
        """Set a breakpoint; see :meth:`gradscope.inspect.Debugger.add_breakpoint`."""
        number = self._ask(m.AddBreakpoint(spec, condition, temporary, log))
        return next(point for point in self.breakpoints if point.id == number)

    def remove_breakpoint(self, id: int) -> None:
        """Remove a breakpoint."""
        self._ask(m.RemoveBreakpoint(id))

    def enable_breakpoint(self, id: int, enabled: bool = True) -> None:
        """Let a breakpoint stop the program, or not."""
        self._ask(m.EnableBreakpoint(id, enabled))

    def ignore_breakpoint(self, id: int, count: int) -> None:
        """Pass a breakpoint by the next `count` times."""
        self._ask(m.IgnoreBreakpoint(id, count))

    def catch(self, kind: str, on: bool = True) -> None:
        """Stop at trouble of a kind, or do not."""
        self._ask(m.Catch(kind, on))

    def set_limit(self, setting: str) -> None:
        """Set a number beyond which there is a finding."""
        self._ask(m.SetLimit(setting))

    def add_watch(self, expression: str) -> WatchRecord:
        """Evaluate an expression at every stop."""
        found: WatchRecord = self._ask(m.AddWatch(expression))
        return found

    def remove_watch(self, id: int) -> None:
        """Remove a watch."""
        self._ask(m.RemoveWatch(id))

    def follow_thread(self, number: int) -> None:
        """Stop in this thread only."""
        self._ask(m.FollowThread(number))

    # --- looking and changing ---

    def inspect(self, index: int) -> NodeRecord:
        """Return all that is known of a node."""
        found: NodeRecord = self._ask(m.Inspect(index))
        return found

    def records(self, start: int, stop: int) -> list[NodeRecord]:
        """Return some of :attr:`nodes`, with the gradients seen so far in numbers."""
        found: list[NodeRecord] = self._ask(m.Records(start, stop))
        return found

    def evaluate_text(self, expression: str) -> str:
        """Return the ``repr`` of an expression's value, made on the program's thread."""
        return str(self._ask(m.Evaluate(expression)))

    def elements(self, expression: str, start: int = 0, stop: int = 1 << 20) -> TensorPage:
        """Return elements of an expression's value, which is a tensor, an array or a number, in C order.

        Raises
        ------
        TypeError
            If it is something else.
        """
        found: TensorPage = self._ask(m.Elements(expression, start, stop))
        return found

    def tensor_page(self, subject: TensorSubject, index: Sequence[Index]) -> TensorPage:
        """Return a part of a tensor: for each dimension one place, or where the part begins and ends there."""
        found: TensorPage = self._ask(m.PageOfTensor(subject, tuple(index)))
        return found

    def tensor_summary(self, subject: TensorSubject) -> TensorSummary:
        """Return a tensor in numbers."""
        found: TensorSummary = self._ask(m.SummaryOfTensor(subject))
        return found

    def find_element(self, subject: TensorSubject, sought: str, after: int = -1) -> int | None:
        """Return the place of an element in C order: the next ``'not finite'``, the ``'largest'``, ``'smallest'``."""
        found: int | None = self._ask(m.FindElement(subject, sought, after))
        return found

    def save_tensor(self, subject: TensorSubject, path: str) -> str:
        """Write a tensor into a new file where the program runs, as ``numpy.save`` does; return its path."""
        return str(self._ask(m.SaveTensor(subject, path)))

    def derivative(self, node_name: str) -> tuple[tuple[str, str], ...]:
        """Return, for each argument of the operator of a node, the expression of its gradient."""
        found: tuple[tuple[str, str], ...] = self._ask(m.Derivative(node_name))
        return found

    def execute(self, statement: str) -> None:
        """Run a Python statement in the paused function of the program."""
        self._ask(m.Execute(statement))

    def variables(self) -> list[VariableRecord]:
        """Return the variables of the function that is paused."""
        return list(self._ask(m.Variables()))

    def frames(self) -> tuple[FrameRecord, ...]:
        """Return the functions of the program that wait, the innermost first, with their variables."""
        return tuple(self._ask(m.Frames()))

    def losses(self) -> tuple[float, ...]:
        """Return the losses of the latest backwards, the oldest first."""
        return tuple(self._ask(m.Losses()))

    def where(self) -> str:
        """Return the user's lines that led to this backward, as a traceback has them."""
        return str(self._ask(m.Where()))

    def whereabouts(self) -> str:
        """Return the collective that the main thread waits in, or its line; the program need not be paused.

        Of one that has been asked to stop, and waits, it is said when it will. Of one that does not answer, because a
        signal holds it, that is returned.
        """
        try:
            place = str(self._ask(m.Whereabouts()))
        except _NoAnswerError as error:
            return str(error).removeprefix(f"{self.title} has been ")
        return f"{place}; it will stop when that returns" if self._pausing and place.startswith("waits in") else place

    def main_thread_stack(self) -> str:
        """Return the functions that the main thread is in, as a traceback has them; it need not be paused."""
        try:
            return str(self._ask(m.MainThreadStack()))
        except _NoAnswerError as error:
            return f"{error}\n"

    def explain(self) -> str:
        """Return a longer explanation of why the program has stopped here."""
        return str(self._ask(m.Explain()))

    def findings(self) -> tuple[BackwardFinding, ...]:
        """Return what is wrong with the backward that is shown, the worst first."""
        return tuple(self._ask(m.Findings()))

    def backward_records(self, number: int) -> list[NodeRecord]:
        """Return the nodes of a backward that is recorded, also of another than the one that is shown."""
        return list(self._ask(m.BackwardRecords(number)))

    def modules(self) -> tuple[ModuleRecord, ...]:
        """Return the modules that have run, and those inside of them."""
        return tuple(self._ask(m.Modules()))

    def parameters(self) -> tuple[ParameterRecord, ...]:
        """Return every parameter, with what the backward that is shown and the latest ones have brought it."""
        return tuple(self._ask(m.Parameters()))

    def parameter_names(self) -> list[str]:
        """Return the paths of the parameters of the modules that have run."""
        return list(self._ask(m.ParameterNames()))

    def memory(self, loss: str = "") -> str:
        """Return what the graph of a loss keeps in memory, as text."""
        return str(self._ask(m.Ask("memory", loss)))

    def gradient_flow(self, model: str = "") -> str:
        """Return how gradients flow through a model, as text."""
        return str(self._ask(m.Ask("gradient_flow", model)))

    def why_no_grad(self, subject: str) -> str:
        """Return why a tensor has no gradient, as text."""
        return str(self._ask(m.Ask("why_no_grad", subject)))

    def set_grad(self, slot: int, value: float | str) -> None:
        """Replace a gradient of the paused node by a number, or the value of an expression there."""
        self._ask(m.SetGrad(slot, str(value)))

    def zero_grad_slot(self, slot: int) -> None:
        """Set a gradient of the paused node to zero."""
        self._ask(m.ZeroGrad(slot))

    def scale_grad(self, slot: int, factor: float) -> None:
        """Multiply a gradient of the paused node."""
        self._ask(m.ScaleGrad(slot, factor))

    def skip(self) -> None:
        """Leave out the node that is about to run."""
        self._ask(m.Skip())

    def what_if(self, slot: int, value: float | str) -> WhatIf:
        """Return what would become of the parameters if an incoming gradient were another."""
        found: WhatIf = self._ask(m.WhatIfAsked(slot, str(value)))
        return found

    # --- listening ---

    @property
    def output(self) -> list[str]:
        """The lines that the program has written, as far as :meth:`take_output` was given them."""
        return self._broadcast.output

    @property
    def unfinished(self) -> str:
        """The line that the program has begun and not ended: a question, most often."""
        return self._broadcast.unfinished

    def add_listener(self, callback: Listener) -> Callable[[], None]:
        """Call ``callback(event)`` at every change, on a thread of the connection; return a function that ends it."""
        return self._broadcast.listen(callback)

    def echo_to(self, write: OutputWriter) -> Callable[[], None]:
        """Pass the text that :meth:`take_output` is given on to `write`; return a function that ends it."""
        return self._broadcast.echo_to(write)

    @property
    def types(self) -> bool:
        """Whether the program reads what is typed here."""
        return self.typing is not None

    def type_line(self, text: str) -> None:
        """Type a line on the program's terminal.

        Raises
        ------
        SessionError
            If it has none here.
        OSError
            If the program is gone.
        """
        if self.typing is None:
            raise SessionError("the program has no terminal here: what it reads is typed where it was started")
        self.typing(f"{text}\n".encode())

    def resize_terminal(self, columns: int, rows: int) -> None:
        """Give the program's terminal another size; nothing is done where it has none of its own here."""
        if self.resizing is not None:
            self.resizing(columns, rows)

    def take_output(self, text: str, stream: str = "stdout") -> None:
        """Take what the program has written; the reader of its terminal or its pipes calls this."""
        self._broadcast.write(text, stream)

    # --- sending and receiving ---

    def _conclude(self) -> m.Conclusion:
        try:
            found: m.Conclusion = self._ask(m.Conclude())
        except SessionError as error:
            return m.Conclusion(1 if self.exit_status is None else self.exit_status, self._gone or str(error), "")
        return found

    def _ask(self, verb: m.Verb) -> Any:
        """Carry out a verb in the program; return or raise what it does."""
        with self._changed:
            if self._gone:
                raise SessionError(f"{self._gone}: nothing can be asked of it\n`quit` leaves.")
            number = self._next()
            future = self._waiting[number] = Future()
        try:
            answer = self._answer(number, verb, future)
        except ChannelError:
            if isinstance(verb, GOING_ON):  # the program has gone on, and has ended
                return None
            raise SessionError(f"{self._gone or _GONE}: it has not answered") from None
        except _HeldError:
            if not isinstance(verb, GOING_ON) or isinstance(verb, m.Abort):
                raise
            self._count_as_running(number)  # it goes on with that as soon as it can: that it is held has been told
            return None
        except _NoAnswerError:
            raise
        except BaseException:
            self._give_up(number)
            raise
        finally:
            self._waiting.pop(number, None)
        if isinstance(answer, m.Failure):
            raise remote_error(answer.error, answer.text)
        kind = result_type(type(verb))
        return None if kind is None else msgspec.msgpack.decode(answer.result, type=kind)

    def _answer(self, number: int, verb: m.Verb, future: Future[Any]) -> Any:
        """Send a verb, and return the answer to it."""
        request = m.Request(number, verb)  # type: ignore[arg-type]
        if self._held:
            if isinstance(verb, m.Abort) and self.owned:  # to end, it must run
                let_go_on(self.pid)
            self._look_whether_held()
            if self._held and not isinstance(verb, GOING_ON):
                # What nobody takes would fill the connection, and hold the front too.
                raise _HeldError(self._held)
        if isinstance(verb, m.Abort | m.Whereabouts | m.MainThreadStack) or self._silent:  # it waits for nothing else
            self._channel.send(request)
            if isinstance(verb, m.Abort) and self.owned:
                let_go_on(self.pid)
            return self._wait_for(future, _SOON)
        if not isinstance(verb, GOING_ON) or threading.current_thread() is not threading.main_thread():
            self._channel.send(request)
            return self._wait_for(future)
        # Ctrl-C on this thread must not cut the message in two: the verb is carried out all the same.
        sender = threading.Thread(target=self._send, args=(request, future), daemon=True)
        try:
            sender.start()
            return self._wait_for(future)
        except KeyboardInterrupt:
            with contextlib.suppress(TimeoutError):
                future.exception(_SOON)  # the answer says whether the program runs
            raise

    def _wait_for(self, future: Future[Any], patience: float = math.inf) -> Any:
        """Return an answer; of a program that does not answer, or that a signal holds, none is waited for."""
        deadline = time.monotonic() + (0 if self._silent else patience)
        while True:
            left = max(0.0, deadline - time.monotonic())
            with contextlib.suppress(TimeoutError):
                return future.result(0 if self._held else min(left, _GLANCE))
            self._look_whether_held()
            if self._held:
                raise _HeldError(self._held)
            if not left:
                raise _NoAnswerError(f"{self.title} (process {self.pid}) does not answer: has it been stopped?")

    def _look_whether_held(self) -> None:
        """Note whether a signal holds the program, and say so where that is new."""
        text = f"{self.title} has been stopped by a signal; `kill -CONT {self.pid}` lets it go on"
        with self._changed:  # another thread may look at the same time
            before, self._held = self._held, text if self.here and is_stopped(self.pid) else ""
            new = bool(self._held) and not before
        if new:
            self._add_to_log((text,))

    def _count_as_running(self, number: int) -> None:
        with self._changed:
            self._due = number
            self._standing = msgspec.structs.replace(self._standing, state=SessionState.RUNNING)
        self._broadcast.tell(DebuggerEvent("state", self.state, self.reason))

    def _send(self, request: m.Request, future: Future[Any]) -> None:
        try:
            self._channel.send(request)
        except ChannelError as error:
            if not future.done():
                future.set_exception(error)

    def _give_up(self, number: int) -> None:
        """Give up waiting for an answer, after Ctrl-C."""
        with contextlib.suppress(ChannelError):
            self._channel.send(m.Cancel(number))

    def _take_all(self, channel: Channel[Any]) -> None:
        problem = ""
        try:
            while (message := channel.receive()) is not None:
                self._take(message)
                if isinstance(message, m.Refused):
                    problem = message.text
        except ChannelError as error:
            problem = str(error)
        finally:
            channel.close()
            if channel is self._channel:
                self._end(problem)

    def _take(self, message: m.FromProgram) -> None:
        self._silent = False
        if self._held:  # the program may have sent this before the signal came
            self._look_whether_held()
        if isinstance(message, m.Reply | m.Failure):
            if message.id >= self._due:
                self._stand(message.standing)
            future = self._waiting.get(message.id)
            if future is not None and not future.done():
                future.set_result(message)
        elif isinstance(message, m.Changed):
            self._stand(message.standing)
            self._broadcast.tell(DebuggerEvent(message.kind, self.state, self.reason))
        elif isinstance(message, m.Logged):
            lines = (f"({message.lost:,} lines before are lost)",) if message.lost else ()
            self._add_to_log((*lines, *message.lines))

    def _add_to_log(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.log.append(line)
            self._broadcast.tell(DebuggerEvent("log", self.state, text=line))
        del self.log[:-_KEPT_LOG]

    def _stand(self, standing: m.Standing) -> None:
        """Keep where the program stands, unless a newer message has come before."""
        if self.state is SessionState.RUNNING and standing.state is not SessionState.RUNNING:
            self._pausing = False
            self.before_stop()
        with self._changed:
            if standing.serial > self._standing.serial:
                self._nodes = self._nodes_of(standing, self._nodes)
                self._standing = standing
                self.exit_status = standing.exit_status
                self._waiters.wake()

    def _nodes_of(self, standing: m.Standing, before: RemoteNodes | None) -> RemoteNodes:
        known = before.known if before is not None else None
        number, count = standing.arrangement, standing.node_count
        if known is None or (known.arrangement, known.count) != (number, count):
            known = KnownNodes(
                number,
                count,
                lambda start, stop: self._unless_gone(m.Nodes(number, start, stop)) or [],
                lambda: self._unless_gone(m.Norms(number)),
            )
        elif before is not None and standing.state is SessionState.RUNNING:
            return before
        return RemoteNodes(known)

    def _unless_gone(self, verb: m.Verb) -> Any:
        """Return the answer to a verb; None where the program has gone."""
        try:
            return self._ask(verb)
        except SessionError:
            return None

    def _end(self, problem: str) -> None:
        """Note that the connection has ended."""
        state, text = SessionState.FINISHED, problem or "has ended, or let its front go"
        if self.how_it_ended is not None and not self._left:
            state, text = self.how_it_ended()
        with self._changed:
            self._gone = text if text == problem else f"{self.title} {text}"
            serial = self._standing.serial + 1
            reason = StopReason("finished", self._gone)
            self._standing = msgspec.structs.replace(
                self._standing, serial=serial, state=state, reason=reason, ended=True, exit_status=self.exit_status
            )
            waiting = list(self._waiting.values())
            self._waiters.wake()
        for future in waiting:
            if not future.done():
                future.set_exception(ChannelError(text))
        self._broadcast.tell(DebuggerEvent("state", state, reason))
