"""The line of keys at the bottom: what can be done here and now, in the pane that has the focus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from gradscope_tui.actions import ACTIONS, Action
from gradscope_tui.colors import text_style

__all__ = ["Entry", "KeyBar", "entries", "ranked"]


class Entry(NamedTuple):
    """Some words of the bar, and the actions that they stand for, each with its key."""

    words: str
    actions: tuple[tuple[str, Action], ...]

    @property
    def width(self) -> int:
        """Cells that it takes, with the gap to the next."""
        return sum(cell_len(key) + 1 for key, _ in self.actions) + cell_len(self.words) + 2


class KeyBar(Widget):
    """The keys of the pane that has the focus, then those of the session; a key that does nothing now is left out.

    Attributes
    ----------
    keys : mapping of str to str
        For some actions a person's own keys.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keybar--key", "keybar--label"}
    ALWAYS: ClassVar[tuple[str, ...]] = ("help", "quit")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._off: frozenset[str] = frozenset()
        self._own: Mapping[str, str] = {}
        self.keys: Mapping[str, str] = {}

    def show(self, off: frozenset[str]) -> None:
        """Leave out these actions."""
        if off != self._off:
            self._off = off
            self.refresh()

    def show_pane(self, own: Mapping[str, str]) -> None:
        """Begin with the keys of the pane that has the focus: actions, and what each does there."""
        if own != self._own:
            self._own = own
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render the keys."""
        width = self.size.width
        key, label = text_style(self, "keybar--key"), text_style(self, "keybar--label")
        text = Text(" ")
        for entry in entries(width, self._off, self._own, self.keys):
            for shown, action in entry.actions:
                text.append(f"{shown} ", key + _click(action))
            text.append(entry.words, label + _click(entry.actions[-1][1]))
            text.append("  ")
        return Strip(text.render(self.app.console)).crop_extend(0, width, None).apply_style(self.rich_style)


def ranked(off: frozenset[str], own: Mapping[str, str]) -> list[Action]:
    """Return the actions that can be done, those of the pane that has the focus first, then by importance."""
    able = [action for action in ACTIONS if action.id not in off]
    first = [action for name in own for action in able if action.id == name]
    return first + sorted((action for action in able if action.id not in own), key=lambda a: _importance(a, able))


def _importance(action: Action, able: list[Action]) -> tuple[bool, int]:
    """Return what sorts by importance; of two that share their words, the one matters as much as the other."""
    bar = min(other.bar for other in able if other.pair == action.pair) if action.pair else action.bar
    return not bar, bar


def entries(
    width: int,
    off: frozenset[str] = frozenset(),
    own: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Choose what the bar shows.

    Parameters
    ----------
    width : int
        Cells of the bar.
    off : frozenset of str
        Actions that cannot be done.
    own : mapping of str to str
        Those of the pane that has the focus, with what each does there: they come first.
    keys : mapping of str to str
        For some actions a person's own keys.

    Returns
    -------
    list of Entry
        The least important are left out until they fit; help and quit never are, and stand at the end.
    """
    own = own or {}
    wanted = [action for action in ranked(off, own) if action.bar or action.id in own]
    while True:
        chosen = _entries(wanted, own, keys or {})
        spare = [action for action in wanted if action.id not in KeyBar.ALWAYS]
        if not spare or sum(entry.width for entry in chosen) - 1 <= width:  # one cell of space before a key, none after
            return chosen
        wanted.remove(spare[-1])


def _entries(wanted: list[Action], own: Mapping[str, str], keys: Mapping[str, str]) -> list[Entry]:
    """Put actions in the order of the bar; two with the same words share them."""
    first = [action for action in wanted if action.id in own]
    others = {action.id for action in wanted if action.id not in own}
    rest = [action for action in ACTIONS if action.id in others]
    groups: dict[str, list[tuple[str, Action]]] = {}
    for action in first + sorted(rest, key=lambda action: action.id in KeyBar.ALWAYS):
        shown = keys.get(action.id, action.shown)
        key = shown.split(",")[0] or shown
        groups.setdefault(own.get(action.id) or action.pair or action.label, []).append((key, action))
    return [Entry(words, tuple(sorted(actions, key=lambda pair: pair[0]))) for words, actions in groups.items()]


def _click(action: Action) -> Style:
    return Style(meta={"@click": f"app.{action.id}"})
