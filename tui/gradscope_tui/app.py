"""The terminal app: what every key does, and how it is started."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import RenderableType
from textual import events, on
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, ComposeResult, SystemCommand
from textual.command import DiscoveryHit, Hits
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.system_commands import SystemCommandsProvider
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import WorkerFailed

from gradscope.inspect.output.number_format import count
from gradscope.inspect.output.terminal_text import say
from gradscope.inspect.records.object_search import setting_aside
from gradscope_tui.actions import answered_by, bindings, keymap_of, unavailable
from gradscope_tui.colors import SIXTEEN_COLORS
from gradscope_tui.command_line import CommandLine
from gradscope_tui.navigation import Navigation
from gradscope_tui.pane_layout import LOW, NARROW, VAST, WIDE, PaneLayout
from gradscope_tui.pane_verbs import PaneVerbs
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.diagram_pane import DiagramPane
from gradscope_tui.panes.findings_pane import FindingsPane
from gradscope_tui.panes.frames_pane import FramesPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane, printable
from gradscope_tui.panes.modules_pane import ModulesPane
from gradscope_tui.panes.source_pane import SourcePane
from gradscope_tui.refusal import refuse
from gradscope_tui.run_verbs import RunVerbs
from gradscope_tui.screens.confirm_screen import ConfirmScreen
from gradscope_tui.screens.help_screen import HelpScreen
from gradscope_tui.screens.main_screen import MainScreen
from gradscope_tui.screens.tensor_screen import TensorScreen
from gradscope_tui.sessions.saved_breakpoints import SavedBreakpoints
from gradscope_tui.sessions.saved_view import SavedView, View
from gradscope_tui.sessions.session_protocol import Session, has_ended, is_paused
from gradscope_tui.sessions.session_watcher import SessionWatcher, unless_closed
from gradscope_tui.sessions.traceback_line import raised_at
from gradscope_tui.settings import read_settings, settings_files
from gradscope_tui.terminal.ascii_text import AsciiText, speaks_ascii
from gradscope_tui.terminal.changed_cells import ChangedCells, ShownFrame
from gradscope_tui.terminal.paint_delay import PaintDelay
from gradscope_tui.terminal.pixel_graphics import PixelGraphics
from gradscope_tui.terminal.shutdown_signals import SIGNALLED, ended_by_signals
from gradscope_tui.terminal.terminal_output import TerminalAnswered, VisibleText, own_terminal
from gradscope_tui.widgets.cut_branches import CutFollowed
from gradscope_tui.widgets.findings_bar import FindingsBar
from gradscope_tui.widgets.graph_columns import GraphView
from gradscope_tui.widgets.key_bar import KeyBar, ranked
from gradscope_tui.widgets.labels import basename
from gradscope_tui.widgets.line_pane import LinePane, PaneGrid
from gradscope_tui.widgets.prompt_line import Prompt
from gradscope_tui.widgets.status_bar import StatusBar
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.debugger import Debugger
    from gradscope.inspect.recording import Recording

__all__ = ["GradscopeApp", "run_app", "run_session", "view_recording"]

LEAVE = 2.0
"""Seconds that an ended program is given to leave its backward."""


_VISIBLE, _ASCII = VisibleText(), AsciiText()


class PaletteInOrder(SystemCommandsProvider):
    """What the palette offers before anything is typed, in the order in which the app names it; Textual sorts it."""

    async def discover(self) -> Hits:
        """Yield the commands."""
        for title, text, callback, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(title, callback, help=text)


@answered_by(
    pane_layout=PaneLayout,
    run_verbs=RunVerbs,
    navigation=Navigation,
    pane_verbs=PaneVerbs,
    command_line=CommandLine,
)
class GradscopeApp(App[int]):
    """The debugger's terminal face.

    Its parts follow the session, lay out the panes and answer the keys; the app puts them together, hands them what the
    widgets tell, and knows how to begin and to end.

    Parameters
    ----------
    session : Session
        The program under the debugger, or a recording.
    script : str
        What to call it.
    breaks : SavedBreakpoints, optional
        Where its breakpoints are kept from one session to the next; nowhere by default.
    saved_view : SavedView, optional
        Where sizes, theme and watches are kept; nowhere by default.
    settings_files : sequence of Path
        Where settings are read from, those of the last win.
    """

    CSS_PATH = Path(__file__).with_name("gradscope_tui.tcss")
    TITLE = "gradscope"
    BINDINGS = bindings()
    COMMANDS = {PaletteInOrder}
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (NARROW, "-narrow"), (WIDE, "-wide"), (VAST, "-vast")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LOW, "-tall")]

    def __init__(
        self,
        session: Session,
        script: str = "",
        breaks: SavedBreakpoints | None = None,
        saved_view: SavedView | None = None,
        settings_files: Sequence[Path] = (),
    ) -> None:
        super().__init__()
        self.animation_level = "none"
        self.session = session
        self.script = script
        self.left = False
        self.failure: BaseException | None = None
        self.signalled = 0
        self._breaks = breaks
        self._saved_view = saved_view
        self._view = saved_view.load() if saved_view is not None else View()
        self._settings, self._wrong_settings = read_settings(settings_files)
        if self.console.color_system == "standard":
            self.register_theme(SIXTEEN_COLORS)
            self.theme = SIXTEEN_COLORS.name
        self._first_theme = self.theme
        self._watches_wait = bool(self._view.watches)
        self._on_terminal = ShownFrame()
        self._graphics = PixelGraphics(self._write_to_terminal, self._settings.graphics, os.environ)
        self._loop_to_tell: asyncio.AbstractEventLoop | None = None
        self._painting = PaintDelay(self)
        self.watcher = SessionWatcher(
            self, session, script, self._stopped, self._refreshed, self._settings.scale, self._painting
        )
        self.pane_layout = PaneLayout(self)
        parts = self, session, self.watcher, self.pane_layout
        self.run_verbs = RunVerbs(*parts)
        self.navigation = Navigation(*parts)
        self.pane_verbs = PaneVerbs(*parts, self._graphics)
        self.command_line = CommandLine(*parts, self.run_verbs, self.navigation, self.pane_verbs)

    # Begin -----------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Put the panes between status and keys."""
        yield StatusBar(id="status")
        yield FindingsBar(id="findings")
        yield from self.pane_layout.compose()
        yield KeyBar(id="keys")
        yield Prompt(id="prompt")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what every line passes on its way to the terminal."""
        return [*super().get_line_filters(), _VISIBLE, *([_ASCII] if speaks_ascii() and not self.is_web else [])]

    def on_mount(self) -> None:
        """Start."""
        self._loop_to_tell = asyncio.get_running_loop()
        self._graph = self.query_one(GraphPane)  # the pane keeps what it shows when the widgets are gone
        if self.signalled:
            self.run_worker(self._leave(), group="leave")
            return
        self.query_one(KeyBar).keys = self._settings.keys
        self.query_one(Prompt).answered = self.command_line.answer
        self.set_keymap(keymap_of(self._settings.keys))
        self.pane_layout.divide(self._view.columns, self._view.rows)
        chosen = self._settings.columns if self._view.graph_columns is None else self._view.graph_columns
        self._graph.set_view(GraphView(chosen))
        self._graph.set_folded(frozenset(self._view.folded))
        theme = self._view.theme or self._settings.theme
        if theme in self.available_themes:
            self.theme = theme
        self.pane_layout.arrange()
        for line in self._wrong_settings:
            self.watcher.take_output(line, "bad")
        if self._wrong_settings:
            refuse(self, self._wrong_settings[0])
        self._tell_restored()
        self.watcher.start()
        # Back from the shell: the terminal has forgotten the screen.
        self.app_resume_signal.subscribe(self, lambda _: self._paint_again())
        self.theme_changed_signal.subscribe(self, lambda _: self._redraw())

    def _tell_restored(self) -> None:
        """Set the breakpoints of the session before; tell of them and of the watches, which the first stop sets."""
        said = self._breaks.load(self.session) if self._breaks is not None else ""
        if watches := len(self._view.watches):
            watched = f"{count(watches, 'watch', 'watches')} of the last session (pane 6)"
            said = f"{said}; {watched}" if said else watched
        if said:
            self.watcher.take_output(said, "dim")
            self.notify(said, markup=False)

    def on_unmount(self) -> None:
        """Hear no more of the session."""
        self.watcher.stop()
        if self._saved_view is not None:
            self._saved_view.keep(self._view_now())

    def _view_now(self) -> View:
        """Return how the script is looked at; a theme that is the one that is set is not kept."""
        chosen = "" if self.theme in (self._settings.theme, self._first_theme) else self.theme
        watches = tuple(watch.expression for watch in self.session.watches)
        unset = self._view.watches if self._watches_wait else ()
        columns = self._graph.view.columns
        columns = None if columns == self._settings.columns else columns
        folded = tuple(sorted(self._graph.folded))
        return View(self.pane_layout.columns, self.pane_layout.rows, chosen, unset + watches, columns, folded)

    async def _set_watches(self) -> None:
        """Set the watches of the session before, now that there is a program to evaluate them."""
        for expression in self._view.watches:
            with suppress(RuntimeError, ValueError):
                await on_thread(partial(self.session.add_watch, expression))
        self.watcher.refresh()

    def get_default_screen(self) -> MainScreen:
        """Return the screen of the panes."""
        return MainScreen(id="_default")

    async def run_action(self, *args: Any, **kwargs: Any) -> bool:
        """Carry out an action, and paint when what follows from it at once is there."""
        self._painting.begin()
        return await super().run_action(*args, **kwargs)

    def on_idle(self) -> None:
        """Paint what has changed, but for an answer that comes in a moment."""
        if not self.watcher.is_looking:
            self._painting.end_soon()

    def _paint_again(self) -> None:
        self._on_terminal.forget()
        self.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Write what Textual wants painted anew, but no cell that stands on the terminal as it is to be."""
        update: Any = renderable
        if isinstance(renderable, (LayoutUpdate, ChopsUpdate)) and screen is self.screen:
            update = ChangedCells(self._on_terminal, screen._compositor.render_strips, self._graphics)
        super()._display(screen, update)

    def _write_to_terminal(self, text: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)
            self._driver.flush()

    @property
    def mouse(self) -> bool:
        """Whether the terminal is asked to report the mouse."""
        return self._settings.mouse

    def on_terminal_answered(self, message: TerminalAnswered) -> None:
        """Learn what the terminal can draw, and draw what is seen anew."""
        self._graphics.take(message.text)
        if isinstance(self.screen, TensorScreen):
            self.screen.show_anew()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Say something in passing, over a border; in two lines, over the line of keys too."""
        if self.screen_stack:
            room = self.size.width * 9 // 10 - 2  # what the style of toasts leaves for their text
            self.screen.set_class("\n" in message or cell_len(message) > room, "-long-toast")
            self.screen.set_class(self.size.height < LOW, "-low")
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def _redraw(self) -> None:
        for pane in self.query(LinePane):
            pane.redraw()

    def _handle_exception(self, error: Exception) -> None:
        """Leave with `failure` where a recording turns out to be damaged; every other error is one of ours."""
        cause = error.error if isinstance(error, WorkerFailed) else error
        if isinstance(cause, getattr(self.session, "damage", ())):
            self.failure, self.left = cause, True
            self.exit(2)
        else:
            super()._handle_exception(error)

    def on_key(self, event: events.Key) -> None:
        """Give the prompt what was typed, or pasted, at once with the key that opens it: that has gone to a pane."""
        entry = self.focused
        if isinstance(entry, Input) and event.is_printable and event.character:
            entry.insert_text_at_cursor(event.character)
            event.prevent_default()

    def _stopped(self, expected: bool) -> None:
        """Show what explains the stop: findings, variables, the line that wrote; go on with what was typed ahead."""
        reason = self.session.reason
        if reason is not None and reason.kind in ("nan", "inf", "violation"):
            self.pane_layout.show_beside(FindingsPane.NUMBER)
        if reason is not None and reason.kind == "trace":
            self.pane_layout.show_beside(FramesPane.NUMBER)
        if reason is not None and reason.kind == "violation" and reason.writes and reason.writes[-1].location:
            self.watcher.point_at(reason.writes[-1].location)
        if self.session.state == "failed" and (raised := raised_at(self.session.output)) is not None:
            self.pane_layout.uncover(SourcePane.NUMBER)
            self.watcher.point_at(raised)
        if self._watches_wait and is_paused(str(self.session.state)):
            self._watches_wait = False
            self.run_worker(self._set_watches(), group="watches")
        self.run_verbs.stopped(expected)

    def _refreshed(self) -> None:
        """Keep the breakpoints, and let a question that stands open be about the program as it is now."""
        if isinstance(self.screen, ConfirmScreen):
            self.screen.follow()
        problem = self._breaks.keep(self.session) if self._breaks is not None else ""
        if problem:
            refuse(self, problem)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Give the palette every action that can be done now, those of the pane that has the focus first."""
        own = self.pane.keys
        for action in ranked(unavailable(self.session), own):
            if action.id != "command_palette":
                keys = self._settings.keys.get(action.id, action.shown)
                title = f"{own.get(action.id, action.label)} ({keys})"
                yield SystemCommand(title, action.help, partial(self.run_action, action.id))
        yield from (c for c in super().get_system_commands(screen) if c.title in ("Theme", "Screenshot"))

    # What the widgets tell -------------------------------------------------------------------------------------------

    @property
    def pane(self) -> LinePane:
        """The pane that the keys go to."""
        return self.pane_layout.pane

    @property
    def active(self) -> int:
        """Its number."""
        return self.pane_layout.active

    @property
    def focused(self) -> Widget | None:
        """What has the keys; nothing while the program ends, when what is still told finds no screen."""
        return super().focused if self.screen_stack else None

    def on_session_changed(self) -> None:
        """Show what has changed."""
        self.watcher.catch_up()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the panes for another size; what the terminal has made of its lines is not known."""
        self._on_terminal.forget()
        self.pane_layout.resize(event.size)
        self.call_after_refresh(self.pane_layout.measure_log)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow the focus, should the mouse have moved it; it may have gone on meanwhile."""
        pane = event.widget
        if isinstance(pane, LinePane) and pane.NUMBER > 0 and pane is self.focused and self.active != pane.NUMBER:
            self.pane_layout.action_pane(pane.NUMBER)

    @on(LinePane.Renamed)
    def _pane_renamed(self) -> None:
        self.pane_layout.label_tabs()

    @on(LinePane.KeysChanged)
    def _keys_changed(self) -> None:
        with unless_closed():
            self.pane_layout.label_keys()

    @on(LinePane.VerbRefused)
    def _pane_refused(self, event: LinePane.VerbRefused) -> None:
        refuse(self, event.text)

    @on(GraphPane.Selected)
    def _cursor_moved(self) -> None:
        with unless_closed():
            self.watcher.follow_cursor()

    @on(GraphPane.Read)
    def _outline_read(self) -> None:
        with unless_closed():
            self.watcher.show_outline()
            self.watcher.look()

    @on(ModulesPane.Switched)
    def _module_switched(self, event: ModulesPane.Switched) -> None:
        self.navigation.toggle_fold(event.module, event.first)

    @on(ModulesPane.Chosen)
    def _parameter_chosen(self, event: ModulesPane.Chosen) -> None:
        path = event.parameter.path
        finding = self.query_one(FindingsPane).about(path)
        if event.parameter.index >= 0:
            self.navigation.show_node(event.parameter.index)
        elif finding is not None and has_ended(self.session):  # nothing can be asked of it any more
            self.pane_layout.action_pane(FindingsPane.NUMBER)
            self.navigation.show_finding(finding)
        else:
            self.pane_layout.action_pane(LogPane.NUMBER)
            self.command_line.obey(f"why {path}")

    @on(ModulesPane.Shown)
    @on(FramesPane.Shown)
    def _more_wanted(self) -> None:
        self.watcher.ask_about_model()

    @on(FramesPane.LineFollowed)
    def _frame_followed(self, event: FramesPane.LineFollowed) -> None:
        self.pane_layout.uncover(SourcePane.NUMBER)
        self.watcher.point_at(event.line)

    @on(FramesPane.TensorOpened)
    def _variable_opened(self, event: FramesPane.TensorOpened) -> None:
        self.pane_verbs.open_variable(event.name)

    @on(FindingsPane.Followed)
    @on(CutFollowed)
    def _finding_followed(self, event: FindingsPane.Followed | CutFollowed) -> None:
        self.navigation.show_finding(event.finding)

    @on(InspectorPane.NodeFollowed)
    @on(DiagramPane.NodeFollowed)
    def _node_followed(self, event: InspectorPane.NodeFollowed | DiagramPane.NodeFollowed) -> None:
        self.navigation.show_node(event.index)

    @on(InspectorPane.TensorOpened)
    @on(GraphPane.TensorOpened)
    def _tensor_opened(self, event: InspectorPane.TensorOpened | GraphPane.TensorOpened) -> None:
        self.pane_verbs.open_tensor(event.link)

    @on(BreakpointsPane.EditWanted)
    def _breakpoint_to_edit(self, event: BreakpointsPane.EditWanted) -> None:
        self.command_line.edit_breakpoint(event.point)

    @on(SourcePane.GutterClicked)
    def _gutter_clicked(self, event: SourcePane.GutterClicked) -> None:
        self.pane_verbs.break_on_line(event.location)

    @on(PaneGrid.Dragged)
    def _border_dragged(self, event: PaneGrid.Dragged) -> None:
        self.pane_layout.drag(event.column, event.row)

    @on(LogPane.AnswerWanted)
    def _answer_wanted(self) -> None:
        self.command_line.action_type()

    @on(LogPane.Resized)
    def _log_resized(self, event: LogPane.Resized) -> None:
        resize: Callable[[int, int], None] | None = getattr(self.session, "resize_terminal", None)
        if resize is not None:
            resize(event.columns, event.rows)

    @on(StatusBar.Clicked)
    def _timeline_clicked(self, event: StatusBar.Clicked) -> None:
        self.navigation.show_node(event.index)

    @on(Prompt.Closed)
    def _prompt_closed(self) -> None:
        with unless_closed():
            self.pane_layout.arrange()

    @on(Prompt.CompletionWanted)
    def _completion_wanted(self, event: Prompt.CompletionWanted) -> None:
        self.command_line.complete(event.line, event.typed)

    # Help and end ----------------------------------------------------------------------------------------------------

    def action_help(self) -> None:
        """Show the help."""
        self.push_screen(HelpScreen(self._settings.keys))

    def action_restart(self) -> None:
        """Start the program again, or read what is new in a recording; ask first if it has not ended."""
        if self._nothing_to_lose():
            self.run_verbs.start_again()
        else:
            self._confirm("Restart?", self._what_restarting_does, "start again", self.run_verbs.start_again)

    def _what_restarting_does(self) -> str:
        again = "runs it in" if has_ended(self.session) else "ends it here; it runs in"
        return (
            f"{self._script_is()}. Starting it again {again} {getattr(self.session, 'restarts_in', 'a new process')}."
        )

    async def action_quit(self) -> None:
        """Leave, at once if the program has ended."""
        if self._nothing_to_lose():
            self._leave_at_once()
            return
        if self._runs_unseen():
            self._confirm("Quit?", lambda: f"{self.session.reason}. Quitting ends it.", "quit", self._leave_at_once)
            return
        self._confirm("Quit?", self._what_quitting_does, "quit", self._quit)

    def _what_quitting_does(self) -> str:
        if self._nothing_to_lose():
            return f"{self._script_is()}: quitting ends nothing."
        ends = "Quitting ends it there: of a backward in progress, .grad is put back as it was before."
        return f"{self._script_is()}. {ends}"

    def _quit(self) -> None:
        if self._nothing_to_lose():  # the program has ended while the question stood
            self._leave_at_once()
        else:
            self.run_worker(self._leave(), group="leave")

    def _leave_at_once(self) -> None:
        self.left = True
        self.exit(0)

    def _nothing_to_lose(self) -> bool:
        if self._runs_unseen():
            return False
        return has_ended(self.session) or not (_has_program(self.session) and getattr(self.session, "owned", True))

    def _runs_unseen(self) -> bool:
        """Whether the session has ended, and the process that it had started has not: it is another program now."""
        return bool(getattr(self.session, "runs_unseen", False))

    def _where(self) -> str:
        if self._runs_unseen():
            return "runs on, unseen"
        state = str(self.session.state)
        return f"is paused in backward {self.session.task_index}" if is_paused(state) else f"is {state}"

    def _script_is(self) -> str:
        return f"{self.script or 'The script'} {self._where()}"

    def _confirm(self, title: str, what: Callable[[], str], yes: str, do: Callable[[], object]) -> None:
        def answered(agreed: bool | None) -> None:
            if agreed:
                do()

        if not isinstance(self.screen, ConfirmScreen):
            self.push_screen(ConfirmScreen(title, what, yes), answered)

    async def _leave(self) -> None:
        """End the program, wait a little for it, and leave; one that was not started here runs on."""
        self.notify("ending the script …", timeout=LEAVE, markup=False)
        await on_thread(self.session.leave)
        await on_thread(lambda: self.session.wait(LEAVE))
        self.left = True
        self.exit(0)

    def leave_by(self, number: int) -> None:
        """Leave without a question because of a signal; may be called at any moment, once or again."""
        again, self.signalled = self.signalled, self.signalled or number
        if not again and self._loop_to_tell is not None:
            with suppress(RuntimeError):  # the loop is closed: the app has been left already
                self._loop_to_tell.call_soon_threadsafe(lambda: self.run_worker(self._leave(), group="leave"))


def _has_program(session: Session) -> bool:
    """Return whether there is a program, rather than a recording of one."""
    return getattr(session, "program", True) is not False


def run_app(debugger: Debugger) -> int:
    """Run the terminal UI on a session until the person leaves.

    Parameters
    ----------
    debugger : Debugger
        The session; started if it has not been.

    Returns
    -------
    int
        An exit status: 0, that of the app if it failed, or 128 and the number of the signal that ended it.
        ``debugger.conclusion()`` tells how the program ended.
    """
    title = debugger.title
    app = GradscopeApp(debugger, basename(title), SavedBreakpoints(title), SavedView(title), settings_files())
    return run_session(app, debugger)


def run_session(app: GradscopeApp, debugger: Session) -> int:
    """Run an app on a session until the person leaves; end the program then, and return the exit status."""
    try:
        return _run(app)
    finally:
        if not (app.left or has_ended(debugger)):
            debugger.leave()
            debugger.wait(LEAVE)
        if sys.stdout.isatty() and not app.is_web:
            _say_again(debugger.output)


def _say_again(output: Iterable[str]) -> None:
    """Print what the script has printed on a screen that is gone."""
    with suppress(OSError):  # the terminal has been closed
        for line in output:
            say(printable(line))


def view_recording(recording: Recording) -> int:
    """Open a recording in the terminal UI until the person leaves.

    Parameters
    ----------
    recording : Recording
        Open.

    Returns
    -------
    int
        An exit status: 0, that of the app if it failed, or 128 and the number of the signal that ended it.

    Raises
    ------
    RecordingError
        If it turns out to be damaged while it is looked at.
    """
    from gradscope_tui.sessions.recorded_session import RecordedSession  # only a recording needs this module

    path = recording.path
    session = RecordedSession(recording)
    return _run(GradscopeApp(session, basename(path), None, SavedView(str(path)), settings_files()))


def _run(app: GradscopeApp) -> int:
    late: list[str] = []  # words written after the screen is gone, such as the app's own traceback

    def take(line: str) -> None:
        if app.is_running:
            app.watcher.take_output(line)
        else:
            late.append(line)

    with own_terminal(take) as driver:
        if driver is not None:
            app.driver_class = driver
        with ended_by_signals(app.leave_by), setting_aside():
            app.run(mouse=app.mouse)
    with suppress(OSError):  # the terminal has been closed
        for line in late:
            print(line, file=sys.stderr, flush=True)
    if app.signalled:
        return SIGNALLED + app.signalled
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
