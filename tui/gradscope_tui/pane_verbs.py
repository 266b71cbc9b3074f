"""What is done with the thing under the cursor of a pane: break, switch, delete, copy, save, open in an editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App

from gradscope.inspect.debugging.session.node_sequence import candidates_of
from gradscope.inspect.records.records import Location, TensorSubject
from gradscope_tui.pane_layout import PaneLayout
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import TensorLink
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.source_pane import breaks_on
from gradscope_tui.refusal import refuse
from gradscope_tui.screens.tensor_screen import TensorScreen
from gradscope_tui.sessions.session_protocol import Breakpoint, Session
from gradscope_tui.sessions.session_watcher import MANY, SessionWatcher
from gradscope_tui.terminal.external_editor import edit_command, run_editor
from gradscope_tui.terminal.pixel_graphics import PixelGraphics
from gradscope_tui.widgets.labels import basename
from gradscope_tui.widgets.prompt_line import Prompt

__all__ = ["PaneVerbs"]


class PaneVerbs:
    """The verbs that the active pane answers, and those for the node under the cursor of the graph."""

    def __init__(
        self,
        app: App[Any],
        session: Session,
        watcher: SessionWatcher,
        layout: PaneLayout,
        graphics: PixelGraphics,
    ) -> None:
        self._app = app
        self._session = session
        self._watcher = watcher
        self._layout = layout
        self._graphics = graphics

    def action_break(self) -> None:
        """Set or remove a breakpoint on the operator, the parameter or the module under the cursor."""
        graph = self._app.query_one(GraphPane)
        spec = graph.spec
        if graph.node is None:
            refuse(self._app, "there is no node yet to set a breakpoint on; B asks for one")
            return
        if not spec:
            refuse(self._app, "no gradient comes to this module: it has no node to stop at")
            return
        same = [point.id for point in self._session.breakpoints if point.spec == spec and not point.condition]
        for number in same:
            self._session.remove_breakpoint(number)
        if not same:
            self._tell_nodes(self._session.add_breakpoint(spec))
        self._watcher.refresh()

    def _tell_nodes(self, point: Breakpoint) -> None:
        """Say at how many nodes a new breakpoint stops, where they are several, or none."""
        nodes = self._session.nodes
        if not 0 < len(nodes) <= MANY:
            return
        stops = sum(point.matches(node) for node in candidates_of(nodes))
        if stops > 1:
            self._app.notify(f"{point.spec} stops at {stops} nodes of this backward", timeout=4, markup=False)
        elif not stops:
            line = point.spec.removeprefix("line:")
            text = f"no node of this backward was made at {line}: breakpoint {point.id} waits for one"
            self._app.notify(text, timeout=6, markup=False)

    def break_on_line(self, location: Location) -> None:
        """Set or remove a breakpoint on the nodes that a line makes."""
        lines = [point for point in self._session.breakpoints if point.spec.startswith("line:")]
        there = [point.id for point in lines if breaks_on(point, location)]
        for number in there:
            self._session.remove_breakpoint(number)
        if not there:
            self._tell_nodes(self._session.add_breakpoint(f"line:{basename(location.filename)}:{location.lineno}"))
        self._watcher.refresh()

    def action_delete(self) -> None:
        """Remove the breakpoint or the watch under the cursor of its pane."""
        if self._layout.pane.delete(self._session):
            self._watcher.refresh()
        else:
            text = "d removes the breakpoint or watch under the cursor of pane 4 or 6; press 4 or 6 first"
            refuse(self._app, text)

    def action_switch(self) -> None:
        """Switch what is under the cursor on or off: a breakpoint, a switch, a folded module."""
        self._layout.pane.switch(self._session)
        self._watcher.refresh()

    def action_open(self) -> None:
        """Open what is under the cursor: a tensor, a breakpoint, where a line leads."""
        self._layout.pane.open(self._session)
        self._watcher.refresh()

    def action_copy(self) -> None:
        """Copy what the active pane is about to the terminal's clipboard."""
        text = self._layout.pane.copied()
        if not text:
            refuse(self._app, "there is nothing here to copy")
            return
        self._app.copy_to_clipboard(text)
        first, _, more = text.partition("\n")
        self._app.notify(f"copied {first}{' …' if more else ''}", timeout=2, markup=False)

    def open_tensor(self, link: TensorLink) -> None:
        """Look into a tensor of the node under the cursor; the same one a backward before is there to compare with."""
        backward = self._session.task_index - 1
        before = link.expression.replace(")", f", backward={backward})", 1) if backward > 0 else ""
        self._push(TensorSubject(link.expression), link.title, before)

    def open_variable(self, name: str) -> None:
        """Look into a tensor that is a variable of the function that is paused."""
        self._push(TensorSubject(name), name)

    def _push(self, subject: TensorSubject, title: str, other: str = "") -> None:
        self._app.push_screen(TensorScreen(self._session, subject, title, other, self._graphics))

    def action_editor(self) -> None:
        """Open the line that made the node under the cursor in the person's editor."""
        node = self._app.query_one(GraphPane).node
        if node is None or node.location is None:
            refuse(self._app, "the line that made this node is not known")
            return
        problem = run_editor(self._app, edit_command(node.location))
        if problem:
            refuse(self._app, problem)

    def action_save_log(self) -> None:
        """Ask for a file for the log."""
        self._app.query_one(Prompt).ask("save")

    def save_log(self, name: str) -> None:
        """Write the log into a new file."""
        path = Path(name).expanduser()
        text = self._app.query_one(LogPane).text
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(f"{text}\n" if text else "")
        except FileExistsError:
            refuse(self._app, f"{name} is there already, and is kept as it is: choose another name")
        except OSError as error:
            refuse(self._app, f"cannot write {name}: {error.strerror or error}")
        else:
            self._app.notify(f"the log is in {path}", timeout=4, markup=False)
