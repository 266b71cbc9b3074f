"""What is known about one node: its derivative, gradients in and out, saved tensors, and the nodes beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message

from gradscope.inspect.debugging.prompt.plain_text import node_text
from gradscope_tui.sessions.session_protocol import is_over
from gradscope_tui.sessions.session_snapshot import Focus
from gradscope_tui.widgets.histogram import HistogramAxis
from gradscope_tui.widgets.labels import EDITED, NODE_STATES, UNREADABLE, basename, short_value
from gradscope_tui.widgets.line_pane import CursorPane, Place

if TYPE_CHECKING:
    from gradscope.inspect.records.records import Location, NodeRecord, SavedRecord, TensorSummary, WriteRecord
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Neighbour, Snapshot

__all__ = ["Description", "InspectorPane", "TensorLink", "describe"]

Color = Callable[[str], Style]
PRODUCED = "grad out"
WAITING = dict.fromkeys(("pending", "current"), "known when it has run")
NOT_SEEN = "not kept: it ran free"
AGAIN, NEXT_TIME = "t starts again and stops here", "b here, then R, stops at it"
"""How to see what was not kept: where the program has ended, and where it has not."""
_NOTHING_OUT = WAITING | {"failed": "none: it failed", "skipped": "none: it is left out"}
_SAVED = {"ok": "good", "modified": "bad", "released": "dim"}
_STATISTICS = ("norm", "mean", "std", "min", "max")
_OF_FINITE = ("mean", "std", "min", "max")
_LEFT_OUT_FIRST = ("std", "mean", "zero", "min", "max")
"""Columns that go where there is no room for all of them."""


class TensorLink(NamedTuple):
    """A tensor of a node, for the viewer.

    Parameters
    ----------
    expression : str
        What the program calls it, such as ``at_node(12).grads[0]``.
    title : str
        What a person does.
    """

    expression: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and where Enter leads from it: to a tensor, or to a node by its index."""

    text: Text
    link: TensorLink | int | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What the pane shows: lines that stay at the top, and the others."""

    head: tuple[Line, ...] = ()
    body: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines."""
        return self.head + self.body


class InspectorPane(CursorPane):
    """The pane about the node under the cursor of the graph."""

    NUMBER: ClassVar[int] = 2
    TITLE: ClassVar[str] = "Inspector"
    PLACE: ClassVar[Place] = Place.ABOVE
    KEYS: ClassVar[Mapping[str, str]] = {"open": "Open", "copy": "Copy"}
    KEY_HELP: ClassVar[str] = "Go to the inspector of the node under the cursor"
    ABOUT: ClassVar[str] = (
        "The node under the cursor: the line that made it, its derivative as a formula, the nodes that its gradients "
        "come from and go to, gradients and saved tensors in numbers and as histograms on one axis, with the version "
        "at which each was saved, the version now and who wrote it since. Enter on a tensor opens it, on a node goes "
        "there; a click does too."
    )
    EMPTY: ClassVar[str] = "no node yet"

    class TensorOpened(Message):
        """A tensor is to be looked at."""

        def __init__(self, link: TensorLink) -> None:
            super().__init__()
            self.link = link

    class NodeFollowed(Message):
        """Another node is to be looked at."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._focus = Focus()
        self._records: Sequence[NodeRecord] = ()
        self._shown = Description()
        self._drawn_for = (0, 0)
        self._to_produced = False

    @property
    def node(self) -> NodeRecord | None:
        """The node that is shown, with all that is known about it."""
        return self._focus.node

    @property
    def text(self) -> str:
        """All that is shown."""
        return "\n".join(line.text.plain for line in self._shown.lines)

    def show_produced(self) -> None:
        """At the next look, begin with what the node has produced."""
        self._to_produced = True

    def update(self, snapshot: Snapshot) -> None:
        """Show the node under the cursor."""
        self._records = snapshot.nodes
        if snapshot.focus is not self._focus:
            self.show(snapshot.focus)

    def stopped(self, snapshot: Snapshot) -> None:
        """After a node, begin with what it has produced."""
        if snapshot.state == "paused after" and snapshot.here is not None and snapshot.here.state == "done":
            self.show_produced()

    def move(self, rows: int) -> None:
        """Go to the next line that leads anywhere, if it is near; scroll where none is."""
        links = [row for row, line in enumerate(self._shown.lines) if line.link is not None]
        ahead = (
            [row for row in links if row > self.cursor]
            if rows > 0
            else [row for row in links[::-1] if row < self.cursor]
        )
        beyond = [row for row in ahead if abs(row - self.cursor) >= abs(rows)]
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if beyond and top - abs(rows) <= beyond[0] < top + height + abs(rows):
            self.cursor = beyond[0]
            return
        if ahead and not beyond:
            self.cursor = ahead[-1]
        self.scroll_relative(y=rows, animate=False, force=True)

    def copied(self) -> str:
        """Return all that is known about the node."""
        return node_text(self.node, self._records) if self.node is not None else ""

    def switch(self, session: Session) -> None:
        """Follow the line under the cursor: open a tensor, go to a node."""
        lines = self._shown.lines
        link = lines[self.cursor].link if self.cursor < len(lines) else None
        if isinstance(link, TensorLink):
            self.post_message(self.TensorOpened(link))
        elif link is not None:
            self.post_message(self.NodeFollowed(link))
        else:
            self.post_message(self.VerbRefused("Enter opens a tensor or goes to a node: move to a line of one"))

    def show(self, focus: Focus) -> None:
        """Show a node."""
        before, self._focus = self._focus.node, focus
        node = focus.node
        same = not self._to_produced and node is not None and before is not None and node.key == before.key
        lines, row = self._shown.lines, self.cursor
        link = lines[row].link if row < len(lines) else None
        inside = f" in {focus.folded}" if focus.folded else ""
        self.set_heading(about=f"#{node.index} {node.operator}{inside}" if node else "")
        self.redraw()
        if not same:
            self.scroll_to(0, 0, animate=False, force=True)
            self.set_reactive(InspectorPane.cursor, 0)
            self.cursor = self._first_row()
        elif link is not None:  # more lines may stand above by now
            self.cursor = next((row for row, line in enumerate(self._shown.lines) if line.link == link), row)
        else:
            self.cursor = self._first_row()

    def _first_row(self) -> int:
        """Return the line at which a node is shown first: the first that leads to a tensor."""
        wanted, self._to_produced = self._to_produced, False
        lines = list(enumerate(self._shown.lines))
        tensors = [row for row, line in lines if isinstance(line.link, TensorLink)]
        produced = [row for row, line in lines if wanted and line.link and line.text.plain.startswith(PRODUCED)]
        return next(iter([*produced, *tensors]), 0)

    def redraw(self) -> None:
        """Write the node down again: with another node, in another size or in other colors."""
        region = self.scrollable_content_region
        self._drawn_for = region.width, region.height
        fit = self.node is not None and region.width > 0
        self._shown = describe(self._focus, region.width, self.color, _tall(region.height)) if fit else Description()
        super().content_changed()

    def content_changed(self) -> None:
        """Draw again if the size is another one, and measure."""
        region = self.scrollable_content_region
        if (region.width, region.height) != self._drawn_for:
            self.redraw()
        else:
            super().content_changed()

    def line_count(self) -> int:
        """Return the number of lines about the node."""
        return len(self._shown.lines)

    def line_width(self) -> int:
        """Return the width of the widest line."""
        return max((line.text.cell_len for line in self._shown.lines), default=0)

    def line(self, row: int, width: int) -> Text:
        """Return one line."""
        return self._shown.lines[row].text

    def is_marked(self, row: int) -> bool:
        """Mark the cursor line, where it leads anywhere."""
        return row == self.cursor and self._shown.lines[row].link is not None

    def row_at(self, y: int) -> int:
        """Return the row that is drawn at a line of the pane: those of the head stay."""
        return y if y < len(self._shown.head) else super().row_at(y)

    def reveal(self, row: int) -> None:
        """Scroll, if need be, so that `row` is seen below the head."""
        head, height, top = len(self._shown.head), self.scrollable_content_region.height, self.scroll_offset.y
        if row < top + head:
            self.scroll_to(y=max(0, row - head), animate=False, force=True)
        elif row >= top + height > top:
            self.scroll_to(y=row - height + 1, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """Follow a link that is clicked."""
        if event.get_content_offset(self) is not None:
            self.call_later(self.switch_clicked)

    def switch_clicked(self) -> None:
        """Follow the line under the cursor, if it leads anywhere."""
        if self.cursor < self.line_count() and self._shown.lines[self.cursor].link is not None:
            self.app.call_later(self.app.run_action, "switch")


def _tall(height: int) -> int:
    """Return how many lines a histogram has in a pane of so many."""
    return 1 if height < 20 else 2 if height < 40 else 3


def describe(focus: Focus, width: int, color: Color, tall: int = 1) -> Description:
    """Write what is known about a node.

    Parameters
    ----------
    focus : Focus
        The node, and its neighbours.
    width : int
        Cells that a line should take at most.
    color : callable
        Gives the style for ``'head'``, ``'dim'``, ``'strong'``, ``'good'``, ``'warn'``, ``'bad'`` and ``'now'``.
    tall : int
        Rows of a histogram.
    """
    node = focus.node
    assert node is not None
    if node.name == UNREADABLE:
        text = f"Node #{node.index} cannot be read: the recording is damaged where it stands."
        return Description(tuple(Line(Text(line, color("bad"))) for line in wrap(text, max(width, 1))))
    return Description(tuple(_head(node, width, color)), tuple(_Body(focus, node, width, color).lines(tall)))


def _head(node: NodeRecord, width: int, color: Color) -> list[Line]:
    """Return the lines that stay: which node it is, and where it was made."""
    glyph, word, style = NODE_STATES[str(node.state)]
    first = Text.assemble((node.name, color("strong")), f" #{node.index}  ", (f"{glyph} {word}", color(style)))
    if node.edited:
        first.append(f"  {' '.join(EDITED[:2])}", color(EDITED[2]))
    if node.parameter or node.module:
        first.append(f"  {node.parameter or node.module}", color("head"))
    if node.location is not None:
        return [Line(first), *(Line(text) for text in _made_at(node.location, width, color))]
    second = Text("the line that made it is not known", color("dim"))
    if node.parameter:
        second = Text.assemble(("adds to ", color("dim")), f"{node.parameter}.grad")
    return [Line(first), Line(second)]


def _made_at(place: Location, width: int, color: Color) -> Iterator[Text]:
    """Yield where a node was made: where there is no room for all of it, the code in a line of its own."""
    text = Text.assemble(("made at ", color("dim")), f"{basename(place.filename)}:{place.lineno}")
    function, source = f" {place.function}", place.source.strip()
    if text.cell_len + cell_len(function) + (2 + cell_len(source) if source else 0) <= width:
        yield text.append(f"{function}  " if source else function, color("dim")).append(source)
        return
    yield text.append(function if text.cell_len + cell_len(function) <= width else "", color("dim"))
    if source:
        code = Text(f"  {source}")
        code.truncate(max(1, width), overflow="ellipsis")
        yield code


class _Tensor(NamedTuple):
    """A row of the table: a gradient or a saved tensor."""

    label: str
    about: str
    summary: TensorSummary | None
    link: TensorLink
    unread: str = ""


class _Body:
    """Writes what scrolls."""

    def __init__(self, focus: Focus, node: NodeRecord, width: int, color: Color) -> None:
        self._focus = focus
        self._node = node
        self._width = width
        self._color = color

    def lines(self, tall: int) -> list[Line]:
        """Return all lines."""
        tensors = [*self._gradients("grad in", self._node.grad_outputs, "grads"), *self._produced(), *self._saved()]
        return [
            *self._violations(),
            *self._table(tensors),
            *self._neighbours(),
            *self._unknown(),
            *self._derivative(),
            *self._versions(),
            *self._inside(),
            *self._histograms([t for t in tensors if t.summary is not None and t.summary.numel > 1], tall),
        ]

    def _title(self, title: str, more: str = "") -> Line:
        more = f" {more}" if more and len(title) + len(more) < self._width else ""
        text = Text.assemble((title, self._color("head")), (more, self._color("dim")))
        return Line(text.append(" " + "─" * max(0, self._width - text.cell_len - 1), self._color("dim")))

    def _violations(self) -> list[Line]:
        lines = []
        for saved in self._node.saved:
            if saved.state == "modified":
                text = f"‼ {saved.name} was written after it had been saved for this node"
                lines.append(Line(Text(text, self._color("bad"))))
                lines += [Line(Text(f"  by {_writer(write)}", self._color("bad"))) for write in saved.writes]
        return lines

    def _derivative(self) -> list[Line]:
        """Return the formulas, with g for the gradient that arrives."""
        found = []
        for name, formula in self._focus.derivative:
            rows = wrap(f"grad of {name} = {formula}", max(20, self._width - 2), subsequent_indent="  ")
            found += [Line(Text(f"  {row}")) for row in rows]
        about = "g is the gradient that arrives"
        if any("complex" in output.dtype for output in self._node.outputs):
            about = "for real numbers; g is the gradient that arrives"
        return [self._title("Derivative", about), *found] if found else []

    def _neighbours(self) -> list[Line]:
        """Return the nodes that its gradients come from, and those they go to."""
        lines = [self._neighbour("from", source) for source in self._focus.sources]
        for slot, edge in enumerate(self._node.edges):
            target = None if edge.target_key is None else self._focus.targets.get(edge.target_key)
            nowhere = "nothing: this input needs none" if edge.target_key is None else "outside this backward"
            lines.append(self._neighbour("to", target, slot, nowhere))
        return [self._title("Gradients"), *lines] if lines else []

    def _neighbour(self, word: str, node: Neighbour | None, slot: int | None = None, nowhere: str = "") -> Line:
        which = "" if slot is None or len(self._node.edges) < 2 else f"[{slot}] "
        text = Text.assemble((f"  {word:<5}", self._color("dim")), which)
        if node is None:
            return Line(text.append(nowhere, self._color("dim")))
        return Line(text.append(node.label, self._color("strong") + Style(underline=True)), node.index)

    def _unknown(self) -> list[Line]:
        """Say which gradients are not known, and why."""
        lines, node = [], self._node
        if node.grad_outputs is None:
            known = "known when it is about to run" if node.state in WAITING else self._not_seen
            if node.norm is not None:
                known = f"norm {short_value(node.norm)}; no more was {self._not_seen.removeprefix('not ')}"
            lines += self._wrapped(f"grad in: {known}")
        if node.grad_inputs is None and node.edges:
            why = "not kept" if node.grad_outputs is None else self._not_seen
            lines += self._wrapped(f"grad out: {_NOTHING_OUT.get(node.state, why)}")
        return lines

    @property
    def _not_seen(self) -> str:
        how = "" if self._focus.state == "running" else f" ({AGAIN if is_over(self._focus.state) else NEXT_TIME})"
        return NOT_SEEN + how

    def _wrapped(self, text: str) -> list[Line]:
        rows = wrap(text, max(20, self._width - 2), subsequent_indent="  ")
        return [Line(Text(f"  {row}", self._color("dim"))) for row in rows]

    def _gradients(self, title: str, gradients: Sequence[TensorSummary | None] | None, name: str) -> list[_Tensor]:
        many = len(gradients or ()) > 1
        found = []
        for slot, summary in enumerate(gradients or ()):
            label = f"{title} {slot}" if many else title
            link = TensorLink(f"at_node({self._node.index}).{name}[{slot}]", f"{label} of #{self._node.index}")
            found.append(_Tensor(label, _shape(summary.shape) if summary is not None else "None", summary, link))
        return found

    def _produced(self) -> list[_Tensor]:
        return self._gradients(PRODUCED, self._node.grad_inputs, "produced")

    def _saved(self) -> list[_Tensor]:
        found = []
        for place, saved in enumerate(self._node.saved):
            if saved.shape is not None:
                expression = f"at_node({self._node.index}).saved[{place}]"
                link = TensorLink(expression, f"saved {saved.name} of #{self._node.index}")
                unread = "not read while it runs" if saved.summary is None and self._focus.state == "running" else ""
                found.append(_Tensor(f"saved {saved.name}", _shape(saved.shape), saved.summary, link, unread))
        return found

    def _table(self, tensors: Sequence[_Tensor]) -> list[Line]:
        """Return an aligned grid: a row for a tensor, a column for a statistic."""
        if not tensors:
            return []
        kinds = {f"{t.summary.dtype} {t.summary.device}" for t in tensors if t.summary is not None}
        bad = [name for name in ("NaN", "Inf") if any(t.summary is not None and _bad(t.summary, name) for t in tensors)]
        columns = ["norm", *bad, "mean", "std", "min", "max", "zero"]
        cells = [{name: _cell(tensor.summary, name) for name in columns} for tensor in tensors]
        label = max(len(tensor.label) for tensor in tensors) + 2
        shape = max(len(tensor.about) for tensor in tensors)
        widths = {name: max(len(name), *(len(row[name]) for row in cells)) + 2 for name in columns}
        for name in (*_LEFT_OUT_FIRST, *bad):
            if label + shape + sum(widths.values()) > self._width:
                widths.pop(name, None)
        head = Text(" " * (label + shape)).append("".join(f"{n:>{w}}" for n, w in widths.items()), self._color("dim"))
        about = " and ".join(sorted(kinds))
        finite = [name for name in _OF_FINITE if name in widths]
        if bad and finite and len(f"Tensors {about}, {_finite_only(finite)}") < self._width:
            about = f"{about}, {_finite_only(finite)}"
        lines = [self._title("Tensors", about)]
        lines += [Line(head)] if any(t.summary is not None and t.summary.numel > 1 for t in tensors) else []
        for tensor, row in zip(tensors, cells):
            text = Text(f"{tensor.label:<{label}}", self._color("strong"))
            text = Text.assemble(text, (f"{tensor.about:>{shape}}", self._color("dim")))
            text.append(f"  {tensor.unread}" if tensor.unread else "", self._color("dim"))
            lines.append(Line(self._statistics(text, tensor.summary, row, widths), tensor.link))
        return lines

    def _statistics(
        self, text: Text, summary: TensorSummary | None, row: dict[str, str], widths: dict[str, int]
    ) -> Text:
        if summary is None:
            return text
        if summary.numel < 2:
            color = self._color("bad" if summary.nans or summary.infs else "")
            return text.append(f"  {_only_element(summary)}", color)
        for name, room in widths.items():
            alarm = _is_bad(summary, name)
            text.append(f"{row[name]:>{room}}", self._color("bad" if alarm else ""))
        return text

    def _versions(self) -> list[Line]:
        """Return what has become of each saved tensor."""
        if not self._node.saved:
            return []
        lines = [self._title("Saved")]
        for saved in self._node.saved:
            text = Text.assemble("  ", (saved.name, self._color("strong")))
            if saved.shape is None:
                text.append(f" {saved.dtype}")
            lines.append(Line(text.append("  ").append(_state(saved), self._color(_SAVED[str(saved.state)]))))
        return lines

    def _inside(self) -> list[Line]:
        """Return what is inside of a region that torch.compile has compiled, in the order of its backward."""
        inside = self._node.inside
        if not inside:
            return []
        lines = [self._title("Compiled", "inside of this node, in the order of its backward")]
        widths = [max(len(text) for text in column) for column in zip(*((one.operator, one.module) for one in inside))]
        for one in inside:
            text = Text.assemble("  ", (f"{one.operator:<{widths[0]}}", self._color("strong")))
            text.append(f"  {one.module:<{widths[1]}}" if widths[1] else "", self._color("dim"))
            if one.made is not None:
                norms = f"  {short_value(one.given)} → {short_value(one.made)}" if one.given is not None else ""
                text.append(norms, self._color("bad" if one.bad else ""))
            if one.location is not None:
                text.append(f"  {basename(one.location.filename)}:{one.location.lineno}", self._color("dim"))
            lines.append(Line(text))
            lines += [Line(Text(f"    {row}", self._color("bad"))) for row in one.why.splitlines()]
        return lines

    def _histograms(self, tensors: Sequence[_Tensor], tall: int) -> list[Line]:
        if not tensors:
            return []
        margin = max(len(tensor.label) for tensor in tensors) + 1 if self._width >= 50 else 0
        summaries = [tensor.summary for tensor in tensors if tensor.summary is not None]
        axis = HistogramAxis(summaries, self._width - margin)
        lines = [self._title("Histograms", "how many elements of each power of two")]
        lines.append(Line(Text(" " * margin + axis.labels(), self._color("dim"))))
        for tensor, summary in zip(tensors, summaries):
            if not margin:
                lines.append(Line(Text(tensor.label, self._color("dim")), tensor.link))
            for at, bars in enumerate(axis.bars(summary, tall)):
                text = Text(f"{tensor.label if at == 0 and margin else '':<{margin}}", self._color("dim"))
                lines.append(Line(Text.assemble(text, (bars, self._color("good"))), tensor.link))
        return lines


def _only_element(summary: TensorSummary) -> str:
    """Return the element of a tensor that has one at most."""
    if summary.numel:
        return summary.preview.strip("[]")
    return "no elements" if summary.has_values else "no values"


def _cell(summary: TensorSummary | None, name: str) -> str:
    if summary is None or summary.numel < 2:
        return ""
    if name in _STATISTICS:
        sign = "‼" if _is_bad(summary, name) else ""
        return sign + short_value(getattr(summary, name))
    if name == "zero":
        return f"{summary.zeros / summary.numel:.0%}"
    return f"‼{_bad(summary, name)}" if _bad(summary, name) else "0"


def _finite_only(columns: Sequence[str]) -> str:
    """Say of which columns the NaNs and infinities are left out, where others show them."""
    return f"{' to '.join(dict.fromkeys((columns[0], columns[-1])))}: finite only"


def _bad(summary: TensorSummary, name: str) -> int:
    return summary.nans if name == "NaN" else summary.infs


def _is_bad(summary: TensorSummary, name: str) -> bool:
    if name in _STATISTICS:
        value = getattr(summary, name)
        return value is not None and not isfinite(value)
    return name in ("NaN", "Inf") and _bad(summary, name) > 0


def _writer(write: WriteRecord) -> str:
    place = write.location
    return write.operator if place is None else f"{write.operator} at {basename(place.filename)}:{place.lineno}"


def _state(saved: SavedRecord) -> str:
    """Return what has become of a saved tensor."""
    before, now = saved.saved_version, saved.current_version
    if saved.state == "modified":
        return f"‼ MODIFIED: saved at version {before}, now {now}"
    if saved.state == "released":
        return "released" if saved.summary is None else "released by the program, kept by the debugger"
    return "unchanged" if before is None else f"unchanged since version {before}"


def _shape(shape: Sequence[int]) -> str:
    return "(" + ",".join(map(str, shape)) + ")"
