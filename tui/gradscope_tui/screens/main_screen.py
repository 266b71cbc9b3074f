"""The screen of the panes."""

from __future__ import annotations

from textual import events
from textual.screen import Screen

__all__ = ["MainScreen"]


class MainScreen(Screen[None]):
    """Is laid out for the size that the terminal has now.

    A layout for another size tells the screen of that size again. So two sizes that come close together, as the one of
    the terminal and that of ``COLUMNS``, would take turns for ever, and nothing else would have its turn.
    """

    async def _on_resize(self, event: events.Resize) -> None:
        if event.size != self.app.size:
            event.stop()
            event.prevent_default()
