"""The functions of the program that wait, with their variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.message import Message

from gradscope_tui.widgets.labels import basename
from gradscope_tui.widgets.line_pane import CursorPane, Place

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import FrameRecord, VariableRecord
    from gradscope.inspect.records.records import Location
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["FramesPane"]


class _Row(NamedTuple):
    """A function by its number, or one of its variables."""

    frame: int
    variable: VariableRecord | None = None


class FramesPane(CursorPane):
    """The functions, the innermost first and unfolded; below each that is unfolded, its variables."""

    NUMBER: ClassVar[int] = 9
    TITLE: ClassVar[str] = "Frames"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {"open": "Show the line", "switch": "Fold"}
    KEY_HELP: ClassVar[str] = "Go to the functions that wait"
    ABOUT: ClassVar[str] = (
        "The functions of the program that wait, the innermost first, with their variables: at a node the one that "
        "called backward() and its callers, at `set_trace()` and in a custom backward the one that stands there. "
        "Enter shows the line of a function, and opens a tensor of the innermost; Space folds."
    )
    EMPTY: ClassVar[str] = "no function of the program waits here"

    class Shown(Message):
        """The pane can be seen: it wants to know the functions."""

    class LineFollowed(Message):
        """A line is to be looked at."""

        def __init__(self, line: Location) -> None:
            super().__init__()
            self.line = line

    class TensorOpened(Message):
        """A tensor that is a variable of the innermost function is to be looked at."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._frames: Sequence[FrameRecord] = ()
        self._unfolded: frozenset[int] = frozenset({0})
        self._rows: list[_Row] = []

    def on_show(self, event: events.Show) -> None:
        """Say that the pane can be seen."""
        self.post_message(self.Shown())

    def update(self, snapshot: Snapshot) -> None:
        """Show the functions that wait; while the program runs, those of the last stop."""
        if snapshot.frames is not self._frames:
            self._frames = snapshot.frames
            self.set_heading(count=len(self._frames))
            self._arrange()

    def _arrange(self) -> None:
        self._rows = []
        for number, frame in enumerate(self._frames):
            self._rows.append(_Row(number))
            if number in self._unfolded:
                self._rows += [_Row(number, variable) for variable in frame.variables]
        self.content_changed()
        self.cursor = min(self.cursor, max(0, len(self._rows) - 1))

    @property
    def _selected(self) -> _Row | None:
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def copied(self) -> str:
        """Return the function under the cursor with its line, or the variable with its value."""
        row = self._selected
        if row is None:
            return ""
        frame = self._frames[row.frame]
        if row.variable is None:
            return f"{frame.location.function}  {frame.location}"
        return f"{row.variable.name} = {row.variable.text}"

    def open(self, session: Session) -> None:
        """Show the line of the function under the cursor, or open the tensor."""
        row = self._selected
        if row is None:
            self.post_message(self.VerbRefused(self.EMPTY))
        elif row.variable is None:
            self.post_message(self.LineFollowed(self._frames[row.frame].location))
        elif row.variable.shape is None:
            self.post_message(self.VerbRefused(f"{row.variable.name} is no tensor: there is nothing to open"))
        elif row.frame:
            text = "tensors of the innermost function can be opened; w watches what it knows"
            self.post_message(self.VerbRefused(text))
        else:
            self.post_message(self.TensorOpened(row.variable.name))

    def switch(self, session: Session) -> None:
        """Fold the function under the cursor, or unfold it."""
        row = self._selected
        if row is None:
            return
        self._unfolded ^= {row.frame}
        self._arrange()
        self.cursor = self._rows.index(_Row(row.frame))

    def line_count(self) -> int:
        """Return the number of functions and variables that are not folded away."""
        return len(self._rows)

    def line(self, row: int, width: int) -> Text:
        """Return the line of a function or a variable."""
        one, text = self._rows[row], Text("›" if row == self.cursor else " ", no_wrap=True)
        frame = self._frames[one.frame]
        if one.variable is None:
            text.append("▾ " if one.frame in self._unfolded else "▸ ", self.color("dim"))
            text.append(frame.location.function, self.color("now" if one.frame == 0 else "strong"))
            text.append(f"  {basename(frame.location.filename)}:{frame.location.lineno}", self.color("head"))
            return text.append(f"  {frame.location.source}", self.color("dim"))
        shape = "" if one.variable.shape is None else f" {','.join(map(str, one.variable.shape))}"
        text.append(f"    {one.variable.name}", self.color("strong"))
        text.append(f" {one.variable.kind}{shape}", self.color("dim"))
        return text.append(f" = {' '.join(one.variable.text.split())}")
