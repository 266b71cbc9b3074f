"""The modules as a tree, with every parameter: the norm of its gradient now and over the latest backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.message import Message

from gradscope.inspect.output.sparkline import sparkline
from gradscope_tui.sessions.session_protocol import is_over
from gradscope_tui.widgets.graph_rows import NOTHING
from gradscope_tui.widgets.labels import shorten
from gradscope_tui.widgets.line_pane import CursorPane, Place
from gradscope_tui.widgets.model_tree import ModelRow, ModelTree
from gradscope_tui.widgets.norm_columns import NormScale, norm_columns

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import ModuleRecord, ParameterRecord
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["ModulesPane"]

_FOR_TIME, _FOR_BAR, _FOR_SHAPE = 48, 72, 90
"""Cells from which on a line has room for the norms over time, for a bar, and for the shape."""

_TIME, _SHAPE = 16, 16
"""Cells of the norms over time, at least, and of a shape."""


class ModulesPane(CursorPane):
    """The modules of a backward, in the order in which their first node runs, and their parameters."""

    NUMBER: ClassVar[int] = 7
    TITLE: ClassVar[str] = "Modules"
    SHORT: ClassVar[str] = "Mods"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {"open": "Fold, or go there"}
    KEY_HELP: ClassVar[str] = "Go to the modules and all their parameters"
    ABOUT: ClassVar[str] = (
        "The tree of modules with every parameter, in the order in which the backward comes to them, from the loss on, "
        "but those first and in red that are not reached: the norm of what this "
        "backward brings it, and of what the latest backwards brought, as a line of blocks on a logarithmic scale, `!` "
        "for NaN and Inf, `.` for zero. Space folds a module here and in the graph, and goes to a parameter's node, or "
        "says why it has none."
    )
    EMPTY: ClassVar[str] = "no module: tensors of a module that has run are told by its name"

    class Switched(Message):
        """A module is to be folded in the graph, or unfolded."""

        def __init__(self, module: str, first: int) -> None:
            super().__init__()
            self.module = module
            self.first = first

    class Chosen(Message):
        """The node of a parameter is to be shown, or why there is none."""

        def __init__(self, parameter: ParameterRecord) -> None:
            super().__init__()
            self.parameter = parameter

    class Shown(Message):
        """The pane can be seen: it wants to know the parameters."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._outline = NOTHING
        self._parameters: Sequence[ParameterRecord] = ()
        self._modules: Mapping[str, ModuleRecord] = {}
        self._tree = ModelTree((), ())
        self._rows: list[ModelRow] = []
        self._folded: frozenset[str] = frozenset()
        self._current = -1
        self._scale = NormScale()

    def on_show(self, event: events.Show) -> None:
        """Say that the pane can be seen."""
        self.post_message(self.Shown())

    def update(self, snapshot: Snapshot) -> None:
        """Show the modules of the backward, how many of their nodes have run, and what their parameters get."""
        self._scale = snapshot.scale
        over = is_over(snapshot.state) or (snapshot.past and snapshot.live < 0)
        current = len(snapshot.nodes) if over else snapshot.current
        known = snapshot.outline is self._outline and snapshot.parameters is self._parameters
        if (known, snapshot.folded, current, snapshot.modules) == (True, self._folded, self._current, self._modules):
            return
        if not known:
            self._tree = ModelTree(snapshot.outline.modules, snapshot.parameters)
        if not known or snapshot.folded != self._folded:
            self._rows = self._tree.rows(snapshot.folded)
        self._outline, self._parameters = snapshot.outline, snapshot.parameters
        self._modules, self._folded, self._current = snapshot.modules, snapshot.folded, current
        self.set_heading(about=str(self._tree.module_count or ""))
        self.content_changed()
        self.cursor = min(self.cursor, max(0, len(self._rows) - 1))

    @property
    def selected(self) -> ModelRow | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def copied(self) -> str:
        """Return the path of the module or the parameter under the cursor."""
        return self.selected.path if self.selected is not None else ""

    def switch(self, session: Session) -> None:
        """Fold the module under the cursor, or unfold it; go to the node of a parameter, or ask why it has none."""
        row = self.selected
        if row is None:
            return
        if row.parameter is not None:
            self.post_message(self.Chosen(row.parameter))
        else:
            self.post_message(self.Switched(row.path, row.nodes[0] if row.nodes else -1))

    def line_width(self) -> int:
        """Return 0: what has no room in a line is left out."""
        return 0

    def line_count(self) -> int:
        """Return the number of modules and parameters that are not folded away."""
        return len(self._rows)

    def line(self, row: int, width: int) -> Text:
        """Return the line of a module or a parameter."""
        one = self._rows[row]
        here = self._current in one.nodes
        text = Text(no_wrap=True).append("▶" if here else "›" if row == self.cursor else " ", self.color("now"))
        text.append("  " * one.depth)
        if one.parameter is None:
            self._describe_module(text, one, here)
        else:
            self._describe_parameter(text, one, here, width)
        if not width:  # a width of 0 asks for the text that a search goes through
            return text
        if one.norm is None and not one.recent and width < _FOR_SHAPE:  # its columns are empty
            text.truncate(width, overflow="ellipsis")
            return text
        columns = self._columns(one, width)
        room = max(1, width - columns.cell_len)
        text.truncate(room, overflow="ellipsis")
        text.pad_right(room - text.cell_len)
        return text.append_text(columns)

    def _describe_module(self, text: Text, row: ModelRow, here: bool) -> None:
        record = self._modules.get(row.path)
        text.append("▸ " if row.path in self._folded else "▾ ", self.color("dim"))
        text.append(row.name, self.color("now" if here else "strong"))
        if record is not None and record.kind != row.path:
            text.append(f" {record.kind}")
        if row.unreached:
            text.append(f"  ✗ {row.unreached} not reached", self.color("bad"))
        if row.nodes:
            done = sum(index < self._current for index in row.nodes) if len(row.nodes) < 1000 else None
            count = f"{len(row.nodes)} nodes" if done is None else f"{done}/{len(row.nodes)} nodes"
            text.append(f"  {count}", self.color("good" if done == len(row.nodes) else "dim"))
        if record is not None and record.arguments:
            text.append(f"  {record.arguments}", self.color("dim"))

    def _describe_parameter(self, text: Text, row: ModelRow, here: bool, width: int) -> None:
        parameter = row.parameter
        assert parameter is not None
        sign, color = ("✗ ", "bad") if row.unreached else ("  ", "now" if here else "")
        text.append(sign + shorten(row.name, max(8, width // 2)), self.color(color))
        if row.unreached:
            text.append("  not reached", self.color("bad"))
        elif not parameter.requires_grad:
            text.append("  frozen", self.color("dim"))
        elif parameter.index < 0:
            text.append("  not in this backward", self.color("dim"))

    def _columns(self, row: ModelRow, width: int) -> Text:
        """Return shape, norm and norms over time, as far as there is room for them."""
        text = Text(no_wrap=True)
        if width >= _FOR_SHAPE:
            shape = ",".join(map(str, row.parameter.shape)) if row.parameter is not None else ""
            text.append(f" {shorten(shape, _SHAPE):>{_SHAPE}}", self.color("dim"))
        text.append(" ")
        bar = 0 if width < _FOR_BAR else min(20, width // 8)
        for piece, color in norm_columns(row.norm, None, bar, self._scale)[: 2 if bar else 1]:
            text.append(piece, self.color(color))
        if width >= _FOR_TIME:
            cells = max(_TIME, width // 5)
            text.append(f"  {sparkline(row.recent, cells):<{cells}}", self.color("good"))
        return text
