"""Finding one's way in the graph: the cursor, the filter and its matches, folded modules."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from textual.app import App

from gradscope.inspect.debugging.stops.breakpoints import BreakpointError
from gradscope_tui.pane_layout import PaneLayout
from gradscope_tui.panes.findings_pane import FindingsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.source_pane import SourcePane
from gradscope_tui.refusal import refuse
from gradscope_tui.screens.columns_screen import ColumnsScreen
from gradscope_tui.sessions.session_protocol import Session
from gradscope_tui.sessions.session_watcher import SessionWatcher
from gradscope_tui.widgets.graph_columns import GraphView
from gradscope_tui.widgets.graph_rows import NodeFilter, node_filter
from gradscope_tui.widgets.prompt_line import Prompt

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import BackwardFinding

__all__ = ["Navigation"]


class Navigation:
    """Finds nodes and folds them away; in other panes, finds lines."""

    def __init__(self, app: App[Any], session: Session, watcher: SessionWatcher, layout: PaneLayout) -> None:
        self._app = app
        self._session = session
        self._watcher = watcher
        self._layout = layout

    @property
    def _graph(self) -> GraphPane:
        return self._app.query_one(GraphPane)

    def show_node(self, index: int) -> None:
        """Move the cursor to a node."""
        self._graph.select(index)

    def show_finding(self, finding: BackwardFinding) -> None:
        """Go to the node that a finding is about, and to its line."""
        if finding.index >= 0:
            self.show_node(finding.index)
        if finding.location is not None:
            self._layout.uncover(SourcePane.NUMBER)
            self._watcher.point_at(finding.location)

    def action_findings(self) -> None:
        """Show what is wrong; where that is shown already, go to the line of what is under its cursor."""
        if self._layout.active == FindingsPane.NUMBER:
            self._layout.pane.open(self._session)
        self._layout.action_pane(FindingsPane.NUMBER)

    def action_here(self) -> None:
        """Move the cursor to the node where the session stands."""
        if self._session.current >= 0:
            self.show_node(self._session.current)

    # Filter ----------------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for a filter of the graph, or in another pane for what to look for."""
        self._app.query_one(Prompt).ask("filter" if isinstance(self._layout.pane, GraphPane) else "find")

    def find(self, text: str) -> None:
        """Look for lines of the active pane."""
        pane = self._layout.pane
        if not pane.find_lines(text):
            refuse(self._app, f"no line of pane {pane.KEY} has {text!r}")

    def filter(self, text: str) -> None:
        """Show only the nodes that match."""
        try:
            match = node_filter(text)
        except BreakpointError as error:
            refuse(self._app, str(error))
        else:
            self._app.run_worker(self._filter(text, match), group="filter", exclusive=True)

    async def _filter(self, text: str, match: NodeFilter) -> None:
        graph = self._graph
        await graph.search(match, only=True).wait()
        if not graph.found:
            graph.show_all()
            refuse(self._app, f"no node of this backward matches {text!r}")
        elif graph.index not in graph.found:
            self.show_node(graph.found[min(bisect_left(graph.found, graph.index), len(graph.found) - 1)])
        self._watcher.refresh()

    def action_show_all(self) -> None:
        """Show all nodes again, then forget the matches; where there are none to be seen, show all panes again."""
        graph = self._graph
        if self._layout.maximised and not (self._layout.pane is graph and (graph.filtered or graph.found)):
            self._layout.action_maximise()
        elif graph.filtered:
            graph.show_all()
        elif graph.found:
            graph.search(None)
        self._watcher.refresh()

    def action_next_match(self) -> None:
        """Go to the next match."""
        self._seek(1)

    def action_previous_match(self) -> None:
        """Go to the match before."""
        self._seek(-1)

    def _seek(self, step: int) -> None:
        pane, graph = self._layout.pane, self._graph
        if pane.searching:
            pane.action_seek(step)
        elif not graph.found:
            refuse(self._app, "there is nothing to go to: / filters the graph first")
        elif not graph.seek(step):
            refuse(self._app, f"this is the {'last' if step > 0 else 'first'} of {len(graph.found)} matches")

    # Columns ---------------------------------------------------------------------------------------------------------

    def action_columns(self) -> None:
        """Let a person choose the columns of the graph, and what its rows are sorted by."""
        graph = self._graph

        def choose(view: GraphView) -> None:
            graph.set_view(view)
            self._watcher.refresh()

        shown = ColumnsScreen(graph.view, lambda: list(graph.shown_columns()), choose, self._watcher.scale)
        self._app.push_screen(shown)

    # Folds -----------------------------------------------------------------------------------------------------------

    def action_fold(self) -> None:
        """Fold the module of the node under the cursor."""
        self._graph.fold_around()
        self._watcher.refresh()

    def action_fold_all(self) -> None:
        """Fold all modules, or unfold all."""
        graph = self._graph
        if graph.can_fold():
            graph.set_folded(frozenset() if graph.folded else graph.modules)
        self._watcher.refresh()

    def toggle_fold(self, module: str, first: int) -> None:
        """Fold or unfold a module, and go to its first node."""
        self._graph.toggle_fold(module, first)
        self._watcher.refresh()
