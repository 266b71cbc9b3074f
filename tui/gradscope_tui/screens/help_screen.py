"""The help: every key, every command verb and every sign."""

from __future__ import annotations

from itertools import groupby

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from gradscope.inspect.debugging.prompt.prompt_verbs import VERBS
from gradscope_tui.actions import ACTIONS
from gradscope_tui.explain_command import EXPLAIN
from gradscope_tui.widgets.labels import NODE_STATES

__all__ = ["HelpScreen"]


SIGNS = """ ▶ where the script stands   ◁ an earlier node that is looked at (REPLAYING)   › cursor
 ● breakpoint   ◌ one that is off   ∙ match of the filter   ≠ a watch that has changed
 ‼ NaN, inf, or a saved tensor written since it was saved
 In the graph: ○ a node still to run, ◉ one that has run or is about to, ▣ a folded module; a lane is an edge that
 still waits.
 A click on a node selects it, on a lane the node where the lane ends, on the timeline the node there, on the
 name of a pane in a border that pane."""


def _table(rows: list[tuple[str, str]], width: int) -> Table:
    """Return a table of two columns, the first of which is `width` cells wide."""
    table = Table(box=None, padding=(0, 1), show_header=False, expand=True)
    table.add_column(width=width, style="bold")
    table.add_column(ratio=1)
    for left, right in rows:
        table.add_row(Text(left), Text(right))
    return table


class HelpScreen(ModalScreen[None]):
    """Every key and every command verb, from the registry of actions."""

    BINDINGS = [
        Binding("escape,q,question_mark,f1", "dismiss", "Close", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
        Binding("ctrl+d,pagedown,space", "scroll(10)", "Half page down", show=False),
        Binding("ctrl+u,pageup", "scroll(-10)", "Half page up", show=False),
        Binding("g,home", "scroll(-100_000)", "First", show=False),
        Binding("G,end", "scroll(100_000)", "Last", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Lay out the help."""
        with VerticalScroll(id="help") as box:
            box.border_title = "Help"
            box.border_subtitle = "j k scroll · Esc closes"
            for group, actions in groupby(ACTIONS, lambda action: action.group):
                yield Static(Text(group), classes="help--group")
                yield Static(_table([(action.shown, action.help) for action in actions], 10))
            yield Static(Text("Commands, after : or in line mode"), classes="help--group")
            verbs = [(f"{', '.join(v.names)} {v.usage}".rstrip(), v.help) for v in VERBS if v.name != "explain"]
            yield Static(_table([*verbs, EXPLAIN], 36))
            states = "   ".join(f"{glyph} {word}" for glyph, word, _ in NODE_STATES.values())
            yield Static(Text("Signs"), classes="help--group")
            yield Static(Text(f" {states}\n{SIGNS}"))

    def action_scroll(self, rows: int) -> None:
        """Scroll the help."""
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    async def action_dismiss(self, result: None = None) -> None:
        """Close the help."""
        self.dismiss(None)
