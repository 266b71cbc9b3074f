"""What is wrong with the backward at hand, the worst first, each with its line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.message import Message

from gradscope_tui.widgets.labels import FINDING_SIGNS, basename, place_label
from gradscope_tui.widgets.line_pane import CursorPane, Place

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import BackwardFinding
    from gradscope.inspect.records.records import Location
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["FindingsPane"]


NOTHING_AHEAD = "nothing has run yet: c stops at the first failure"
"""What is said where nothing is known to be wrong before the first node."""


def line_named(text: str, near: Location | None) -> Location | None:
    """Return the line that a text names, of the file of another one; None where it names none.

    Examples
    --------
    >>> from gradscope.inspect.records.records import Location
    >>> line_named("  or train.py:43  b = b.data", Location("/a/train.py", 42, "main", "b = 1")).lineno
    43
    """
    if near is None:
        return None
    found = re.search(rf"(?<![\w.]){re.escape(basename(near.filename))}:(\d+)", text)
    return replace(near, lineno=int(found[1]), source="") if found else None


class FindingsPane(CursorPane):
    """The findings of the last stop: of each a title, and below it the explanation."""

    NUMBER: ClassVar[int] = 8
    TITLE: ClassVar[str] = "Findings"
    SHORT: ClassVar[str] = "Find"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {"open": "Go there"}
    KEY_HELP: ClassVar[str] = "Go to the findings"
    ABOUT: ClassVar[str] = (
        "What is wrong with this backward, the worst first, each with its line: known, but for what gradients show, "
        "before the first node runs, and still there when the script has ended. Enter goes to the node and the line. "
        "`!` comes here from everywhere."
    )
    EMPTY: ClassVar[str] = "nothing wrong is seen at this place"

    class Followed(Message):
        """A finding's node and line are to be shown."""

        def __init__(self, finding: BackwardFinding) -> None:
            super().__init__()
            self.finding = finding

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._findings: Sequence[BackwardFinding] = ()
        self._rows: list[tuple[BackwardFinding, str, bool]] = []

    def update(self, snapshot: Snapshot) -> None:
        """Show what has been found at the last stop."""
        ahead = snapshot.state == "paused before" and snapshot.task == 1 and snapshot.current <= 0
        empty = NOTHING_AHEAD if ahead else "" if snapshot.nodes else "no backward has begun yet"
        if empty != self.empty:
            self.empty = empty
            self.refresh()
        if snapshot.findings == self._findings:
            return
        self._findings = snapshot.findings
        self.set_heading(count=len(self._findings))
        self.content_changed()
        self.cursor = 0

    def content_changed(self) -> None:
        """Break the lines anew where another width, or something else, is to be shown."""
        width = max(20, self.scrollable_content_region.width - 4)
        self._rows = []
        for finding in self._findings:
            title = textwrap.wrap(f"{finding.title}  {place_label(finding)}", width)
            self._rows += [(finding, line, True) for line in title]
            self._rows += [
                (finding, part, False)
                for line in finding.text.splitlines()
                for part in textwrap.wrap(line, width, initial_indent="  ", subsequent_indent="    ")
            ]
        super().content_changed()

    @property
    def selected(self) -> BackwardFinding | None:
        """The finding under the cursor."""
        return self._rows[self.cursor][0] if self.cursor < len(self._rows) else None

    def about(self, parameter: str) -> BackwardFinding | None:
        """Put the cursor on the finding that a parameter is not reached, and return it."""
        for row, (finding, _, _) in enumerate(self._rows):
            if finding.kind == "unreached" and parameter in finding.parameters:
                self.cursor = row
                return finding
        return None

    def copied(self) -> str:
        """Return the finding under the cursor."""
        finding = self.selected
        return (
            "" if finding is None else "\n".join([f"{finding.title}  {finding.location or ''}".rstrip(), finding.text])
        )

    def switch(self, session: Session) -> None:
        """Show the node and the line of the finding under the cursor."""
        finding = self.selected
        if finding is not None:
            named = line_named(self._rows[self.cursor][1], finding.location)
            self.post_message(self.Followed(finding if named is None else replace(finding, location=named)))

    def line_count(self) -> int:
        """Return the number of lines."""
        return len(self._rows)

    def line(self, row: int, width: int) -> Text:
        """Return a title, or a line of an explanation."""
        finding, line, title = self._rows[row]
        text = Text().append("›" if row == self.cursor else " ", self.color("now"))
        sign, color = FINDING_SIGNS[finding.severity]
        first = title and (not row or self._rows[row - 1][0] is not finding)
        text.append(f"{sign} " if first else "  ", self.color(color))
        return text.append(line, self.color("strong" if title else ""))
