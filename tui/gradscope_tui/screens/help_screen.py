"""The help: every key, every command verb and every sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from gradscope.inspect.debugging.prompt.prompt_verbs import VERBS
from gradscope_tui.actions import ACTIONS
from gradscope_tui.commands.explain_command import EXPLAIN
from gradscope_tui.refusal import refuse
from gradscope_tui.widgets.labels import EDITED, NODE_STATES
from gradscope_tui.widgets.line_pane import LinePane

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


class HelpLines(LinePane):
    """The help as lines, in which one can look for a word."""

    heading = "Help"

    def __init__(self, keys: Mapping[str, str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = keys
        self._lines: list[Text] = []
        self._drawn_for = 0

    def content_changed(self) -> None:
        """Write the help down again if the width is another one, and measure."""
        width = self.scrollable_content_region.width
        if width > 0 and width != self._drawn_for:
            self._drawn_for = width
            options = self.app.console.options.update(width=width, height=None)
            rendered = self.app.console.render_lines(Group(*_parts(self._keys)), options)
            self._lines = [Text.assemble(*((s.text, s.style or "") for s in line)) for line in rendered]
            for line in self._lines:
                line.rstrip()
        super().content_changed()

    def line_count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def line(self, row: int, width: int) -> Text:
        """Return one line."""
        return self._lines[row]


def _parts(keys: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield the tables of the help, each below its title."""
    for group, actions in groupby(ACTIONS, lambda action: action.group):
        yield Text(f"\n{group}", "bold underline")
        yield _table([(keys.get(action.id, action.shown), action.help) for action in actions], 10)
    yield Text("\nCommands, after : or in line mode", "bold underline")
    verbs = [(f"{', '.join(v.names)} {v.usage}".rstrip(), v.help) for v in VERBS if v.name != "explain"]
    yield _table([*verbs, EXPLAIN], 36)
    states = "   ".join(f"{glyph} {word}" for glyph, word, _ in (*NODE_STATES.values(), EDITED))
    yield Text("\nSigns", "bold underline")
    yield Text(f" {states}\n{SIGNS}")


class HelpScreen(ModalScreen[None]):
    """Every key and every command verb, from the registry of actions.

    Parameters
    ----------
    keys : mapping of str to str
        For some actions a person's own keys.
    """

    BINDINGS = [
        Binding("escape,q,question_mark,f1", "leave", "Close", show=False),
        Binding("j,down", "move(1)", "Down", show=False),
        Binding("k,up", "move(-1)", "Up", show=False),
        Binding("ctrl+d,pagedown,space", "half_page(1)", "Half page down", show=False),
        Binding("ctrl+u,pageup", "half_page(-1)", "Half page up", show=False),
        Binding("g,home", "go_to_end(False)", "First", show=False),
        Binding("G,end", "go_to_end(True)", "Last", show=False),
        Binding("slash", "find", "Find", show=False),
    ]

    def __init__(self, keys: Mapping[str, str]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Lay out the help."""
        with Vertical(id="help") as box:
            box.border_title = "Help"
            box.border_subtitle = "j k scroll · / finds, n N go on · Esc closes"
            yield HelpLines(self._keys, id="help-lines")
            yield Input(id="help-input", compact=True, placeholder="a word of the help", select_on_focus=False)

    def on_mount(self) -> None:
        """Give the keys to the help."""
        self._help.focus()

    @property
    def _help(self) -> HelpLines:
        return self.query_one(HelpLines)

    @property
    def _entry(self) -> Input:
        return self.query_one(Input)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to the input while something is typed."""
        return action == "leave" if self._entry.display else super().check_action(action, parameters)

    def action_move(self, rows: int) -> None:
        """Scroll the help."""
        self._help.move(rows)

    def action_half_page(self, direction: int) -> None:
        """Scroll by half of what is seen."""
        self._help.half_page(direction)

    def action_go_to_end(self, last: bool) -> None:
        """Go to the first or the last line."""
        self._help.go_to_end(last)

    def action_find(self) -> None:
        """Ask for what to look for."""
        self._entry.value = ""
        self._entry.display = True
        self._entry.focus()

    @on(Input.Submitted)
    def _find(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_entry()
        if not self._help.find_lines(event.value):
            refuse(self.app, f"no line of the help has {event.value!r}")

    @on(LinePane.VerbRefused)
    def _refused(self, event: LinePane.VerbRefused) -> None:
        refuse(self.app, event.text)

    def action_leave(self) -> None:
        """Close the input, or else the help."""
        if self._entry.display:
            self._close_entry()
        else:
            self.dismiss(None)

    def _close_entry(self) -> None:
        self._entry.display = False
        self._help.focus()
