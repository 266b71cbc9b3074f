"""The two lines at the top: what state the session is in and why it stopped, and how far the backward has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gradscope.inspect.output.number_format import count
from gradscope.inspect.output.sparkline import linear_sparkline
from gradscope_tui.colors import text_style
from gradscope_tui.sessions.session_protocol import is_over, is_past, is_paused
from gradscope_tui.widgets.labels import SESSION_STATES

__all__ = ["Status", "StatusBar"]

_LOSS_CELLS, _FOR_LOSS = 20, 20
"""Cells of the losses over time at most, and that the first line must have free for the latest."""

TIMELINE = 24
"""Cells that the timeline keeps however long a reason is."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the status bar shows.

    Parameters
    ----------
    script : str
        Name of the script.
    state : str
        State of the session.
    node : int
        Index of the node where the session stands.
    total : int
        Number of nodes of the backward.
    what : str
        Name of that node and where it belongs.
    why : str
        Why the session has stopped.
    task : int
        Which backward this is, from 1; how many there were, when the program has ended.
    tasks : int
        How many backwards there are, of which one of the past may be shown.
    inside : tuple of int
        Backwards in which this one is nested, the innermost first.
    live : int
        Index of the node where the program waits, while an earlier one is looked at; -1 otherwise.
    reached : int
        How many nodes of the backward have run, while an earlier one is looked at.
    ended : bool
        Whether what is looked at is the past of a program that has ended.
    breakpoints : int
        How many breakpoints are set.
    losses : tuple of float
        The losses of the latest backwards, the oldest first.
    alarm : bool
        Whether it stopped for an error, a NaN or a version violation.
    """

    script: str = ""
    state: str = "not started"
    node: int = 0
    total: int = 0
    what: str = ""
    why: str = ""
    task: int = 0
    tasks: int = 0
    inside: tuple[int, ...] = ()
    live: int = -1
    reached: int = 0
    ended: bool = False
    breakpoints: int = 0
    losses: tuple[float, ...] = ()
    alarm: bool = False


class StatusBar(Widget):
    """State word, node and total, and reason; below, a timeline that takes clicks."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "status--past",
        "status--dim",
        "status--strong",
        "status--now",
        "status--good",
        "status--warn",
        "status--bad",
    }

    class Clicked(Message):
        """Somebody has clicked on the timeline."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status = Status()
        self._marks: frozenset[int] = frozenset()
        self._alarms: frozenset[int] = frozenset()
        self._track = (0, 0)
        self._cells: tuple[frozenset[int], tuple[int, int], frozenset[int]] = (frozenset(), (0, 0), frozenset())

    @property
    def status(self) -> Status:
        """What is shown."""
        return self._status

    def show(self, status: Status, marks: frozenset[int] = frozenset(), alarms: frozenset[int] = frozenset()) -> None:
        """Show a status.

        Parameters
        ----------
        status : Status
            What to show.
        marks : frozenset of int
            Nodes with a breakpoint.
        alarms : frozenset of int
            Nodes that failed.
        """
        if (status, marks, alarms) != (self._status, self._marks, self._alarms):
            self._status, self._marks, self._alarms = status, marks, alarms
            self.refresh()

    def _color(self, name: str) -> Style:
        return text_style(self, f"status--{name}")

    def render_line(self, y: int) -> Strip:
        """Render one of the two lines."""
        width = self.size.width
        text = self._first_line(width) if y == 0 else self._second_line(width)
        return Strip(text.render(self.app.console)).crop_extend(0, width, None).apply_style(self.rich_style)

    def _first_line(self, width: int) -> Text:
        """Return state, node and breakpoints."""
        status = self._status
        glyph, words, color = SESSION_STATES[status.state]
        if status.ended:
            words += " an ended script"
        paused = is_paused(status.state)
        if paused and not status.total:
            words = "PAUSED in no backward"
        text = Text.assemble((f" {glyph} {words if width >= 40 else words.split()[0]} ", self._color(color)))
        if paused and status.total:
            text.append(f"#{status.node}/{status.total}", self._color("strong"))
            text.append(f" {status.what}")
            if status.live >= 0:
                text.append(f"  LIVE #{status.live}", self._color("now"))
        right = Text(f" ●{status.breakpoints} " if status.breakpoints else " ", self._color("bad"))
        if status.task and width >= 40:
            right = Text.assemble((f" {self._backwards()} ", self._color("dim")), right)
        if width >= 60:
            right = Text.assemble((f" {status.script} ", self._color("dim")), right)
        free = width - text.cell_len - right.cell_len - _FOR_LOSS
        if status.losses and free > 0:
            right = Text.assemble(*self._loss(min(_LOSS_CELLS, free)), right)
        room = width - right.cell_len
        if room < text.cell_len:
            text.truncate(max(room, min(width, 24)), overflow="ellipsis")
        text.append(" " * max(0, room - text.cell_len))
        return text.append_text(right)

    def _loss(self, cells: int) -> list[tuple[str, Style]]:
        """Return the loss of the latest backward, and the losses over time where there are several."""
        losses = self._status.losses
        drawn = linear_sparkline(losses, cells) if len(losses) > 1 else ""
        shown = (" loss ", self._color("dim")), (f"{losses[-1]:.4g} ", self._color("strong"))
        return [*shown, (f"{drawn} ", self._color("good"))]

    def _backwards(self) -> str:
        """Return which backward this is, and in which others; at the end, how many there were."""
        status = self._status
        if is_over(status.state):
            return count(status.task, "backward")
        last = status.task >= status.tasks
        # The last of a program that waits has no end yet: what comes after it is not known.
        counted = is_past(status.state) and status.tasks > 1 and not (last and status.live >= 0)
        of = f" of {status.tasks}" if counted else ""
        return f"backward {status.task}{of}" + "".join(f" in {number}" for number in status.inside)

    def _second_line(self, width: int) -> Text:
        """Return the timeline and the reason."""
        status = self._status
        room = self._room
        why = status.why if cell_len(status.why) <= room else set_cell_size(status.why, room - 1) + "…"
        reason = Text(f" {why} ", self._color("bad" if status.alarm else "strong")) if why else Text(" ")
        cells = max(0, width - reason.cell_len - 3)
        self._track = (2, cells)
        return Text.assemble(" ", ("├", self._color("dim")), self._timeline(cells), ("┤", self._color("dim")), reason)

    @property
    def _room(self) -> int:
        """Cells for the reason."""
        width = self.size.width or self.app.size.width
        return max(width // 2, width - TIMELINE)

    def has_room(self, why: str) -> bool:
        """Say whether a reason can be shown whole."""
        return cell_len(why) <= self._room

    def _timeline(self, cells: int) -> Text:
        """Return the track: what has run, where it stands, what is still to run, breakpoints and failures."""
        status = self._status
        if not status.total or cells < 4 or status.state == "running":
            return Text.assemble(("┄" * cells, self._color("dim")))
        past, done = status.state == "replaying", status.node == status.total - 1 and not self._alarms
        over = status.state == "finished" or (status.state == "failed" and done)
        run = status.total if over else status.reached if past else status.node
        length = cells if run >= status.total else self._cell(run, cells)
        text = Text("─" * length, self._color("good"))
        text.append("┄" * (cells - length), self._color("dim"))
        spots = dict.fromkeys(self._marked_cells(cells), ("●", "bad"))
        if status.live >= 0:
            spots[self._cell(status.live, cells)] = ("▶", "now")
        if not over:
            spots[self._cell(status.node, cells)] = ("◁", "past") if past else ("▶", "now")
        spots |= {self._cell(index, cells): ("‼", "bad") for index in self._alarms}
        for cell, (glyph, style) in sorted(spots.items()):
            text = Text.assemble(text[:cell], (glyph, self._color(style)), text[cell + 1 :])
        return text

    def _marked_cells(self, cells: int) -> frozenset[int]:
        """Return the cells with a breakpoint; found anew only where breakpoints or the scale are others."""
        marks, scale = self._marks, (self._status.total, cells)
        if marks is not self._cells[0] or scale != self._cells[1]:
            self._cells = marks, scale, frozenset(self._cell(index, cells) for index in marks)
        return self._cells[2]

    def _cell(self, index: int, cells: int) -> int:
        return min(cells - 1, index * cells // max(1, self._status.total))

    def on_click(self, event: events.Click) -> None:
        """Tell where on the timeline the mouse has clicked."""
        offset = event.get_content_offset(self)
        start, cells = self._track
        if offset is not None and offset.y == 1 and 0 <= offset.x - start < cells and self._status.total:
            cell = offset.x - start
            marked = [i for i in self._marks | self._alarms if self._cell(i, cells) == cell]
            first = -(-cell * self._status.total // cells)
            self.post_message(self.Clicked(min(marked, default=first)))
