"""Finding one's way in the graph: the cursor, the filter, folded modules; copying and the editor."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

from textual import on

from gradscope.inspect.debugging.prompt.plain_text import node_text, place_of, title_of
from gradscope.inspect.debugging.stops.breakpoints import BreakpointError
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.modules_pane import ModulesPane
from gradscope_tui.panes.watches_pane import WatchesPane
from gradscope_tui.run_verbs import RunningApp
from gradscope_tui.sessions.session_watcher import unless_closed
from gradscope_tui.terminal.external_editor import edit_command, run_editor
from gradscope_tui.widgets.graph_rows import NodeFilter, node_filter
from gradscope_tui.widgets.prompt_line import Prompt
from gradscope_tui.widgets.status_bar import StatusBar

__all__ = ["FindingApp"]


class FindingApp(RunningApp):
    """An app in which nodes can be found, folded away and taken elsewhere."""

    @on(GraphPane.Selected)
    def _cursor_moved(self) -> None:
        self.look()

    @on(GraphPane.Read)
    def _outline_read(self) -> None:
        with unless_closed():
            self._show_modules()

    @on(StatusBar.Clicked)
    def _timeline_clicked(self, event: StatusBar.Clicked) -> None:
        self.show_node(event.index)

    def show_node(self, index: int) -> None:
        """Move the cursor to a node."""
        self.query_one(GraphPane).select(index)

    def action_here(self) -> None:
        """Move the cursor to the node where the session stands."""
        if self.session.current >= 0:
            self.show_node(self.session.current)

    def log_answer(self, text: str, color: str = "dim") -> None:
        """Write an answer of the debugger into the log, and show it."""
        self.uncover(5)
        self.query_one(LogPane).write([(line, color) for line in text.split("\n")], from_start=True)

    # Filter ----------------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for a filter, or in the log for what to look for."""
        self.query_one(Prompt).ask("find" if self.active == 5 else "filter")

    def find_in_log(self, text: str) -> None:
        """Look for lines of the log."""
        if not self.query_one(LogPane).search(text):
            self.refuse(f"no line of the log has {text!r}")

    @on(LogPane.AtEnd)
    def _at_end_of_log(self, event: LogPane.AtEnd) -> None:
        self.refuse(event.text)

    def action_save_log(self) -> None:
        """Ask for a file for the log."""
        self.query_one(Prompt).ask("save")

    def save_log(self, name: str) -> None:
        """Write the log into a new file."""
        path = Path(name).expanduser()
        text = self.query_one(LogPane).text
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(f"{text}\n" if text else "")
        except FileExistsError:
            self.refuse(f"{name} is there already, and is kept as it is: choose another name")
        except OSError as error:
            self.refuse(f"cannot write {name}: {error.strerror or error}")
        else:
            self.notify(f"the log is in {path}", timeout=4, markup=False)

    def filter(self, text: str) -> None:
        """Show only the nodes that match."""
        try:
            match = node_filter(text)
        except BreakpointError as error:
            self.refuse(str(error))
        else:
            self.run_worker(self._filter(text, match), group="filter", exclusive=True)

    async def _filter(self, text: str, match: NodeFilter) -> None:
        rail = self.query_one(GraphPane)
        await rail.search(match, only=True).wait()
        if not rail.found:
            rail.show_all()
            self.refuse(f"no node of this backward matches {text!r}")
        elif rail.index not in rail.found:
            self.show_node(rail.found[min(bisect_left(rail.found, rail.index), len(rail.found) - 1)])
        self.refresh_session()

    def action_show_all(self) -> None:
        """Show all nodes again; a second time, forget the matches."""
        rail = self.query_one(GraphPane)
        if rail.filtered:
            rail.show_all()
        elif rail.found:
            rail.search(None)
        self.refresh_session()

    def action_next_match(self) -> None:
        """Go to the next match."""
        self._seek(1)

    def action_previous_match(self) -> None:
        """Go to the match before."""
        self._seek(-1)

    def _seek(self, step: int) -> None:
        log = self.query_one(LogPane)
        if self.active == 5 and log.found_line:
            log.action_seek(step)
            return
        rail = self.query_one(GraphPane)
        if not rail.found:
            self.refuse("there is nothing to go to: / filters the graph first")
        elif not rail.seek(step):
            self.refuse(f"this is the {'last' if step > 0 else 'first'} of {len(rail.found)} matches")

    # Folds -----------------------------------------------------------------------------------------------------------

    def _can_fold(self) -> bool:
        """Whether folds can be seen; if not, the reason is said."""
        filtered = self.query_one(GraphPane).filtered
        if filtered:
            self.refuse("the filter shows single nodes: Esc shows all of them, and then modules can be folded")
        return not filtered

    def action_fold(self) -> None:
        """Fold the module of the node under the cursor."""
        if not self._can_fold():
            return
        if not self.query_one(GraphPane).fold_here():
            self.refuse("the node under the cursor belongs to no module that could be folded")
        self.refresh_session()

    def action_fold_all(self) -> None:
        """Fold all modules, or unfold all."""
        if not self._can_fold():
            return
        rail = self.query_one(GraphPane)
        rail.set_folded(frozenset() if rail.folded else rail.modules)
        self.refresh_session()

    def action_switch(self) -> None:
        """Fold or unfold the module under the cursor, of the graph or of the tree."""
        rail, chosen = self.query_one(GraphPane), self.query_one(ModulesPane).selected
        if self.active not in (1, 7) or not self._can_fold():
            return
        if self.active == 7 and chosen is not None:
            module, first = chosen
            rail.set_folded(rail.folded - {module} if module in rail.folded else rail.folded | {module})
            rail.select(first)
        elif not rail.unfold_here() and not rail.fold_here():
            self.refuse("the node under the cursor belongs to no module that could be folded")
        self.refresh_session()

    # Elsewhere -------------------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy what the active pane is about to the terminal's clipboard."""
        text = self._to_copy()
        if not text:
            self.refuse("there is nothing here to copy")
            return
        self.copy_to_clipboard(text)
        first, _, more = text.partition("\n")
        self.notify(f"copied {first}{' …' if more else ''}", timeout=2, markup=False)

    def _to_copy(self) -> str:
        """Return what the cursor of the active pane is on, as text."""
        node, total = self.query_one(GraphPane).node, len(self.session.nodes)
        point, watch = self.query_one(BreakpointsPane).selected, self.query_one(WatchesPane).selected
        if self.active == 4:
            return point.command() if point is not None else ""
        if self.active == 5:
            log = self.query_one(LogPane)
            return log.found_line or log.text
        if self.active == 6:
            return f"{watch.expression} = {watch.text}" if watch is not None else ""
        if self.active == 7:
            chosen = self.query_one(ModulesPane).selected
            return chosen[0] if chosen is not None else ""
        if node is None:
            return ""
        if self.active == 2:
            return node_text(self.query_one(InspectorPane).node or node, self.session.nodes)
        if self.active == 3:
            return str(node.location or "")
        return "  ".join(part for part in (title_of(node, total), place_of(node.location)) if part)

    def action_editor(self) -> None:
        """Open the line that made the node under the cursor in the person's editor."""
        node = self.query_one(GraphPane).node
        if node is None or node.location is None:
            self.refuse("the line that made this node is not known")
            return
        problem = run_editor(self, edit_command(node.location))
        if problem:
            self.refuse(problem)
