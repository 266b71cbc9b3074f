"""The line of keys at the bottom, derived from the registry of actions; a key that does nothing now is dimmed."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from gradscope_tui.actions import ACTIONS, Action
from gradscope_tui.colors import text_style

__all__ = ["KeyBar"]


class KeyBar(Widget):
    """What can be done, by importance; what has no room is left out, help and quit never."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keybar--key", "keybar--label", "keybar--off"}
    ALWAYS: ClassVar[tuple[str, ...]] = ("help", "quit")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._off: frozenset[str] = frozenset()

    def show(self, off: frozenset[str]) -> None:
        """Dim the keys of these actions."""
        if off != self._off:
            self._off = off
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render the keys."""
        width = self.size.width
        text = Text(" ")
        for action in chosen_keys(width):
            off = action.id in self._off
            key, label = (text_style(self, f"keybar--{'off' if off else part}") for part in ("key", "label"))
            click = Style(meta={"@click": f"app.{action.id}"})
            text.append(_key(action), key + click)
            text.append(f" {action.label}", label + click)
            text.append("  ")
        return Strip(text.render(self.app.console)).crop_extend(0, width, None).apply_style(self.rich_style)


def chosen_keys(width: int) -> list[Action]:
    """Choose what the bar shows.

    Parameters
    ----------
    width : int
        Cells of the bar.

    Returns
    -------
    list of Action
        By importance, the least important left out until they fit; help and quit at the end.
    """
    ranked = sorted((action for action in ACTIONS if action.bar), key=lambda action: action.bar)
    while sum(_width(action) for action in ranked) > width - 1:
        spare = [action for action in ranked if action.id not in KeyBar.ALWAYS]
        if not spare:
            break
        ranked.remove(spare[-1])
    return sorted(ranked, key=lambda action: action.id in KeyBar.ALWAYS)


def _key(action: Action) -> str:
    return action.shown.split(",")[0]


def _width(action: Action) -> int:
    return len(_key(action)) + len(action.label) + 3
