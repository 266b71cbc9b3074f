"""The answer to a what-if: what every parameter gets, and what it would get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from gradscope_tui.widgets.labels import short_value, shorten

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import WhatIf
    from gradscope.inspect.records.records import NodeRecord

__all__ = ["WhatIfScreen", "what_if_table"]

_MANY = 500
_BAR = 12

_NUMBERS, _LEAST_NAME = 46, 12
"""Cells of the numbers with all gaps, and the least that a name keeps."""

_WIDTH, _FRAME = 88, 6
"""Cells of the report, and of what is around the table in it."""

_MANY_TIMES = 10.0
"""What a difference is as many times as large as is written so, and not in per cent."""


def what_if_table(found: WhatIf, width: int) -> Table:
    """Return the changes as a table, the largest first; those that are as large in the order of the backward.

    Parameters
    ----------
    width : int
        Cells of the table.

    Returns
    -------
    rich.table.Table
        Norms of the gradient of each parameter as it is and as it would be, and their relative difference.
    """
    table = Table(box=None, padding=(0, 1), expand=True, header_style="bold")
    table.add_column("parameter", ratio=1)
    for name in ("norm", "would be", "difference", "relative"):
        table.add_column(name, justify="right")
    table.add_column("", width=_BAR)
    room = max(_LEAST_NAME, width - _NUMBERS - _BAR)
    changes = sorted(found.changes, key=lambda change: -float(f"{change.relative:.3g}"))
    finite = [change.relative for change in changes if change.relative < float("inf")]
    top = max(finite, default=0.0) or 1.0
    for change in changes[:_MANY]:
        bar = "▇" * round(_BAR * min(1.0, change.relative / top))
        style = "dim" if not change.difference else ""
        cells = [shorten(change.parameter or "(no name)", room), short_value(change.before), short_value(change.after)]
        cells += [short_value(change.difference), _relative(change.relative) if change.before else "new"]
        table.add_row(*(Text(cell) for cell in cells), Text(bar), style=style)
    if len(changes) > _MANY:
        table.add_row(Text(f"… and {len(changes) - _MANY} that change less"))
    return table


def _relative(part: float) -> str:
    """Write how large a difference is beside what it is of: in per cent, or how many times as large.

    Examples
    --------
    >>> _relative(0.25), _relative(99.0)
    ('25.0%', '99×')
    """
    return f"{part:.1%}" if part < _MANY_TIMES else f"{part:.3g}×"


class WhatIfScreen(ModalScreen[None]):
    """Shows a what-if.

    Parameters
    ----------
    expression : str
        What the gradient would be.
    node : NodeRecord
        The node that would receive it.
    """

    BINDINGS = [
        Binding("escape,q,enter,i", "dismiss", "Close", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
        Binding("ctrl+d,pagedown,space", "scroll(10)", "Half page down", show=False),
        Binding("ctrl+u,pageup", "scroll(-10)", "Half page up", show=False),
        Binding("g,home", "scroll(-100_000)", "First", show=False),
        Binding("G,end", "scroll(100_000)", "Last", show=False),
    ]

    def __init__(self, found: WhatIf, expression: str, node: NodeRecord) -> None:
        super().__init__()
        self._found, self._expression, self._node = found, expression, node

    def compose(self) -> ComposeResult:
        """Lay out the report."""
        found = self._found
        owner = self._node.parameter or self._node.module
        with VerticalScroll(id="report") as box:
            box.border_title = "What if"
            box.border_subtitle = "j k scroll · Esc closes"
            head = Text.assemble(
                (f"#{found.index} {self._node.name} {owner}".rstrip(), "bold"),
                f"\nincoming gradient {found.slot} = ",
                (self._expression, "bold"),
                f"   norm {short_value(found.norm_before)} → {short_value(found.norm_after)}",
            )
            yield Static(head)
            if found.changes:
                yield Static(what_if_table(found, min(_WIDTH, self.app.size.width) - _FRAME))
            else:
                yield Static(Text("no parameter gets a gradient from here"))
            nodes = f"{found.nodes_run} node{'s' if found.nodes_run != 1 else ''} run aside, twice"
            note = f"{nodes}: nothing was accumulated, and the script has not noticed."
            if not found.complete:
                note += "\nNorms are of what passes through this node only: earlier nodes are not recorded."
            for hook in found.hooks_left_out:
                note += f"\nWithout the hook {hook}"
            yield Static(Text(note, "dim"))

    def action_scroll(self, rows: int) -> None:
        """Scroll the report."""
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    async def action_dismiss(self, result: None = None) -> None:
        """Close the report."""
        self.dismiss(None)
