"""The modules as boxes, and the norms of the gradients that go from one to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.worker import Worker

from gradscope_tui.colors import line_style
from gradscope_tui.sessions.session_protocol import known_norms, without_gradients
from gradscope_tui.widgets.cut_branches import CutFollowed, CutRow, by_joint, cut_rows
from gradscope_tui.widgets.diagram_drawing import LABEL, Arrow, Cell, Drawing, draw
from gradscope_tui.widgets.graph_rows import NOTHING, Outline, ancestors
from gradscope_tui.widgets.labels import FINDING_SIGNS, shorten
from gradscope_tui.widgets.line_pane import LinePane, Place
from gradscope_tui.widgets.module_diagram import Box, Diagram, containers, diagram_of, norms_of, opened_to_fit
from gradscope_tui.widgets.norm_columns import NormScale, norm_bar, norm_text
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import BackwardFinding, ModuleRecord
    from gradscope.inspect.records.records import NodeRecord
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["DiagramPane"]

MOST = 300
"""Boxes that are drawn at most."""

AT_FIRST = 40
"""Boxes up to which modules are open at first."""

_HEIGHTS = (1, 3, 4)
"""Rows of a box: its name and the norm in a line; in a frame, with a bar; and with what the module is."""

_BAR = 12
"""Columns of a full bar: the same in every box, so that they can be compared."""

_LEAST, _MOST_TITLE, _MOST_KIND = LABEL + _BAR + 4, 28, 40
"""Columns of a frame, and of what stands in it."""


class _Structure:
    """The diagram of an outline with some modules open, before branches that are cut off are added.

    Attributes
    ----------
    brought : dict of int to NodeRecord
        By their indices nodes that have run, with what they have brought others: that does not change any more.
    """

    def __init__(
        self, outline: Outline = NOTHING, opened: frozenset[str] = frozenset(), nodes: Sequence[NodeRecord] = ()
    ) -> None:
        self.outline = outline
        self.opened = opened
        self.diagram = diagram_of(outline, nodes, opened, MOST)
        self.brought: dict[int, NodeRecord] = {}


class _Shown(NamedTuple):
    """What is on the screen, made together on another thread."""

    diagram: Diagram = Diagram()
    drawing: Drawing = Drawing()
    norms: Sequence[float | None] = ()
    signs: Mapping[int, tuple[str, str]] = {}
    zoom: int = 1
    cut: Mapping[int, CutRow] = {}


class DiagramPane(LinePane, inherit_bindings=False):
    """Boxes with a cursor; which nodes they stand for, :mod:`~gradscope_tui.widgets.module_diagram` says."""

    NUMBER: ClassVar[int] = 10
    TITLE: ClassVar[str] = "Diagram"
    SHORT: ClassVar[str] = "Diag"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {
        "open": "Go to its nodes",
        "switch": "Open or close",
        "grow": "Zoom",
        "shrink": "Zoom",
        "maximise": "Whole screen",
    }
    KEY_HELP: ClassVar[str] = "Go to the modules as boxes"
    ABOUT: ClassVar[str] = (
        "The modules as boxes, from the loss at the top down, with the norm of the gradient that comes into each, and "
        "on the arrows what each brings, as far as it is known: red for NaN and Inf, also where one is inside, yellow "
        "where it vanishes or explodes, with a sign where a finding is about one of its nodes. `✂` is a module that is "
        "cut off, with the line. The arrow keys go from box to box, along the arrows or beside them; Space opens a "
        "module into its parts, or closes the one around it; `+` and `-` zoom, `m` gives it the whole screen, dragging "
        f"pans; Enter goes to the nodes of the box. At most {MOST} boxes are drawn."
    )
    EMPTY: ClassVar[str] = "no backward yet"

    class NodeFollowed(Message):
        """The node at which a box begins is to be looked at."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.cursor = 0
        self._seen = False
        self._snapshot: Snapshot | None = None
        self._outline: Outline = NOTHING
        self._opened: frozenset[str] | None = None
        self._zoom: int | None = None
        self._shown = _Shown()
        self._structure = _Structure()
        self._outdated = False
        self._making: Worker[None] | None = None
        self._rows: Mapping[int, Sequence[int]] = {}
        self._pressed: tuple[int, int] | None = None
        self._panned = False

    # What is shown ---------------------------------------------------------------------------------------------------

    def on_show(self, event: events.Show) -> None:
        """Draw what has come while another pane hid this one."""
        self._seen = True
        self._draw_anew()

    def on_hide(self, event: events.Hide) -> None:
        """Draw nothing until it is seen again."""
        self._seen = False

    def on_resize(self, event: events.Resize) -> None:
        """Draw anew: what fits has changed."""
        self._draw_anew()

    def update(self, snapshot: Snapshot) -> None:
        """Show the backward, as far as it has run."""
        self._snapshot = snapshot
        if snapshot.outline is not self._outline:
            self._outline, self._opened = snapshot.outline, None
        self._draw_anew()

    def stopped(self, snapshot: Snapshot) -> None:
        """Put the cursor on the box where the session stands."""
        place = self._shown.diagram.box_of(snapshot.current)
        if snapshot.paused and place >= 0:
            self._select(place)

    def _draw_anew(self) -> None:
        """Make the diagram on another thread: where one is being made, once more when that has been."""
        self._outdated = True
        if self._seen and self._snapshot is not None and self._making is None:
            self._making = self.run_worker(self._make, group="diagram")

    async def _make(self) -> None:
        while self._outdated and self._seen and self._snapshot is not None:
            self._outdated = False
            snapshot, opened, width = self._snapshot, self._opened, self.scrollable_content_region.width
            make = partial(_made, snapshot, opened, self._zoom, width, self._structure)
            found = await on_thread(make, collect=False)
            if snapshot.outline is self._outline and opened == self._opened:
                self._opened, self._structure, shown = found
                self._take(shown, snapshot)
        self._making = None

    def _take(self, shown: _Shown, snapshot: Snapshot) -> None:
        """Show a diagram; the cursor stays on the box of its node."""
        here = self._box
        # A backward that has ended is read from the loss on, as in the graph.
        stands = snapshot.paused or snapshot.state == "failed"
        keep = here.members[0] if here is not None else max(0, snapshot.current) if stands else 0
        moved, branch = shown.drawing.spots != self._shown.drawing.spots, self._shown.cut.get(self.cursor)
        self._shown = shown
        rows: dict[int, list[int]] = defaultdict(list)
        for place, spot in enumerate(shown.drawing.spots):
            for y in range(spot.y, spot.y + spot.height):
                rows[y].append(place)
        self._rows = rows
        self.set_heading(about=f"{len(shown.diagram.boxes)} boxes" if shown.diagram.boxes else "")
        self.content_changed()
        there = [place for place, row in shown.cut.items() if branch is not None and row.module == branch.module]
        self.cursor = next(iter(there), max(0, shown.diagram.box_of(keep)))
        if moved:
            self._reveal()

    # The cursor ------------------------------------------------------------------------------------------------------

    @property
    def _box(self) -> Box | None:
        boxes = self._shown.diagram.boxes
        return boxes[self.cursor] if self.cursor < len(boxes) else None

    def _select(self, place: int) -> None:
        self.cursor = place
        self._reveal()
        self.refresh()

    def _reveal(self) -> None:
        """Scroll so that the box under the cursor, and a little around it, is seen."""
        if self.cursor < len(self._shown.drawing.spots):
            spot = self._shown.drawing.spots[self.cursor]
            region = Region(max(0, spot.x - 2), max(0, spot.y - 2), spot.width + 4, spot.height + 4)
            self.scroll_to_region(region, animate=False, force=True)

    def _middle(self, place: int) -> float:
        spot = self._shown.drawing.spots[place]
        return spot.x + spot.width / 2

    def move(self, rows: int) -> None:
        """Go down to a box that an arrow leads to, or up to one that it comes from; without any, to the next layer."""
        shown, here = self._shown, self.cursor
        if self._box is None:
            return
        layers, step = shown.drawing.layers, 1 if rows > 0 else -1
        joined = [b if step > 0 else a for a, b in shown.diagram.arrows if (a if step > 0 else b) == here]
        ahead = [place for place in joined if (layers[place] - layers[here]) * step > 0]
        if not ahead:
            further = [place for place, layer in enumerate(layers) if (layer - layers[here]) * step > 0]
            nearest = min((abs(layers[place] - layers[here]) for place in further), default=0)
            ahead = [place for place in further if abs(layers[place] - layers[here]) == nearest]
        if ahead:
            self._select(min(ahead, key=lambda place: self._distance(place, layers)))

    def _distance(self, place: int, layers: Sequence[int]) -> tuple[int, float]:
        return abs(layers[place] - layers[self.cursor]), abs(self._middle(place) - self._middle(self.cursor))

    def shift(self, cells: int) -> None:
        """Go to the box beside; where there is none, scroll sideways."""
        layers = self._shown.drawing.layers
        beside = [
            place
            for place in range(len(layers))
            if layers[place] == layers[self.cursor] and (self._middle(place) - self._middle(self.cursor)) * cells > 0
        ]
        if beside:
            self._select(min(beside, key=lambda place: self._distance(place, layers)))
        else:
            super().shift(cells)

    def half_page(self, direction: int) -> None:
        """Scroll by half of what is seen."""
        super().move(direction * max(1, self.scrollable_content_region.height // 2))

    def go_to_end(self, last: bool) -> None:
        """Go to the box at which the backward begins, or to the lowest."""
        layers = self._shown.drawing.layers
        if layers:
            self._select((max if last else min)(range(len(layers)), key=layers.__getitem__))

    def show_match(self, row: int) -> None:
        """Put the cursor on the box whose name matches."""
        super().show_match(row)
        wanted, boxes = self._wanted, self._shown.diagram.boxes
        named = [place for place in self._rows.get(row, ()) if wanted is not None and wanted.search(boxes[place].title)]
        if named:
            self._select(named[0])

    # The mouse -------------------------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the drawing."""
        self._pressed, self._panned = (event.screen_x, event.screen_y), False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Pan."""
        if self._pressed is None:
            return
        x, y = self._pressed
        if (x, y) != (event.screen_x, event.screen_y):
            self._pressed, self._panned = (event.screen_x, event.screen_y), True
            self.scroll_relative(x=x - event.screen_x, y=y - event.screen_y, animate=False, force=True)

    def on_mouse_up(self) -> None:
        """Let go of it."""
        self._pressed = None
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the box that was clicked; on its box again, go to its nodes."""
        offset = event.get_content_offset(self)
        if offset is None or self._panned:
            return
        x, y = offset.x + self.scroll_offset.x, self.row_at(offset.y)
        for place in self._rows.get(y, ()):
            spot = self._shown.drawing.spots[place]
            if spot.x <= x < spot.x + spot.width and place != self.cursor:
                self._select(place)
            elif spot.x <= x < spot.x + spot.width:
                self._follow()

    # Verbs -----------------------------------------------------------------------------------------------------------

    def copied(self) -> str:
        """Return the name of the box under the cursor, and the norm that comes into it."""
        box = self._box
        if box is None:
            return ""
        norm = self._shown.norms[self.cursor]
        return box.title if norm is None else f"{box.title}  {norm:.6g}"

    def open(self, session: Session) -> None:
        """Go to the nodes of the box under the cursor."""
        self._follow()

    def _follow(self) -> None:
        box, cut = self._box, self._shown.cut.get(self.cursor)
        if cut is not None:
            self.post_message(CutFollowed(cut.finding))
        elif box is not None:
            self.post_message(self.NodeFollowed(box.members[0]))

    def switch(self, session: Session) -> None:
        """Open the module under the cursor into its parts; where it has none, close the module around it."""
        box, opened = self._box, self._opened or frozenset()
        if box is None:
            return
        if box.module in containers(self._outline.modules):
            opened |= {box.module}
        else:
            around = self._around(box)
            if not around:
                self.post_message(self.VerbRefused(f"{box.title} has no parts, and no module is around it"))
                return
            opened = frozenset(m for m in opened if m != around and not m.startswith(f"{around}."))
        self._open(opened)

    def _around(self, box: Box) -> str:
        """Return the innermost open module that the nodes of a box belong to."""
        return box.module.rpartition(".")[0] if box.module else self._outline.modules[box.members[0]]

    def _open(self, opened: frozenset[str]) -> None:
        shown = {next((a for a in ancestors(m) if a not in opened), "") for m in set(self._outline.modules)}
        if len(shown) > MOST:
            self.post_message(self.VerbRefused(f"that would be {len(shown)} boxes: {MOST} are drawn at most"))
            return
        self._opened = opened
        self._draw_anew()

    def zoom(self, step: int) -> bool:
        """Draw larger or smaller boxes."""
        zoom = max(0, min(len(_HEIGHTS) - 1, self._shown.zoom + step))
        if zoom == self._shown.zoom:
            text = f"these are the {'largest' if step > 0 else 'smallest'} boxes"
            self.post_message(self.VerbRefused(text))
        else:
            self._zoom = zoom
            self._draw_anew()
        return True

    # Drawing ---------------------------------------------------------------------------------------------------------

    def line_count(self) -> int:
        """Return the rows of the drawing."""
        return self._shown.drawing.height

    def line_width(self) -> int:
        """Return its columns."""
        return self._shown.drawing.width

    def line(self, row: int, width: int) -> Text:
        """Return one row of the drawing: the arrows, and over them the boxes."""
        text = Text(no_wrap=True, end="")
        pieces: list[tuple[int, Text]] = [
            (x, Text(cell.text, self.color(cell.color))) for x, cell in self._lines(row).items()
        ]
        for place in self._rows.get(row, ()):
            spot = self._shown.drawing.spots[place]
            pieces.append((spot.x, self._box_line(place, row - spot.y, spot.width)))
        for x, piece in sorted(pieces, key=lambda found: found[0]):
            if x >= text.cell_len:
                text.append(" " * (x - text.cell_len))
                text.append_text(piece)
        return text

    def _lines(self, row: int) -> Mapping[int, Cell]:
        return self._shown.drawing.lines.get(row, {})

    def _box_line(self, place: int, row: int, width: int) -> Text:
        """Return one row of a box."""
        box, color = self._shown.diagram.boxes[place], self._color_of(place)
        here = place == self.cursor
        name = self._label_of(place, box)
        if self._shown.zoom == 0:
            text = Text("›" if here else "▪", self.color("now" if here else color), no_wrap=True, end="")
            text.append(f"{shorten(name, width - LABEL - 2)} ", self.color(color))
            text.append(self._norm_text(place), self.color(color))
            return self._under_cursor(text, width, here)
        corners, across, side = ("┏┓┗┛", "━", "┃") if here else ("╭╮╰╯", "─", "│")
        frame = self.color("now" if here else color)
        last = _HEIGHTS[self._shown.zoom] - 1
        if row == 0:
            title = f" {shorten(name, width - 5)} "
            text = Text(corners[0] + across, frame, no_wrap=True, end="")
            text.append(title, self.color(color or "strong"))
            text.append(across * (width - 3 - len(title)) + corners[1], frame)
            return text
        if row == last:
            return Text(corners[2] + across * (width - 2) + corners[3], frame, no_wrap=True, end="")
        text = Text(side, frame, no_wrap=True, end="")
        inner = self._what(box, width - 4) if row == last - 2 else self._norm_line(place)
        text.append(" ").append_text(inner).append(" " * (width - 3 - inner.cell_len))
        return text.append(side, frame)

    def _under_cursor(self, text: Text, width: int, here: bool) -> Text:
        text.pad_right(width - text.cell_len)
        if here:
            text.stylize(line_style(self, "pane--cursor"))
        return text

    def _label_of(self, place: int, box: Box) -> str:
        """Return how a box is called, with signs where something in it is wrong, and where the session stands."""
        snapshot = self._snapshot
        sign = self._shown.signs.get(place, ("", ""))[0]
        if snapshot is not None and snapshot.paused and self._shown.diagram.box_of(snapshot.current) == place:
            sign += "◁" if snapshot.past else "▶"
        return f"{sign} {box.title}".lstrip()

    def _color_of(self, place: int) -> str:
        if place in self._shown.signs:
            return self._shown.signs[place][1]
        norm = self._shown.norms[place]
        return "dim" if norm is None else self._scale.color(norm)

    @property
    def _scale(self) -> NormScale:
        return NormScale() if self._snapshot is None else self._snapshot.scale

    def _norm_text(self, place: int) -> str:
        norm = self._shown.norms[place]
        return norm_text(norm)

    def _norm_line(self, place: int) -> Text:
        """Return the norm that comes into a box, with a bar; of one that is cut off, the line."""
        cut = self._shown.cut.get(place)
        if cut is not None:
            where, doubt = cut.finding.location, "?" if cut.finding.likely else ""
            return Text(f"no gradient{f', :{where.lineno}{doubt}' if where is not None else ''}", self.color("bad"))
        norm = self._shown.norms[place]
        if norm is None:
            return Text("·", self.color("dim"))
        text = Text(f"{norm_text(norm):<{LABEL}}", self.color(self._scale.color(norm) or "strong"))
        bar = norm_bar(norm, _BAR, self._scale)
        return text.append(bar, self.color(self._scale.color(norm) or "good"))

    def _what(self, box: Box, width: int) -> Text:
        """Return what a module is; of other boxes, how many nodes they have."""
        record = _record(self._snapshot, box)
        text = Text(no_wrap=True, end="")
        if record is None:
            count = len(box.members)
            text.append(f"{count} node{'s' if count != 1 else ''}", self.color("dim"))
        else:
            text.append(record.kind).append(f" {record.arguments}", self.color("dim"))
        text.truncate(width, overflow="ellipsis")
        return text


def _record(snapshot: Snapshot | None, box: Box) -> ModuleRecord | None:
    return snapshot.modules.get(box.module) if snapshot is not None and box.module else None


# On another thread ---------------------------------------------------------------------------------------------------


def _made(
    snapshot: Snapshot, opened: frozenset[str] | None, zoom: int | None, width: int, before: _Structure
) -> tuple[frozenset[str], _Structure, _Shown]:
    """Return which modules are open, and the diagram with its drawing: in the largest boxes that fit, if none is said.

    Parameters
    ----------
    opened : frozenset of str or None
        None where nobody has chosen: then as many as there is room for.
    zoom : int or None
        Which of the sizes of boxes.
    width : int
        Columns that can be seen.
    before : _Structure
        What was made last: kept while the outline and the open modules stay.
    """
    outline, structure = snapshot.outline, before
    if opened is None:
        opened = opened_to_fit(outline.modules, AT_FIRST, MOST)
    if before.outline is not outline or before.opened != opened:
        nodes = list(without_gradients(snapshot.nodes))
        if len(nodes) != len(outline.modules):
            return opened, before, _Shown()
        structure = _Structure(outline, opened, nodes)
    known = known_norms(snapshot.nodes)
    norms, brought = norms_of(structure.diagram, known, partial(_read, snapshot, structure))
    signs = {structure.diagram.box_of(index): ("", "bad") for index, norm in known.items() if not isfinite(norm)}
    for finding in reversed(snapshot.findings):  # the worst findings come first
        signs[structure.diagram.box_of(finding.index)] = FINDING_SIGNS[finding.severity]
    diagram, cut = _with_cut(structure.diagram, outline, snapshot.findings)
    signs |= dict.fromkeys(cut, ("✂", "bad"))
    norms += [None] * len(cut)
    brought |= dict.fromkeys(diagram.arrows.keys() - brought.keys())
    arrows = [
        Arrow(*pair, norm_text(norm), "bad" if pair[1] in cut else _arrow_color(norm, snapshot.scale))
        for pair, norm in brought.items()
    ]
    for size in (2, 1, 0) if zoom is None else (zoom,):
        widths = [_width(box, size, _record(snapshot, box)) for box in diagram.boxes]
        drawing = draw(widths, _HEIGHTS[size], arrows)
        if drawing.width <= width:
            break
    return opened, structure, _Shown(diagram, drawing, norms, signs, size, cut)


def _read(snapshot: Snapshot, structure: _Structure, index: int) -> NodeRecord:
    """Return the record of a node: what it has brought others can be edited as long as the program stands there."""
    kept = structure.brought.get(index)
    if kept is not None:
        return kept
    record = snapshot.nodes[index]
    if record.grad_inputs is not None and index not in (snapshot.current, snapshot.live):
        structure.brought[index] = record
    return record


def _with_cut(
    diagram: Diagram, outline: Outline, findings: Sequence[BackwardFinding]
) -> tuple[Diagram, dict[int, CutRow]]:
    """Return the diagram with a box for each branch that is cut off, and these by their places.

    An arrow goes there from the box of the node that joins it, as the gradient would go.
    """
    boxes, arrows, cut = list(diagram.boxes), dict(diagram.arrows), {}
    for joint, branches in by_joint([row for row in cut_rows(findings) if row.first], outline):
        for row in branches:
            cut[len(boxes)] = row
            if joint >= 0:
                arrows[diagram.box_of(joint), len(boxes)] = ()
            boxes.append(Box(row.name or "parameters", row.module, (max(0, joint),)))
    return replace(diagram, boxes=tuple(boxes), arrows=arrows), cut


def _width(box: Box, size: int, record: ModuleRecord | None) -> int:
    """Return how wide a box has to be for what stands in it."""
    title = min(len(box.title) + 3, _MOST_TITLE)  # signs of findings may come to stand before the name
    if size == 0:
        return title + LABEL + 2
    kind = min(len(f"{record.kind} {record.arguments}"), _MOST_KIND) if size == 2 and record is not None else 0
    return max(_LEAST, title + 5, kind + 4)


def _arrow_color(norm: float | None, scale: NormScale) -> str:
    return "dim" if norm is None else scale.color(norm) or "told"
