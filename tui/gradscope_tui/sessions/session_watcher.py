"""Between a session and the widgets: reads the one when it tells of a change, and shows it on the others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.css.query import NoMatches
from textual.message import Message
from textual.worker import Worker

from gradscope.inspect.debugging.session.node_sequence import candidates_of
from gradscope.inspect.debugging.session.session_errors import SessionError
from gradscope_tui.actions import unavailable
from gradscope_tui.panes.frames_pane import FramesPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.modules_pane import ModulesPane
from gradscope_tui.sessions.running_progress import RunningProgress
from gradscope_tui.sessions.session_protocol import (
    Session,
    has_ended,
    is_past,
    is_paused,
)
from gradscope_tui.sessions.session_snapshot import Focus, Neighbour, Snapshot
from gradscope_tui.widgets.findings_bar import FindingsBar
from gradscope_tui.widgets.key_bar import KeyBar
from gradscope_tui.widgets.line_pane import LinePane
from gradscope_tui.widgets.norm_columns import NormScale
from gradscope_tui.widgets.status_bar import Status, StatusBar
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.debuggee.broadcast import OutputWriter
    from gradscope.inspect.debugging.session.session_records import FrameRecord
    from gradscope.inspect.records.records import DebuggerEvent, Location, NodeRecord, StopReason
    from gradscope_tui.terminal.paint_delay import PaintDelay

__all__ = ["MANY", "SessionChanged", "SessionWatcher", "unless_closed"]

Derivative = tuple[tuple[str, str], ...]

POLL = 1 / 10
"""Seconds between two looks at a session that is running."""

WAITING = 5
"""Looks after which a line that a script has begun and not ended is taken for a question."""

PATIENCE = 0.1
"""Seconds after which the inspector shows what it has, while the program is still asked for the rest."""

EXPECTED = frozenset({"step", "entry", "run-to", "replay", "live"})
"""Kinds of reasons for which a verb stops."""

ALARMS = frozenset({"exception", "nan", "inf", "violation"})
"""Kinds of reasons that are bad news."""

STOPPED_BY = {
    "exception": "stopped by an error",
    "nan": "stopped at a NaN",
    "inf": "stopped at an infinity",
    "violation": "stopped at a saved tensor that was written",
}
"""For kinds of reasons what is said of a stop whose reason stands in the line of findings."""

PAUSING = "stops before its next node"
"""What is said of a script that runs after it has been asked to pause."""

MOST_WAITING = 20_000_000
"""Characters of output that wait to be shown: a program that writes faster than anybody reads is not waited for."""

AT_ONCE, MOST_AT_ONCE = 2_000, 50_000
"""Lines and characters of output that are written at once: keys, and what is to be painted, come before the next."""

MANY = 10_000
"""Nodes up to which breakpoints are looked for on all of them while the screen waits."""


def _stops_later(place: str) -> bool:
    """Whether a program that is to stop is where it cannot."""
    return place.startswith("waits in")


def unless_closed() -> AbstractContextManager[None]:
    """Pass over what a message, or an answer, still wants to show while the app is being closed: its widgets go."""
    return contextlib.suppress(NoMatches)


class SessionChanged(Message):
    """The session has stopped, gone on, ended, printed something or changed its breakpoints.

    Many changes may be told by one message: whoever gets it reads the session itself.
    """


class SessionWatcher:
    """Hears of a session's changes, reads it and has the widgets show what it says.

    Parameters
    ----------
    app : App
        Has the widgets.
    session : Session
        The program under the debugger. Its immutable records are read and its verbs called, which return at once; what
        may block waits on a thread of its own.
    script : str
        What to call the program.
    stopped : callable
        Called when the session has stopped anew, with whether it did what it was told.
    refreshed : callable
        Called when what the session says has been shown.
    scale : NormScale
        What bars of norms stand for.
    painting : PaintDelay
        Waits for what is told of the node under the cursor.

    Attributes
    ----------
    scale : NormScale
        The same.
    pausing : bool
        Whether the program has been asked to pause.
    progress : RunningProgress
        How it gets on while it runs.
    """

    def __init__(
        self,
        app: App[Any],
        session: Session,
        script: str,
        stopped: Callable[[bool], None],
        refreshed: Callable[[], None],
        scale: NormScale,
        painting: PaintDelay,
    ) -> None:
        self.pausing = False
        self.progress = RunningProgress()
        self._app = app
        self._session = session
        self._script = script
        self._when_stopped = stopped
        self._when_refreshed = refreshed
        self.scale = scale
        self._snapshot = Snapshot(scale=scale)
        self._marks: tuple[object, frozenset[int]] = (None, frozenset())
        self._stop: object = None
        self._limits: dict[str, float] = {}
        self._pointed: tuple[int, Location | None] = (-1, None)
        self.starting = False
        self._task = 0
        self._present = (0, -1)
        self._printed: deque[tuple[str, str | None]] = deque()
        self._printing = threading.Lock()
        self._waiting = 0
        self._own_terminal = False
        self._stop_listening: Callable[[], None] = lambda: None
        self._stop_echo: Callable[[], None] = lambda: None
        self._question = "", 0
        self._derivatives: dict[str, Derivative] = {}
        self._modules_of = 0
        self._whereabouts = ""
        self._told = threading.Event()
        self._stale = threading.Event()
        self._painting = painting
        self._looking: Worker[None] | None = None
        self._looked_at: object = None

    def start(self) -> None:
        """Start to follow the session, and the session itself if it has not been started."""
        self._stop_listening = self._session.add_listener(self._listen)
        echo: Callable[[OutputWriter], Callable[[], None]] | None = getattr(self._session, "echo_to", None)
        self._own_terminal = echo is not None and getattr(self._session, "types", False)
        if echo is not None and self._own_terminal:
            self._stop_echo = echo(self._take_text)
        color = "" if getattr(self._session, "program", True) else "dim"
        for line in self._session.output:
            self._put(line, color)
        if self._session.state == "not started":
            self._session.start()
        self._app.set_interval(POLL, self.poll)
        self._stale.set()
        self.catch_up()

    def stop(self) -> None:
        """Hear no more of the session."""
        self._stop_listening()
        self._stop_echo()

    # On other threads ------------------------------------------------------------------------------------------------

    def _listen(self, event: DebuggerEvent) -> None:
        """Hear of a change on whatever thread it happens."""
        if event.kind == "output" and self._own_terminal:
            return  # the text has come as it was written
        if event.kind == "output":
            self.take_output(event.text, "warn" if event.stream == "stderr" else "")
        elif event.kind == "log":
            self.take_output(f"● {event.text}", "good")
        else:
            self._stale.set()
            self._tell()

    def take_output(self, line: str, color: str = "") -> None:
        """Take a line of output from whatever thread it comes."""
        self._put(line, color)

    def _take_text(self, text: str, stream: str = "stdout") -> None:
        """Take what the program has written on its terminal, as it comes."""
        self._put(text, None)

    def _put(self, text: str, color: str | None) -> None:
        """Keep what is to be shown; of a flood the oldest is dropped."""
        with self._printing:
            self._waiting += len(text) + 1
            self._printed.append((text, color))
            while self._waiting > MOST_WAITING and len(self._printed) > 1:
                self._waiting -= len(self._printed.popleft()[0]) + 1
        self._tell()

    def _tell(self) -> None:
        """Send one message for many changes."""
        if not self._told.is_set():
            self._told.set()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody looks any more
                self._app.post_message(SessionChanged())

    # On the app's thread ---------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Show what has changed."""
        self._told.clear()
        taken, lines, characters = [], 0, 0
        with self._printing:
            while self._printed and lines < AT_ONCE and characters < MOST_AT_ONCE:
                text, color = self._printed.popleft()
                self._waiting -= len(text) + 1
                taken.append((text, color))
                lines += 1 if color is not None else text.count("\n")
                characters += len(text)
        if self._printed:
            self._app.call_after_refresh(self._tell)
        with unless_closed():
            self._write(taken)
            if self._stale.is_set():
                self._stale.clear()
                self.refresh()

    def _write(self, taken: Iterable[tuple[str, str | None]]) -> None:
        """Show what the program has written, and what has been said about it, in the order in which it came."""
        log = self._app.query_one(LogPane)
        for raw, group in groupby(taken, lambda one: one[1] is None):
            if raw:
                log.feed("".join(text for text, _ in group))
            else:
                log.write([(line, color or "") for line, color in group])

    def poll(self) -> None:
        """Follow a session that is running."""
        if self._session.state == "running":
            self._asking_where: Worker[None] = self._app.run_worker(self._ask_where, group="where", exclusive=True)
            with unless_closed():
                self._show_question()
                self.refresh()
                self.look()

    async def _ask_where(self) -> None:
        """Ask a program that runs at which line it is, where it can be asked without stopping it."""
        ask: Callable[[], str] | None = getattr(self._session, "whereabouts", None)
        if ask is not None:
            with contextlib.suppress(RuntimeError, ValueError):  # the program has ended meanwhile
                self._whereabouts = await on_thread(ask)

    def _show_question(self) -> None:
        """Say it where a script that reads what is typed here has begun a line and does not end it: it may wait."""
        begun = str(getattr(self._session, "unfinished", "")) if self._own_terminal else ""
        self._question = begun, self._question[1] + 1 if begun == self._question[0] else 0
        self._app.query_one(LogPane).set_question(bool(begun) and self._question[1] >= WAITING)

    def refresh(self) -> None:
        """Read the session and show what it says; at a new stop every pane is told.

        A program that has only begun to run may have stopped again before anybody sees it: the screen stays as it is.
        So it does where the program is going at the moment, and tells nothing more: its end is a change of its own.
        """
        with contextlib.suppress(SessionError):
            self._refresh()

    def _refresh(self) -> None:
        if self.starting:
            self._app.query_one(StatusBar).show(Status(script=self._script, state="starting"))
            return
        if self._session.state == "running":
            self.progress.begin(self._session.task_count)
            if self.progress.is_quiet() and self._stop is not None:
                return
        else:
            self.progress.end()
            self._whereabouts = ""
            self._app.query_one(LogPane).set_question(False)
        snapshot = self._read()
        graph = self._app.query_one(GraphPane)
        for pane in self._app.query(LinePane):
            pane.set_class(snapshot.past, "-replaying")
        graph.update(snapshot)
        self._show_status()
        self.show_outline()
        self._app.query_one(KeyBar).show(unavailable(self._session))
        reason = snapshot.reason
        stop = (snapshot.state, self._task, snapshot.current, reason)
        limits, self._limits = self._limits, dict(self._session.limits)
        if snapshot.state != "running" and stop != self._stop:
            self._stop, self.pausing = stop, False
            self._pointed = -1, None
            for pane in self._app.query(LinePane):
                pane.stopped(snapshot)
            self._log_reason(reason)
            self._asking: Worker[None] = self._app.run_worker(self._ask_at_stop, group="stop", exclusive=True)
            self._when_stopped(snapshot.paused and reason is not None and reason.kind in EXPECTED)
        elif snapshot.state != "running" and limits != self._limits:
            self._asking = self._app.run_worker(self._ask_at_stop, group="stop", exclusive=True)
        if snapshot.state != "running":
            self.look()
        self._when_refreshed()

    def _read(self) -> Snapshot:
        """Read the session."""
        session = self._session
        state, reason, task, current = str(session.state), session.reason, session.task_index, session.current
        self._task = task
        paused, past = is_paused(state), is_past(state)
        if paused and not past:
            self._present = task, current
        shown = task if paused or has_ended(session) else self._present[0]
        # The loss that is known is that of the backward of the last stop, and no other's.
        known = state != "running" and shown == self._snapshot.shown_task
        self._snapshot = replace(
            self._snapshot,
            state=state,
            reason=reason,
            nodes=session.nodes,
            task=task if paused else session.task_count,
            shown_task=shown,
            current=current,
            live=self._present[1] if past and self._present[0] == task and not has_ended(session) else -1,
            breakpoints=tuple(session.breakpoints),
            catching=session.catching,
            watches=tuple(session.watches),
            losses=self._snapshot.losses if known else (),
        )
        return self._snapshot

    def show_outline(self) -> None:
        """Show, in the panes that follow the graph, what has been read of it and is folded there."""
        graph = self._app.query_one(GraphPane)
        self._snapshot = replace(self._snapshot, outline=graph.outline, folded=graph.folded)
        self._update_followers()

    def _update_followers(self) -> None:
        """Show the snapshot in all panes but the graph, which they follow."""
        for pane in self._app.query(LinePane):
            if not isinstance(pane, GraphPane):
                pane.update(self._snapshot)

    async def _ask_at_stop(self) -> None:
        """Ask what is known of the backward as a whole: what is wrong with it, the modules and the parameters."""
        with unless_closed(), contextlib.suppress(RuntimeError, ValueError):  # the program has gone on meanwhile
            found = tuple(await on_thread(self._session.findings))
            losses = tuple(await on_thread(self._session.losses))
            known, self._snapshot = self._snapshot, replace(self._snapshot, findings=found, losses=losses)
            self._app.query_one(FindingsBar).show(found)
            self._show_status()
            if found != known.findings:
                self._app.query_one(GraphPane).update(self._snapshot)
            self._update_followers()
            await self._ask_about_model()
            if self._inside_function() and self._snapshot.frames:
                self.point_at(self._snapshot.frames[0].location)

    def _inside_function(self) -> bool:
        """Whether the program waits at ``set_trace()``: what is of interest is that line and its variables."""
        reason = self._snapshot.reason
        return self._snapshot.paused and reason is not None and reason.kind == "trace"

    def ask_about_model(self) -> None:
        """Show the parameters or the functions that wait, in a pane that has not been seen before."""
        if self._session.state != "running":
            self._asking_model: Worker[None] = self._app.run_worker(
                self._ask_unless_running, group="model", exclusive=True
            )

    async def _ask_unless_running(self) -> None:
        with unless_closed(), contextlib.suppress(RuntimeError, ValueError):
            await self._ask_about_model()

    async def _ask_about_model(self) -> None:
        """Ask for modules where some are not known; for the parameters and the frames where they can be seen."""
        known = self._snapshot.modules
        if self._task and (self._modules_of != self._task or not known):
            self._modules_of = self._task
            modules = {record.path: record for record in await on_thread(self._session.modules)}
            if modules != known:
                self._snapshot = replace(self._snapshot, modules=modules)
                self._app.query_one(GraphPane).update(self._snapshot)
        if self._app.query_one(ModulesPane).display:
            parameters = tuple(await on_thread(self._session.parameters))
            self._snapshot = replace(self._snapshot, parameters=parameters)  # as it is by now
        if self._app.query_one(FramesPane).display or self._inside_function():
            frames = await self._ask_for_frames()
            self._snapshot = replace(self._snapshot, frames=frames)
        self._update_followers()

    async def _ask_for_frames(self) -> tuple[FrameRecord, ...]:
        """Ask for the functions that wait; a program that has ended has none, and a recording says why."""
        self._app.query_one(FramesPane).empty = str(getattr(self._session, "why_no_frames", ""))
        try:
            return tuple(await on_thread(self._session.frames))
        except RuntimeError:
            return ()

    def _log_reason(self, reason: StopReason | None) -> None:
        """Write down why it has stopped, where that is bad news, or too long for the status bar.

        The sign of a pause tells such a line from what the program prints.
        """
        if reason is not None and reason.kind in ALARMS:
            self._app.query_one(LogPane).write([(f"‖ {reason.text}", "bad")])
        elif reason is not None and not self._app.query_one(StatusBar).has_room(reason.text):
            self._app.query_one(LogPane).write([(f"‖ {reason.text}", "dim")])

    def _show_status(self) -> None:
        session, snapshot = self._session, self._snapshot
        reason, task, here = snapshot.reason, self._task, snapshot.here
        inside = [outer.number for outer in session.tasks[-2::-1]] if snapshot.paused else []
        rank: int | None = getattr(session, "rank", None)
        status = Status(
            script=self._script if rank is None else f"{self._script}  rank {rank}",
            state=snapshot.state,
            node=max(0, snapshot.current),
            total=len(snapshot.nodes),
            what=f"{here.name} {here.parameter or here.module}".rstrip() if here else "",
            why=self._why(),
            task=snapshot.task,
            tasks=session.task_count,
            inside=tuple(inside),
            live=snapshot.live,
            reached=self._present[1] if task == self._present[0] else len(snapshot.nodes),
            ended=snapshot.past and has_ended(session),
            breakpoints=len(snapshot.breakpoints),
            losses=snapshot.losses,
            alarm=reason is not None and reason.kind in ALARMS,
        )
        failed = {here.index} if here is not None and here.state == "failed" else ()
        self._app.query_one(StatusBar).show(status, self._marked(), frozenset(failed))

    def _why(self) -> str:
        """Return why the session has stopped, or of one that runs whether it is about to."""
        if self._snapshot.state == "running":
            if self.pausing:  # what waits in a collective stops when that returns, which it says
                return f"it {self._whereabouts}" if _stops_later(self._whereabouts) else PAUSING
            return self.progress.text(self._session.task_count, self._whereabouts)
        reason, found = self._snapshot.reason, self._snapshot.findings
        if reason is None:
            return ""
        # What the line of findings says below is not said twice.
        seen = bool(found) and found[0].kind == reason.kind and self._app.query_one(FindingsBar).display
        return STOPPED_BY.get(reason.kind, reason.text) if seen else reason.text

    def _marked(self) -> frozenset[int]:
        """Return the indices of the nodes with a breakpoint; looked for again only when it may have changed."""
        nodes = self._snapshot.nodes
        points = [point for point in self._snapshot.breakpoints if point.enabled]
        key = (self._task, len(nodes), tuple(point.id for point in points))
        if key == self._marks[0]:
            return self._marks[1]

        def find() -> frozenset[int]:
            looked_at = candidates_of(nodes)
            return frozenset(node.index for node in looked_at if any(point.matches(node) for point in points))

        self._marks = key, frozenset()
        if points and len(nodes) <= MANY:
            self._marks = key, find()
        elif points:
            self._marking: Worker[None] = self._app.run_worker(self._mark(key, find), group="marks", exclusive=True)
        return self._marks[1]

    async def _mark(self, key: object, find: Callable[[], frozenset[int]]) -> None:
        """Look for breakpoints on very many nodes, and show where they are."""
        marks = await on_thread(find, collect=False)
        if key == self._marks[0]:
            self._marks = key, marks
            self.refresh()

    # What the cursor is on -------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Show the node under the cursor in the panes that follow it."""
        self._painting.begin()
        self._looked_at = self._under_cursor()
        self._looking = self._app.run_worker(self._look, group="look", exclusive=True)

    def follow_cursor(self) -> None:
        """Show the node that the cursor has come to, unless the program is being asked about it already."""
        if not self.is_looking or self._looked_at != self._under_cursor():
            self.look()

    @property
    def is_looking(self) -> bool:
        """Whether an answer about the node under the cursor is awaited."""
        return self._looking is not None and not self._looking.is_finished

    def _under_cursor(self) -> object:
        return self._app.query_one(GraphPane).index, self._task, self._stop

    def point_at(self, line: Location) -> None:
        """Show a line of the program, until the cursor goes to another node."""
        self._pointed = self._app.query_one(GraphPane).index, line
        self.look()

    async def _look(self) -> None:
        """Show what is known about the node, and ask the program for the rest."""
        with unless_closed(), contextlib.suppress(SessionError):
            await self._look_closely()
            self._painting.end()

    async def _look_closely(self) -> None:
        graph, nodes = self._app.query_one(GraphPane), self._snapshot.nodes
        index = graph.index
        if not 0 <= index < len(nodes):
            self._focus_on(None)
            return
        node, derivative = nodes[index], self._derivatives.get(nodes[index].name, ())
        if self._session.state == "running":
            node = self._while_running(node)
        else:
            asked = asyncio.ensure_future(on_thread(lambda: self._ask_about(index)))
            try:
                done, _ = await asyncio.wait({asked}, timeout=PATIENCE)
                if not done:
                    self._focus_on(node, derivative)
                node, derivative = await asked
            except (RuntimeError, ValueError):  # the program has gone on meanwhile: what is known is shown
                pass
            finally:
                asked.cancel()
        self._focus_on(node, derivative)

    def _while_running(self, node: NodeRecord) -> NodeRecord:
        """Return a node of the last stop, which has run by now, with what has been read of it there."""
        focus = self._snapshot.focus
        if focus.node is not None and (focus.node.key, focus.task) == (node.key, self._snapshot.shown_task):
            node = focus.node
        return replace(node, state="done") if node.state == "current" else node

    def _ask_about(self, index: int) -> tuple[NodeRecord, Derivative]:
        """Ask for all that is known of a node, and, for its operator once, for the derivative."""
        node = self._session.inspect(index)
        if node.name not in self._derivatives:
            self._derivatives[node.name] = self._session.derivative(node.name)
        return node, self._derivatives[node.name]

    def _focus_on(self, node: NodeRecord | None, derivative: Derivative = ()) -> None:
        """Show a node in the panes that follow the cursor."""
        graph, nodes = self._app.query_one(GraphPane), self._snapshot.nodes

        def neighbour(index: int) -> Neighbour:
            found = nodes[index]
            return Neighbour(index, f"#{index} {found.operator} {found.parameter or found.module}".rstrip())

        targets = {}
        for edge in node.edges if node is not None else ():
            position = graph.position(edge.target_key)
            if position is not None and edge.target_key is not None:
                targets[edge.target_key] = neighbour(position)
        incoming = self._snapshot.outline.sources[node.index : node.index + 1] if node is not None else ()
        sources = tuple(neighbour(source) for found in incoming for source in found)
        line = self._pointed[1] if self._pointed[0] == graph.index else None
        users = (nodes[source.index].location for source in sources)
        used_at = next(filter(None, users), None) if node is not None and node.location is None else None
        state, task = str(self._session.state), self._snapshot.shown_task
        focus = Focus(node, targets, sources, derivative, line, used_at, state, task, graph.module)
        self._snapshot = replace(self._snapshot, focus=focus)
        with self._app.batch_update():
            self._update_followers()
