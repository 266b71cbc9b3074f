"""The graph in execution order: one line a node, with the lane rail of its edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.message import Message
from textual.worker import Worker

from gradscope_tui.lanes import MAX_LANES, LaneRow, draw_row, lay_out
from gradscope_tui.threads import on_thread
from gradscope_tui.widgets.pane import CursorPane
from gradscope_tui.widgets.states import NODE_STATES, basename

if TYPE_CHECKING:
    from gradscope.inspect.records import NodeRecord

__all__ = ["NodeRail"]

_WIDE = 56
"""Cells from which on a line has room for the word of a state and for the module."""

_AT_ONCE = 10_000
"""Nodes up to which the lanes are laid out while the screen waits."""

_ALONE = LaneRow(0, 0, 0, (), 0)
"""How a node is drawn whose lane is not known yet."""


class NodeRail(CursorPane, inherit_bindings=False):
    """The list of nodes; its cursor says which node the inspector and the source pane show."""

    NUMBER: ClassVar[int] = 1
    TITLE: ClassVar[str] = "Graph"
    EMPTY: ClassVar[str] = "no backward yet"

    class Selected(Message):
        """The cursor has come to another node."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._records: Sequence[NodeRecord] = ()
        self._layout: list[LaneRow] = []
        self._shape: tuple[object, ...] = ()
        self._positions: dict[int, int] = {}
        self._lanes = 1
        self._current = -1
        self._marks: frozenset[int] = frozenset()

    def show(
        self, nodes: Sequence[NodeRecord], task: int, current: int = -1, marks: frozenset[int] = frozenset()
    ) -> None:
        """Show the nodes of a backward.

        Parameters
        ----------
        nodes : sequence of NodeRecord
            In execution order; their states may have changed since the last call.
        task : int
            Which backward this is; the lanes are laid out anew only when it or the order of nodes has changed.
        current : int
            Index of the node where the session stands.
        marks : frozenset of int
            Indices of the nodes on which a breakpoint lies.
        """
        self._records, self._current, self._marks = nodes, current, marks
        shape = (task, hash(tuple(node.key for node in nodes)))
        if shape != self._shape:
            self._shape = shape
            self._positions = {node.key: index for index, node in enumerate(nodes)}
            self._draw_lanes()
            self.content_changed()
            self.cursor = min(self.cursor, max(0, len(nodes) - 1))
        self.refresh()

    def _draw_lanes(self) -> None:
        """Lay out the lanes: at once, or on another thread where that takes long; until then there are none."""
        graph = [(node.key, [edge.target_key for edge in node.edges]) for node in self._records]
        self._layout = []
        if len(graph) <= _AT_ONCE:
            self._take_lanes(lay_out(graph))
            return

        async def later() -> None:
            shape = self._shape
            rows = await on_thread(lambda: lay_out(graph))
            if shape == self._shape:
                self._take_lanes(rows)

        self._laying: Worker[None] = self.run_worker(later, group="lanes", exclusive=True)

    def _take_lanes(self, rows: list[LaneRow]) -> None:
        self._layout = rows
        self._lanes = 1 + max((max(row.column, *row.targets, 0) for row in rows), default=0)
        self.refresh()

    @property
    def node(self) -> NodeRecord | None:
        """The node under the cursor."""
        return self._records[self.cursor] if self.cursor < len(self._records) else None

    def position(self, key: int | None) -> int | None:
        """Return the index of the node with a key, if it is here."""
        return None if key is None else self._positions.get(key)

    def line_count(self) -> int:
        """Return the number of nodes."""
        return len(self._records)

    def line(self, row: int, width: int) -> Text:
        """Return the line of one node."""
        node = self._records[row]
        glyph, word, ink = NODE_STATES[str(node.state)]
        wide = width >= _WIDE
        lanes = min(self._lanes, MAX_LANES, max(3, (width - (40 if wide else 24)) // 2))
        dim = self.ink("" if row == self.cursor else "dim")
        text = Text(no_wrap=True, end="")
        text.append("▶" if row == self._current else "›" if row == self.cursor else " ", self.ink("now"))
        text.append("●" if row in self._marks else " ", self.ink("bad"))
        text.append(f"{node.index:>{max(3, len(str(len(self._records) - 1)))}} ", dim)
        style = dim if ink == "dim" else self.ink(ink)
        text.append(glyph, style)
        if wide:
            text.append(f" {word:<4}", style)
        spot = "○" if node.state == "pending" else "◉"
        lane = self._layout[row] if row < len(self._layout) else _ALONE
        rail = draw_row(lane, spot, lanes)
        text.append(f" {rail:<{2 * lanes}}", style)
        if self._lanes > lanes:
            beyond = lane.hidden + (lane.below >> lanes).bit_count()
            text.append(f"{f'+{beyond}' if beyond else '':<{len(str(self._lanes)) + 2}}", dim)
        strong = self.ink("now") if node.state == "current" else self.ink("strong")
        label = node.parameter or node.module or _place(node, wide)
        name = node.name if wide else node.operator.replace("AccumulateGrad", "AccumGrad")
        room = max(4, width - text.cell_len)
        if label:
            text.append(f"{name:<{min(20 if wide else 10, room)}}", strong)
            text.append(f" {label}", dim)
        else:
            text.append(name, strong)
        text.truncate(width, overflow="ellipsis")
        return text

    def watch_cursor(self, before: int, now: int) -> None:
        """Bring the cursor into view and tell the app."""
        super().watch_cursor(before, now)
        self.post_message(self.Selected(now))


def _place(node: NodeRecord, wide: bool) -> str:
    """Return the line of the user code that made a node."""
    if node.location is None:
        return ""
    return f"{basename(node.location.filename)}:{node.location.lineno}" if wide else f"line {node.location.lineno}"
