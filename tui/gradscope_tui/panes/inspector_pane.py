"""What is known about one node: gradients in and out, saved tensors with their versions, where it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text

from gradscope.inspect.debugging.prompt.plain_text import node_text
from gradscope_tui.widgets.histogram import histogram_lines
from gradscope_tui.widgets.labels import NODE_STATES, UNREADABLE, basename, short_value
from gradscope_tui.widgets.line_pane import LinePane, Place

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord, SavedRecord, TensorSummary, WriteRecord
    from gradscope_tui.sessions.session_snapshot import Focus, Snapshot

__all__ = ["InspectorPane", "describe"]

Color = Callable[[str], Style]
PRODUCED = "Gradients out"
WAITING = dict.fromkeys(("pending", "current"), "known when it has run")
NOT_SEEN = "not seen: it ran while nobody looked"
_NOTHING_OUT = WAITING | {"failed": "none: it failed", "skipped": "none: it is left out"}
_SAVED = {"ok": ("ok", "good"), "modified": ("‼ MODIFIED", "bad"), "released": ("released", "dim")}


class InspectorPane(LinePane, inherit_bindings=False):
    """The pane about the node under the cursor."""

    NUMBER: ClassVar[int] = 2
    TITLE: ClassVar[str] = "Inspector"
    PLACE: ClassVar[Place] = Place.ABOVE
    KEY_HELP: ClassVar[str] = "Go to the inspector of the node under the cursor"
    ABOUT: ClassVar[str] = (
        "The node under the cursor: gradients in and out with statistics and histogram, saved tensors with the version "
        "at which they were saved and the version now, the line that made it."
    )
    EMPTY: ClassVar[str] = "no node yet"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._focus: Focus | None = None
        self._records: Sequence[NodeRecord] = ()
        self._node: NodeRecord | None = None
        self._names: Mapping[int, str] = {}
        self._lines: list[Text] = []
        self._drawn_for = 0
        self._to_produced = False

    @property
    def node(self) -> NodeRecord | None:
        """The node that is shown, with all that is known about it."""
        return self._node

    def show_produced(self) -> None:
        """At the next look, begin with what the node has produced."""
        self._to_produced = True

    def update(self, snapshot: Snapshot) -> None:
        """Show the node under the cursor."""
        self._records = snapshot.nodes
        if snapshot.focus is not self._focus:
            self._focus = snapshot.focus
            self.show(snapshot.focus.node, snapshot.focus.names)

    def stopped(self, snapshot: Snapshot) -> None:
        """After a node, begin with what it has produced."""
        if snapshot.state == "paused after" and snapshot.here is not None and snapshot.here.state == "done":
            self.show_produced()

    def copied(self) -> str:
        """Return all that is known about the node."""
        return node_text(self._node, self._records) if self._node is not None else ""

    def show(self, node: NodeRecord | None, names: Mapping[int, str]) -> None:
        """Show a node.

        Parameters
        ----------
        node : NodeRecord or None
            The whole record, with gradients and saved tensors.
        names : mapping of int to str
            For the targets of its edges: how they are called here.
        """
        if (node, names) == (self._node, self._names) and not self._to_produced:
            return
        same = not self._to_produced and node is not None and self._node is not None and node.key == self._node.key
        self._node, self._names = node, names
        self.set_heading(about=f"#{node.index} {node.operator}" if node else "")
        self.redraw()
        if not same:
            self.scroll_to(0, self._first_row(), animate=False, force=True)

    def _first_row(self) -> int:
        """Return the line at which a node is shown first."""
        wanted, self._to_produced = self._to_produced, False
        heads = (row for row, line in enumerate(self._lines) if wanted and line.plain.startswith(PRODUCED))
        return next(heads, 0)

    def redraw(self) -> None:
        """Write the node down again: with another node, in another width or in other colors."""
        width = self.scrollable_content_region.width
        self._drawn_for = width
        tall = 2 if self.scrollable_content_region.height < 20 else 4
        self._lines = describe(self._node, width, self.color, self._names, tall) if self._node and width else []
        super().content_changed()

    def content_changed(self) -> None:
        """Draw again if the width is another one, and measure."""
        if self.scrollable_content_region.width != self._drawn_for:
            self.redraw()
        else:
            super().content_changed()

    def line_count(self) -> int:
        """Return the number of lines about the node."""
        return len(self._lines)

    def line_width(self) -> int:
        """Return the width of the widest line."""
        return max((line.cell_len for line in self._lines), default=0)

    def line(self, row: int, width: int) -> Text:
        """Return one line."""
        return self._lines[row]


def describe(node: NodeRecord, width: int, color: Color, names: Mapping[int, str], tall: int = 2) -> list[Text]:
    """Write what is known about a node.

    Parameters
    ----------
    node : NodeRecord
        The whole record.
    width : int
        Cells that a line should take at most.
    color : callable
        Gives the style for ``'head'``, ``'dim'``, ``'strong'``, ``'good'``, ``'warn'``, ``'bad'`` and ``'now'``.
    names : mapping of int to str
        How the targets of the node's edges are called.
    tall : int
        Rows of the histograms of gradients.

    Returns
    -------
    list of Text
        The lines.
    """
    if node.name == UNREADABLE:
        text = f"Node #{node.index} cannot be read: the recording is damaged where it stands."
        return [Text(line, color("bad")) for line in wrap(text, max(width, 1))]
    glyph, word, style = NODE_STATES[str(node.state)]
    lines = [Text.assemble((node.name, color("strong")), f" #{node.index}  ", (f"{glyph} {word}", color(style)))]
    for label, value in (("parameter", node.parameter), ("module", node.module)):
        if value:
            lines.append(Text.assemble((f"{label} ", color("dim")), value))
    if node.location is not None:
        place = f"{basename(node.location.filename)}:{node.location.lineno}"
        lines.append(Text.assemble(("made at ", color("dim")), place, (f" in {node.location.function}", color("dim"))))
    for saved in node.saved:
        if saved.state == "modified":
            lines.append(Text(f"‼ {saved.name} was written after it had been saved for this node", color("bad")))
            lines += [Text(f"  by {_writer(write)}", color("bad")) for write in saved.writes]
    unknown = "known when it is about to run" if node.state in WAITING else NOT_SEEN
    lines += _gradients("Gradients in", node.grad_outputs, width, color, tall, {}, unknown)
    targets = {
        slot: "nothing" if edge.target_key is None else names.get(edge.target_key, "a node outside this backward")
        for slot, edge in enumerate(node.edges)
    }
    lines += _gradients(PRODUCED, node.grad_inputs, width, color, tall, targets, _NOTHING_OUT.get(node.state, NOT_SEEN))
    if not node.edges:
        lines.append(Text(f"  added to {node.parameter}.grad" if node.parameter else "  none", color("dim")))
    lines += _head("Saved tensors", width, color)
    for saved in node.saved:
        lines += _saved(saved, width, color)
    if not node.saved:
        lines.append(Text("  none", color("dim")))
    return lines


def _writer(write: WriteRecord) -> str:
    place = write.location
    return write.operator if place is None else f"{write.operator} at {basename(place.filename)}:{place.lineno}"


def _head(title: str, width: int, color: Color) -> list[Text]:
    return [Text.assemble((f"{title} ", color("head")), ("─" * max(0, width - len(title) - 1), color("dim")))]


def _gradients(
    title: str,
    gradients: Sequence[TensorSummary | None] | None,
    width: int,
    color: Color,
    tall: int,
    targets: dict[int, str],
    unknown: str,
) -> list[Text]:
    """Write the gradients of one side, with where they go; without gradients, only where they will go."""
    lines = _head(title, width, color)
    slots = range(max(len(gradients) if gradients is not None else 0, len(targets)))
    if gradients is None and (targets or title == "Gradients in"):
        lines.append(Text(f"  {unknown}", color("dim")))
    for slot in slots:
        gradient = gradients[slot] if gradients is not None and slot < len(gradients) else None
        line = Text.assemble((f"[{slot}] ", color("strong")))
        if gradient is not None:
            line.append(f"{gradient.dtype} {_shape(gradient.shape)} {gradient.device}")
        elif gradients is not None:
            line.append("None", color("dim"))
        if slot in targets:
            line.append(f"{'' if gradients is None else ' '}→ {targets[slot]}", color("dim"))
        lines.append(line)
        if gradient is not None:
            lines += _statistics(gradient, width, color, tall)
    return lines


def _statistics(tensor: TensorSummary, width: int, color: Color, height: int) -> list[Text]:
    """Write the statistics and the histogram of a tensor."""
    if tensor.numel < 2:
        value = tensor.preview.strip("[]") if tensor.numel else "no elements"
        return [Text(f"    {value}", color("bad" if tensor.nans or tensor.infs else ""))]
    facts = [
        (name, short_value(value), "bad" if value is not None and not isfinite(value) else "")
        for name, value in (
            ("norm", tensor.norm),
            ("mean", tensor.mean),
            ("std", tensor.std),
            ("min", tensor.min),
            ("max", tensor.max),
        )
    ]
    if tensor.nans or tensor.infs:
        facts.insert(1, ("finite", f"{tensor.numel - tensor.nans - tensor.infs} of {tensor.numel}", ""))
    facts.append(("zero", f"{tensor.zeros / tensor.numel:.0%}", ""))
    facts += [(n, str(count), "bad" if count else "") for n, count in (("NaN", tensor.nans), ("inf", tensor.infs))]
    lines = [Text("   ")]
    for name, value, alarm in facts:
        if lines[-1].cell_len + len(name) + len(value) + 2 > max(width, 24):
            lines.append(Text("   "))
        mark = "‼" if alarm else " "
        lines[-1].append(f"{mark}{name} ", color(alarm or "dim"))
        lines[-1].append(value, color(alarm))
    return lines + [Text(f"    {line}", color("good")) for line in histogram_lines(tensor.histogram, width - 5, height)]


def _saved(saved: SavedRecord, width: int, color: Color) -> list[Text]:
    """Write a saved tensor: what it is, and whether it is still what was saved."""
    word, style = _SAVED[str(saved.state)]
    line = Text.assemble((saved.name, color("strong")), f" {saved.dtype} ")
    if saved.shape is not None:
        line.append(f"{_shape(saved.shape)} ")
    if saved.saved_version is not None and saved.current_version is not None:
        sign = "=" if saved.saved_version == saved.current_version else "≠"
        line.append(f"v{saved.saved_version}{sign}v{saved.current_version} ", color(style))
    line.append(word, color(style))
    lines = [line]
    if saved.summary is not None:
        lines += _statistics(saved.summary, width, color, 1)
    return lines


def _shape(shape: Sequence[int]) -> str:
    return "(" + ",".join(map(str, shape)) + ")"
