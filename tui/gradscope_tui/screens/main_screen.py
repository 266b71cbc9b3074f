"""The screen of the panes."""

from __future__ import annotations

from textual import events
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

__all__ = ["MainScreen"]


class MainScreen(Screen[None]):
    """Is laid out for the size that the terminal has now.

    A layout for another size tells the screen of that size again. So two sizes that come close together, as the one of
    the terminal and that of ``COLUMNS``, would take turns for ever, and nothing else would have its turn.
    """

    # The panes whose focus comes or goes are painted anew, for their border: nothing else looks different.
    focused = Reactive[Widget | None](None, repaint=False)

    async def _on_resize(self, event: events.Resize) -> None:
        if event.size != self.app.size:
            event.stop()
            event.prevent_default()
