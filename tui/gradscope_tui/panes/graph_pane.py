"""The graph in execution order: one line a node, with lanes for its edges."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.worker import Worker

from gradscope.inspect.debugging.prompt.plain_text import place_of, title_of
from gradscope.inspect.diagnosis.flow.norm_trend import EXPLODING, VANISHING
from gradscope.inspect.diagnosis.nan.bad_values import inherited_in, produced_bad
from gradscope.inspect.output.number_format import format_duration
from gradscope.inspect.records.object_search import collect_set_aside
from gradscope_tui.panes.inspector_pane import TensorLink
from gradscope_tui.sessions.session_protocol import is_over, order_of, without_gradients
from gradscope_tui.widgets.cut_branches import CutFollowed, CutRow, by_joint, cut_rows
from gradscope_tui.widgets.graph_columns import GraphView, column_widths, norm_before, ordered
from gradscope_tui.widgets.graph_rows import NOTHING, NodeFilter, Outline, Rows, SortedRows, ancestors, fold, parts_of
from gradscope_tui.widgets.labels import EDITED, NODE_STATES, basename, shorten
from gradscope_tui.widgets.lane_layout import MAX_LANES, LaneRow, lane_cells
from gradscope_tui.widgets.line_pane import CursorPane, Place
from gradscope_tui.widgets.norm_columns import NormScale, norm_columns
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import ModuleRecord
    from gradscope.inspect.records.records import Location, NodeRecord
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["GraphPane"]

_WIDE = 56
"""Cells from which on a line has room for the module."""

_ROOMY = 60
"""Cells from which on modules have headings."""

_OPERATOR = 15
"""Cells of an operator, where there is room."""

_NARROW_OPERATOR, _LEAST_LABEL = 10, 6
"""Cells of an operator where there is little room, and of what stands behind it for a number to have room too."""

_LEAST_SHORTENED = 4
"""Cells in which a shortened name still says something."""

_LEAST_LANES = 2
"""Lanes that are drawn however little room there is."""

_LANE_COLORS = 4
"""Colors that lanes have in turn."""

_MOST_FOLDED = 500
"""Nodes that are folded into a row up to which it is marked by what is on one of them."""

_NEAR = 20
"""Nodes that are run between two stops up to which only their rows are painted anew."""

_AT_ONCE = 10_000
"""Nodes up to which the graph is read and laid out while the screen waits."""

_ALONE = LaneRow(0, 0, 0, (), 0)
"""How a node is drawn whose lane is not known, or which stands among the matches of a filter."""

Match = Callable[["NodeRecord"], bool]

_FILTER_KEYS = {"step": "Next match", "step_back": "Match before", "show_all": "All nodes"}


class GraphPane(CursorPane, inherit_bindings=False):
    """The list of nodes; its cursor says which node the inspector and the source pane show.

    Modules can be folded into one row each, and a filter can leave only the rows that match. So a row is not an index:
    :attr:`index` is that of the node under the cursor, and :meth:`select` puts the cursor on a node.
    """

    NUMBER: ClassVar[int] = 1
    TITLE: ClassVar[str] = "Graph"
    PLACE: ClassVar[Place] = Place.ABOVE
    KEY_HELP: ClassVar[str] = "Go to the graph"
    ABOUT: ClassVar[str] = (
        "The nodes in the engine's order, with a lane for each edge that still waits, below the names of their "
        "modules where there is room. `○` a node still to run, `◉` one that has run or is about to, `▣` a folded "
        "module, `✎` a node whose gradient has been changed, `✂` the one that joins branches of which some get no "
        "gradient while parameters are cut off: the modules of these stand below it, or above all where several nodes "
        "may be the one, with the line that cuts, to which Enter goes. To the right stands, once it is known, the norm "
        "of the gradient that comes in, with a bar on a logarithmic scale, and by what it has been multiplied since "
        "the node where it comes from: red for NaN "
        f"and Inf, yellow below {VANISHING:g} and above {EXPLODING:g}, or what `[norms]` in the settings says. "
        "`o` chooses the columns, the time that a node ran among them, and puts the rows in the order of one. "
        "Everything below follows its cursor `›`, which need not be where the program stands."
    )
    EMPTY: ClassVar[str] = "no backward yet"
    BINDINGS = [  # the pane has these keys only while nodes are hidden; else the app steps by them
        Binding("n", "seek(1)", "Next match", show=False),
        Binding("N", "seek(-1)", "Match before", show=False),
    ]

    class Selected(Message):
        """The cursor has come to another node."""

    class Read(Message):
        """The outline of the graph has been read."""

    class TensorOpened(Message):
        """A gradient is to be looked at."""

        def __init__(self, link: TensorLink) -> None:
            super().__init__()
            self.link = link

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.folded: frozenset[str] = frozenset()
        self.index = 0
        self._records: Sequence[NodeRecord] = ()
        self._shape: tuple[object, ...] = ()
        self._outline = NOTHING
        self._rows = Rows(range(0))
        self._layout: list[LaneRow] = []
        self._lanes = 1
        self._current = self._live = self._stood = -1
        self._over = False
        self._looks: object = None
        self._marked: Match = lambda node: False
        self._match: NodeFilter | None = None
        self._found: list[int] = []
        self._only_found = False
        self._headings = False
        self._modules: Mapping[str, ModuleRecord] = {}
        self._scale = NormScale()
        self._cut_off: tuple[CutRow, ...] = ()
        self._view = GraphView()
        self._sorted: list[int] | None = None

    # What is shown ---------------------------------------------------------------------------------------------------

    def update(self, snapshot: Snapshot) -> None:
        """Show the nodes of the backward, and in the border whether they are those of the past."""
        points, stands = snapshot.breakpoints, snapshot.paused or snapshot.state == "running"
        marks = tuple((point.id, point.enabled, point.spec) for point in points)
        self._over = is_over(snapshot.state)
        self._modules, self._scale = snapshot.modules, snapshot.scale
        self.empty = "no backward here" if snapshot.task else self.EMPTY
        before, self._cut_off = self._cut_off, cut_rows(snapshot.findings)
        # The program goes on with the backward of the last stop: rows are painted when it has come to what they show.
        states = self._states_in_view(snapshot.nodes) if snapshot.state == "running" else ()
        self.show(
            snapshot.nodes,
            snapshot.shown_task,
            snapshot.current if snapshot.paused else -1,
            lambda node: any(point.matches(node) for point in points),
            snapshot.live,
            (snapshot.modules, snapshot.scale, self._cut_off, marks, snapshot.live, snapshot.past, states)
            if stands
            else None,
        )
        if before != self._cut_off:
            self._arrange()
        about = "◁ REPLAYING" if snapshot.past else ""
        if snapshot.nodes and snapshot.shown_task != snapshot.task:
            about = f"of backward {snapshot.shown_task}, the last stop"
        if self.filtered:
            about += f" {len(self.found)} of {len(snapshot.nodes)} nodes"
        if self._sorted is not None:
            about += f" by {self._view.order.removeprefix('-')}"
        self.set_heading(about=about.strip())
        self._label_scale()

    def _states_in_view(self, nodes: Sequence[NodeRecord]) -> tuple[str, ...]:
        """Return the states by which the rows on the screen are painted: a program that runs is asked for no others."""
        rows = range(self.first_row, min(self.first_row + self.scrollable_content_region.height, len(self._rows)))
        spans = [self._rows.span(row) for row in rows]
        places = dict.fromkeys(place for span in spans for place in (span[0], span[-1]) if place < len(nodes))
        return tuple([nodes[place].state for place in places])

    def on_resize(self, event: events.Resize) -> None:
        """Measure again: bars and headings may have room now."""
        self._label_scale()
        headings = self.scrollable_content_region.width >= _ROOMY
        if headings != self._headings:
            self._headings = headings
            self._arrange()

    def _label_scale(self) -> None:
        """Write into the border what the bars stand for, where there are any."""
        shown = self.shown_columns()
        ratio = " · × of the node before" if "ratio" in shown else ""
        told = f"{self._scale}{ratio}" if "bar" in shown else ""
        more = f"{self._scale.limits} · {told.removeprefix('incoming ')}"
        if told and len(more) + 2 <= self.scrollable_content_region.width:
            told = more
        if told != (self.border_subtitle or ""):  # writing into the border repaints the whole pane
            self.border_subtitle = told

    def stopped(self, snapshot: Snapshot) -> None:
        """Put the cursor on the node where the session stands."""
        self._sort()
        if snapshot.here is not None and snapshot.paused:
            self.select(snapshot.current)

    def show(
        self,
        nodes: Sequence[NodeRecord],
        task: int,
        current: int = -1,
        marked: Match = lambda node: False,
        live: int = -1,
        looks: object = None,
    ) -> None:
        """Show the nodes of a backward.

        Parameters
        ----------
        nodes : sequence of NodeRecord
            In execution order, read when a row is drawn; their states may have changed since the last call.
        task : int
            Which backward this is; the lanes are laid out anew only when it or the order of nodes has changed.
        current : int
            Index of the node where the session stands.
        marked : callable
            Says whether a breakpoint lies on a node.
        live : int
            Index of the node where the program waits while the session stands at an earlier one; -1 otherwise.
        looks : object
            What rows depend on besides the nodes: where it is the same and the session has gone on by some nodes, their
            rows alone are painted anew. None where others may have changed.
        """
        self._records, self._current, self._marked, self._live = nodes, current, marked, live
        before, self._looks = self._looks, looks
        stood, self._stood = self._stood, current if current >= 0 else self._stood
        shape = (task, order_of(nodes))
        if shape != self._shape:
            self._shape = shape
            self._outline, self._found, self._only_found, self._sorted = NOTHING, [], False, None
            self.post_message(self.KeysChanged())
            self._rows, self._layout, self._lanes = Rows(range(len(nodes))), [], 1
            self.content_changed()
            self.select(min(self.index, max(0, len(nodes) - 1)))
            self._read()
            before = None
        if looks is None or before != looks or stood < 0 or abs(self._stood - stood) > _NEAR:
            self.refresh()
        else:
            for row in {
                self._rows.row_of(index) for index in range(min(stood, self._stood), max(stood, self._stood) + 1)
            }:
                self.refresh_line(row)

    def _read(self) -> None:
        """Read the outline of the graph: at once, or on another thread where that takes long."""
        nodes, shape = self._records, self._shape
        if len(nodes) <= _AT_ONCE:
            self._take_outline(Outline.read(without_gradients(nodes)))
            return

        async def later() -> None:
            await on_thread(collect_set_aside)  # the graph before is gone
            outline = await on_thread(lambda: Outline.read(without_gradients(nodes)), collect=False)
            if shape == self._shape:
                self._take_outline(outline)

        self._reading: Worker[None] = self.run_worker(later, group="outline", exclusive=True)

    def _take_outline(self, outline: Outline) -> None:
        self._outline = outline
        self.post_message(self.Read())
        self._arrange()
        self._sort()
        if self._match is not None:
            self.search(self._match)

    def _arrange(self) -> None:
        """Make the rows and their lanes."""
        if self._sorted is not None:
            found = frozenset(self._found)
            self._rows = SortedRows([i for i in self._sorted if i in found] if self._only_found else self._sorted)
            self._take_lanes([])
        elif self._only_found:
            self._rows = Rows(self._found)
            self._take_lanes([])
        else:
            rows = fold(self._outline.modules, self.folded, headings=self._headings)
            self._rows = rows
            for joint, cut in by_joint(self._cut_off, self._outline):
                self._rows = self._rows.with_cut(joint + 1, cut)
            self._draw_lanes()
        self.content_changed()
        self.select(self.index)

    def _joined_by(self, index: int) -> int:
        """Return how many branches without gradient a node joins; where several do, some may only be given data."""
        return self._outline.joins.get(index, 0) if len(self._outline.joins) == 1 else 0

    def _draw_lanes(self) -> None:
        """Lay out the lanes: at once, or on another thread where that takes long; until then there are none."""
        rows, outline = self._rows, self._outline
        if len(rows) <= _AT_ONCE:
            self._take_lanes(rows.lanes(outline))
            return
        self._take_lanes([])

        async def later() -> None:
            layout = await on_thread(lambda: rows.lanes(outline), collect=False)
            if rows is self._rows:
                self._take_lanes(layout)

        self._laying: Worker[None] = self.run_worker(later, group="lanes", exclusive=True)

    def _take_lanes(self, layout: list[LaneRow]) -> None:
        self._layout = layout
        self._lanes = 1 + max((max(row.column, *row.targets, 0) for row in layout), default=0)
        self.refresh()

    # Columns and order -----------------------------------------------------------------------------------------------

    @property
    def view(self) -> GraphView:
        """Which columns have been chosen, and in which order the rows stand."""
        return self._view

    def set_view(self, view: GraphView) -> None:
        """Show these columns, and the rows in this order."""
        again = view.order != self._view.order
        self._view = view
        self._label_scale()
        self._sort(to_first=again)
        self.refresh()

    def shown_columns(self) -> dict[str, int]:
        """Return the columns that are shown, with the cells of each."""
        return column_widths(self.scrollable_content_region.width, self._view.columns)

    def _sort(self, *, to_first: bool = False) -> None:
        """Put the rows in the order of the view, on another thread: every node is looked at.

        Parameters
        ----------
        to_first : bool
            Whether the cursor goes to the first of them: an order has been asked for to see that one.
        """
        nodes, shape, order, outline = self._records, self._shape, self._view.order, self._outline
        if not order:
            if self._sorted is not None:
                self._sorted = None
                self._arrange()
            return

        async def sort() -> None:
            found = await on_thread(lambda: ordered(list(nodes), outline, order), collect=False)
            if shape == self._shape and order == self._view.order:
                self._sorted = found
                self._arrange()
                if to_first and len(self._rows):
                    self.select(self._rows.index(0))

        self._sorting: Worker[None] = self.run_worker(sort, group="sort", exclusive=True)

    # The cursor ------------------------------------------------------------------------------------------------------

    @property
    def node(self) -> NodeRecord | None:
        """The node under the cursor; of a folded module, that where the session stands, or the first."""
        return self._records[self.index] if 0 <= self.index < len(self._records) else None

    @property
    def module(self) -> str:
        """The folded module under the cursor; empty where there is none."""
        return self._rows.folded(self.cursor) if 0 <= self.cursor < len(self._rows) else ""

    @property
    def spec(self) -> str:
        """What a breakpoint on the row under the cursor is set on; empty where no node runs for the row."""
        row, node = self.cursor, self.node
        if node is None or not 0 <= row < len(self._rows) or self._rows.cut(row) is not None:
            return ""
        module = self.module or self._rows.heading(row)
        if module:
            return f"mod:{module}"
        return f"param:{node.parameter}" if node.parameter else f"op:{node.operator}"

    def select(self, index: int) -> None:
        """Put the cursor on a node: on the row it is folded into, or near it if the filter hides it."""
        self.index = index
        row = max(0, self._rows.row_of(index))
        if row == self.cursor:
            self.reveal(row)
            self.refresh_line(row)
            self._tell_selected()
        else:
            self.cursor = row
            self.index = index

    def watch_cursor(self, before: int, now: int) -> None:
        """Bring the cursor into view and tell the app."""
        super().watch_cursor(before, now)
        if now < len(self._rows) and self.index not in self._rows.span(now):
            span = self._rows.span(now)
            self.index = self._current if self._current in span else span[0]
        self._tell_selected()

    def _tell_selected(self) -> None:
        """Tell the app itself: a message that goes up from pane to screen comes after the next painting."""
        self.app.post_message(self.Selected())

    def row_clicked(self, row: int, x: int) -> int:
        """Return the row itself; for a click on a lane that runs past it, the row of the node where the lane ends."""
        lane = (x - self._gutter()) // 2
        if not 0 <= lane < self._drawn_lanes() or row >= len(self._layout) or self._layout[row].column == lane:
            return row
        if not self._layout[row].below >> lane & 1:
            return row
        return next((r for r in range(row + 1, len(self._layout)) if self._layout[r].column == lane), row)

    def is_marked(self, row: int) -> bool:
        """Mark the cursor line, unless the node under the cursor is one that the filter hides."""
        return row == self.cursor and self.index in self._rows.span(row)

    def move(self, rows: int) -> None:
        """Move the cursor; from a node that the filter hides, to the rows before and behind it."""
        if self.line_count() and not self.is_marked(self.cursor):
            beside = self._rows.index(self.cursor)
            if rows * (self.index - beside) < 0:
                rows -= 1 if rows > 0 else -1
            self.select(beside)
        super().move(rows)

    # Filter and folds ------------------------------------------------------------------------------------------------

    def search(self, match: NodeFilter | None, *, only: bool = False) -> Worker[None]:
        """Look for the nodes that match, on another thread.

        Parameters
        ----------
        match : NodeFilter or None
            None forgets what has been found.
        only : bool
            Whether to hide the others from then on.

        Returns
        -------
        Worker
            Ends when they are found and shown.
        """
        self._match = match
        nodes, shape = self._records, self._shape

        def look() -> list[int]:
            if match is None:
                return []
            return [node.index for node in (nodes if match.gradients else without_gradients(nodes)) if match(node)]

        async def find() -> None:
            found = await on_thread(look, collect=False)
            if shape == self._shape and match is self._match:
                self._found, self._only_found = found, only and match is not None
                self._arrange()
                self.post_message(self.KeysChanged())

        return self.run_worker(find, group="search", exclusive=True)

    @property
    def found(self) -> Sequence[int]:
        """The indices of the nodes that match the filter."""
        return self._found

    @property
    def filtered(self) -> bool:
        """Whether the others are hidden."""
        return self._only_found

    @property
    def searching(self) -> bool:
        """Whether nodes are looked for: the others are hidden."""
        return self._only_found

    def show_all(self) -> None:
        """Show the nodes again that do not match; those that do stay marked."""
        self._only_found = False
        self._arrange()
        self.post_message(self.KeysChanged())

    @property
    def keys(self) -> Mapping[str, str]:
        """What matters most in the pane now: while others are hidden, to go from match to match, and to show them."""
        return _FILTER_KEYS if self.filtered else super().keys

    def seek(self, step: int) -> bool:
        """Go to the next match, or with ``step=-1`` to the one before; return whether there is one."""
        ahead = [i for i in self._found if (i - self.index) * step > 0]
        if not ahead:
            return False
        self.select(min(ahead) if step > 0 else max(ahead))
        return True

    def can_fold(self) -> bool:
        """Return whether folds can be seen; if not, the reason is said."""
        text = ""
        if self.filtered:
            text = "the filter shows single nodes: Esc shows all of them, and then modules can be folded"
        elif self._sorted is not None:
            text = "sorted rows are single nodes: o puts them into the engine's order, and then modules can be folded"
        if text:
            self.post_message(self.VerbRefused(text))
        return not text

    def switch(self, session: Session) -> None:
        """Unfold the module under the cursor, or fold the one that its node belongs to; go to the line of a cut."""
        cut = self._rows.cut(self.cursor)
        if cut is not None:
            self.post_message(CutFollowed(cut.finding))
        elif self.can_fold() and not self.unfold_here():
            self.fold_around()

    def open(self, session: Session) -> None:
        """Open the gradient that comes to the node under the cursor; what is no node is switched."""
        node, row = self.node, self.cursor
        if node is None or row >= len(self._rows) or self.module or self._rows.is_no_node(row):
            self.switch(session)
            return
        slot = next((slot for slot, grad in enumerate(node.grad_outputs or ()) if grad is not None), -1)
        if slot < 0:
            self.post_message(self.VerbRefused(f"no gradient of #{node.index} is known here; Space folds its module"))
        else:
            title = f"grad in of #{node.index}"
            self.post_message(self.TensorOpened(TensorLink(f"at_node({node.index}).grads[{slot}]", title)))

    def fold_around(self) -> None:
        """Fold the module of the node under the cursor; if there is none, that is said."""
        if self.can_fold() and not self.fold_here():
            text = "the node under the cursor belongs to no module that could be folded"
            self.post_message(self.VerbRefused(text))

    def toggle_fold(self, module: str, first: int) -> None:
        """Fold or unfold a module, and go to its first node; ``-1`` where it has none in this backward."""
        if self.can_fold():
            self.set_folded(self.folded - {module} if module in self.folded else self.folded | {module})
            if first >= 0:
                self.select(first)

    def copied(self) -> str:
        """Return number, name and place of the node under the cursor."""
        node = self.node
        if node is None:
            return ""
        return "  ".join(part for part in (title_of(node, len(self._records)), place_of(node.location)) if part)

    def fold_here(self) -> str:
        """Fold the module of the node under the cursor; of a folded one, the module around it. Return which."""
        node = self.node
        chain = ancestors(self.module)[:-1] if self.module else ancestors(node.module) if node is not None else []
        if not chain:
            return ""
        self.set_folded(frozenset(m for m in self.folded if not m.startswith(chain[-1] + ".")) | {chain[-1]})
        return chain[-1]

    def unfold_here(self) -> bool:
        """Unfold the module under the cursor, down to where it has several parts; return whether there was one."""
        module = self.module
        if not module:
            return False
        parts = parts_of(module, self._outline.modules)
        apart = {one for one in self.folded if one == module or one.startswith(f"{module}.")}
        apart -= {one for one in apart for part in parts if one == part or one.startswith(f"{part}.")}
        self.set_folded((self.folded - apart) | parts)
        return True

    def set_folded(self, modules: frozenset[str]) -> None:
        """Fold these modules, and no others."""
        self.folded = modules
        self._arrange()

    @property
    def modules(self) -> frozenset[str]:
        """All modules of the graph, with those that they are part of."""
        return frozenset(a for m in set(self._outline.modules) for a in ancestors(m))

    def position(self, key: int | None) -> int | None:
        """Return the index of the node with a key, if it is here."""
        return None if key is None else self._outline.positions.get(key)

    @property
    def outline(self) -> Outline:
        """What does not change of the graph."""
        return self._outline

    # Drawing ---------------------------------------------------------------------------------------------------------

    def line_count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def line_width(self) -> int:
        """Return 0: what has no room in a line stands in the inspector."""
        return 0

    def line(self, row: int, width: int) -> Text:
        """Return the line of one row."""
        cut = self._rows.cut(row)
        if cut is not None:
            return self._cut_line(row, cut, width)
        heading = self._rows.heading(row)
        return self._heading_line(row, heading, width) if heading else self._node_line(row, width)

    def _heading_line(self, row: int, module: str, width: int) -> Text:
        """Return the name of a module, above its nodes."""
        dim = self.color("" if self.is_marked(row) else "dim")
        text = Text(no_wrap=True, end="").append("›" if self.is_marked(row) else " ", self.color("now"))
        text.append(" " * (self._gutter() - 1))
        self._append_lanes(text, row, " ", dim)
        text.append(f"▾ {module}", self.color("head"))
        self._append_kind(text, module, dim)
        text.truncate(width, overflow="ellipsis")
        return text

    def _cut_line(self, row: int, cut: CutRow, width: int) -> Text:
        """Return a module that gets no gradient; in the first row of a branch, where it is cut off."""
        dim, bad = self.color("" if self.is_marked(row) else "dim"), self.color("bad")
        text = Text(no_wrap=True, end="").append("›" if self.is_marked(row) else " ", self.color("now"))
        text.append(" " * (self._gutter() - 1))
        self._append_lanes(text, row, " ", dim)
        text.append("✂ " if cut.first else "    ", bad).append(cut.name, bad if cut.first else None)
        if cut.module in self._modules:
            text.append(f"  {self._modules[cut.module].kind}")
        if cut.first:
            where = _place(cut.finding.location, width, with_file=width >= _WIDE)
            if where and cut.finding.likely:
                where = f"likely {where}" if width >= _WIDE else f"{where}?"
            text.append(f"  no gradient{f', {where}' if where else ''}", bad)
        text.append(f"  {', '.join(cut.names)}", dim)
        text.truncate(width, overflow="ellipsis")
        return text

    def _node_line(self, row: int, width: int) -> Text:
        """Return a node, or a module that is folded."""
        module, span = self._rows.folded(row), self._rows.span(row)
        first = self._records[span[0]]
        last = self._records[span[-1]]
        state = str(first.state if first.state == last.state else "current")
        if state == "current" and self._current < 0 and not self._over:  # the program has gone on from there
            state = "done"
        glyph, word, color = NODE_STATES[state]
        bad = _bad_word(first) if len(span) == 1 else ""
        if bad:
            glyph, word, color = NODE_STATES["failed"][0], bad, "bad"
        broken = state in ("failed", "skipped") or bool(bad)
        if not broken and len(span) <= _MOST_FOLDED and any(self._records[index].edited for index in span):
            glyph, _, color = EDITED
        dim = self.color("" if self.is_marked(row) else "dim")
        style = dim if color == "dim" else self.color(color)
        text = self._margin(row, dim)
        text.append(f"{glyph} ", style)
        self._append_lanes(text, row, "▣" if module else "○" if state == "pending" else "◉", style)
        strong = self.color("now") if state == "current" else self.color("strong")
        tail = f"  {glyph} {word}" if broken else ""
        tail = "  ◀ LIVE" if self._live in span else tail
        missing = self._joined_by(first.index) if self._cut_off and not module and not tail else 0
        cut = f"  ✂ {missing} input{'s' if missing > 1 else ''}" if missing else ""
        if text.cell_len + _LEAST_SHORTENED + len(tail) > width:  # the glyph before the lanes says it too
            tail = ""
        columns = self._columns(row, width)
        wide, room = width >= _WIDE, width - len(tail) - len(cut) - columns.cell_len
        if module:
            text.append(f"▸ {module}", strong)
            self._append_kind(text, module, dim)
            text.append(f"  {len(span)} node{'s' if len(span) != 1 else ''}", dim)
        else:
            least = text.cell_len + _NARROW_OPERATOR + _LEAST_LABEL
            fits = wide or (room >= least and columns.plain.strip())
            self._label(text, first, room if fits else width - len(tail), wide, strong, dim)
        if not wide and text.cell_len > room:  # in a narrow pane the name is worth more than the number
            columns, room, cut = Text(), width - len(tail), ""
        text.truncate(room, overflow="ellipsis")
        text.pad_right(room - text.cell_len)
        text.append(tail, style if broken else self.color("now"))
        text.append(cut if text.cell_len + len(cut) + columns.cell_len <= width else "", self.color("warn"))
        return text.append_text(columns)

    def _append_lanes(self, text: Text, row: int, spot: str, style: Style) -> None:
        """Append the lanes, each in its color; the node in that of its state."""
        lanes = self._drawn_lanes()
        lane = self._layout[row] if row < len(self._layout) else _ALONE
        for place, (cell, owner) in enumerate(lane_cells(lane, spot, lanes)):
            at_node = place == 2 * min(lane.column, lanes - 1)
            text.append(cell, style if at_node else self.color(f"lane-{owner % _LANE_COLORS}") if cell != " " else None)
        if self._lanes > lanes:
            beyond = lane.hidden + (lane.below >> lanes).bit_count()
            text.append(f"{f'+{beyond}' if beyond else '':<{self._beyond()}}", self.color("dim"))

    def _append_kind(self, text: Text, module: str, dim: Style) -> None:
        """Append what a module is, where that is known; one that is in no other is called by its class."""
        record = self._modules.get(module)
        if record is not None and record.kind != module:
            text.append(f"  {record.kind}")
        if record is not None and record.arguments:
            text.append(f"{' ' if record.kind != module else '  '}{record.arguments}", dim)

    def _columns(self, row: int, width: int) -> Text:
        """Return what there is to show of the gradient that comes to a node, or into a folded module."""
        span = self._rows.span(row)
        node = self._records[span[0]]
        before = norm_before(node.index, self._records, self._outline)
        norm = math.nan if len(span) <= _MOST_FOLDED and any(map(self._is_nan, span)) else node.norm
        widths = column_widths(width, self._view.columns)
        (number, color), (bar, bar_color), (ratio, _) = norm_columns(
            norm, before, max(1, widths.get("bar", 0) - 1), self._scale
        )
        cells = {
            "shape": (f"{_shape_of(node) if len(span) == 1 else '':>{widths.get('shape', 1) - 1}} ", "dim"),
            "norm": (number, color),
            "bar": (bar, bar_color),
            "ratio": (ratio, "dim"),
            "time": (f"{self._time_of(span):>{widths.get('time', 0)}}", "dim"),
        }
        text = Text(" ", no_wrap=True, end="")
        for column in widths:
            text.append(cells[column][0], self.color(cells[column][1]))
        return text

    def _time_of(self, span: range) -> str:
        """Return how long the nodes of a row ran."""
        known = [self._records[index].duration for index in span[:_MOST_FOLDED]]
        times = [time for time in known if time is not None]
        return format_duration(sum(times)) if times else ""

    def _is_nan(self, index: int) -> bool:
        norm = self._records[index].norm
        return norm is not None and math.isnan(norm)

    def _margin(self, row: int, dim: Style) -> Text:
        """Return the signs before a row: where the session stands, the cursor, breakpoints, matches, the number."""
        text, span = Text(no_wrap=True, end=""), self._rows.span(row)
        if self._live in span:
            sign, color = "▶", "now"
        elif self._current in span:
            past = "strong" if self.is_marked(row) else "past"
            sign, color = ("◁", past) if self._replaying else ("▶", "now")
        else:
            sign, color = "›" if self.is_marked(row) else " ", "now"
        text.append(sign, self.color(color))
        first = self._records[span[0]]
        if len(span) <= _MOST_FOLDED and any(self._marked(self._records[index]) for index in span):
            text.append("●", self.color("bad"))
        else:
            text.append("∙" if self._is_found(span) else " ", self.color("good"))
        text.append(f"{first.index:>{self._digits()}} ", dim)
        return text

    def _is_found(self, span: range) -> bool:
        if not self._found or self._only_found:
            return False
        at = bisect_left(self._found, span[0])
        return at < len(self._found) and self._found[at] in span

    def _label(self, text: Text, node: NodeRecord, width: int, wide: bool, strong: Style, dim: Style) -> None:
        label = node.parameter or node.module
        if self._has_heading(node):
            text.append("  ")
            label = node.parameter.removeprefix(f"{node.module}.")
        elif not label:
            room = width - text.cell_len - (_OPERATOR if wide else _NARROW_OPERATOR) - 1
            label = _place(node.location, room, with_file=wide)
        room = max(4, width - text.cell_len)
        wide = wide and room >= _OPERATOR + 1 + min(len(label), _LEAST_LABEL)
        name = node.operator if wide else node.operator.replace("AccumulateGrad", "AccumGrad")
        if label:
            text.append(f"{name:<{min(_OPERATOR if wide else _NARROW_OPERATOR, room)}}", strong)
            left = width - text.cell_len - 1
            text.append(f" {shorten(label, left)}" if left >= min(cell_len(label), _LEAST_SHORTENED) else "", dim)
        else:
            text.append(name, strong)

    def _has_heading(self, node: NodeRecord) -> bool:
        """Whether the module of a node stands in a row above it."""
        if not self._headings or self._only_found or self._sorted is not None or not node.module:
            return False
        modules = self._outline.modules
        around = (node.index - 1, node.index + 1)
        return any(0 <= index < len(modules) and modules[index] == node.module for index in around)

    @property
    def _replaying(self) -> bool:
        return self.has_class("-replaying")

    def _digits(self) -> int:
        return max(3, len(str(len(self._records) - 1)))

    def _gutter(self) -> int:
        """Return the cells before the lanes."""
        return self._digits() + 5

    def _drawn_lanes(self) -> int:
        # Which parameter a row brings its gradient and how large that is says more than a further lane.
        label = _NARROW_OPERATOR + 1 + _LEAST_LABEL + (2 if self._headings else 0)
        left = self.scrollable_content_region.width - self._gutter() - label
        numbers = 1 + sum(self.shown_columns().values())
        left -= numbers if left >= numbers + 2 * _LEAST_LANES else 0  # else they are not shown
        if self._lanes > min(MAX_LANES, max(_LEAST_LANES, left // 2)):
            left -= self._beyond()
        return min(self._lanes, MAX_LANES, max(_LEAST_LANES, left // 2))

    def _beyond(self) -> int:
        """Return the cells that tell how many lanes are not drawn."""
        return len(str(self._lanes)) + 2


def _bad_word(node: NodeRecord) -> str:
    """Say in two words which bad value came out of a node that was given none; nothing where none did."""
    bad, inherited = produced_bad(node), inherited_in(node)
    if not bad:
        return ""
    return f"{bad} came out" if inherited is None else f"hands on {bad}" if inherited else f"made {bad}"


def _place(location: Location | None, width: int, *, with_file: bool) -> str:
    """Write a line of the user's code, with its file where there is room; nothing where it is not known."""
    if location is None:
        return ""
    number = location.lineno
    places = (f"{basename(location.filename)}:{number}" if with_file else "", f":{number}")
    return next((place for place in places if place and len(place) <= width), "")


def _shape_of(node: NodeRecord) -> str:
    """Return the shape of the gradient that comes to a node, of the first where there are several."""
    return ",".join(map(str, node.outputs[0].shape)) if node.outputs else ""
