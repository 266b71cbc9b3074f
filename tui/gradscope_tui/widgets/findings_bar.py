"""One line below the status: the worst of what is wrong, wherever the script stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from gradscope_tui.colors import text_style
from gradscope_tui.widgets.labels import FINDING_SIGNS, place_label

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import BackwardFinding

__all__ = ["FindingsBar"]

_SHORTER = (
    (re.compile("^the gradient is (vanishing|exploding): "), r"\1: "),
    (re.compile(" from gradients without one$"), ""),
    (re.compile(", which was given none$"), ""),
    (re.compile(": its saved .* since the forward pass$"), " of the forward pass"),
)
"""What goes, and what stands in its place, where there is little room: a stop says it, and the findings below."""


class FindingsBar(Widget):
    """The first finding, its place, and how many there are; not on the screen where there are none."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"findings--bad", "findings--warn", "findings--dim", "findings--key"}

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings: Sequence[BackwardFinding] = ()

    def show(self, findings: Sequence[BackwardFinding]) -> None:
        """Show what has been found."""
        if findings != self._findings:
            self._findings = findings
            self.set_class(bool(findings), "-shown")
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render the line."""
        width = self.size.width
        if not self._findings:
            return Strip.blank(width, self.rich_style)
        first = self._findings[0]
        sign, color = FINDING_SIGNS[first.severity]
        click = Style(meta={"@click": "app.findings"})
        more = len(self._findings) - 1
        key = f" and {more} more" if more else " why"
        title, place, room = _fitting(first, width - cell_len(f"  !{key}"))
        text = Text(f" {sign} {title}", text_style(self, f"findings--{color}") + click)
        text.truncate(room, overflow="ellipsis")
        tail = Text(place, text_style(self, "findings--dim") + click)
        tail.append("  !", text_style(self, "findings--key"))
        tail.append(key, text_style(self, "findings--dim"))
        text.append_text(tail)
        return Strip(text.render(self.app.console)).crop_extend(0, width, None).apply_style(self.rich_style)


def _fitting(finding: BackwardFinding, width: int) -> tuple[str, str, int]:
    """Return what is said of a finding in so many cells, its place behind that, and the cells that this leaves."""
    place = place_label(finding)
    line = place.rpartition("  #")[0]
    short = _short(finding.title)
    for title, where in ((finding.title, place), (short, place), (short, line or place)):
        behind = f"  {where}" if where else ""
        room = max(0, width - cell_len(behind))
        if cell_len(title) + 3 <= room:
            break
    return title, behind, room


def _short(title: str) -> str:
    for words, instead in _SHORTER:
        title = words.sub(instead, title)
    return title
