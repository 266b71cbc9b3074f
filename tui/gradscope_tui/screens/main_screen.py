"""The screen of the panes."""

from __future__ import annotations

import asyncio

from textual import events
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

__all__ = ["MainScreen"]


class MainScreen(Screen[None]):
    """Is laid out for the size that the terminal has now, and painted once when it has been laid out.

    A layout for another size tells the screen of that size again. So two sizes that come close together, as the one of
    the terminal and that of ``COLUMNS``, would take turns for ever, and nothing else would have its turn.

    Textual paints in the midst of a layout, and a sixtieth of a second later what those widgets have changed that it
    has given another size.
    """

    # The panes whose focus comes or goes are painted anew, for their border: nothing else looks different.
    focused = Reactive[Widget | None](None, repaint=False)

    _laying_out: bool = False

    async def _on_resize(self, event: events.Resize) -> None:
        if event.size != self.app.size:
            event.stop()
            event.prevent_default()

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        self._laying_out = True
        try:
            super()._refresh_layout(size, scroll)
        finally:
            self._laying_out = False

    def _compositor_refresh(self) -> None:
        if self._laying_out:  # the loop wakes the widgets, who tell the screen what to paint, and then calls this one
            asyncio.get_running_loop().call_soon(self.call_later, self._paint_laid_out)
        else:
            super()._compositor_refresh()

    def _paint_laid_out(self) -> None:
        if self.is_current and not self.app._batch_count:
            self._compositor.update_widgets(self._dirty_widgets)
            self._compositor_refresh()
        else:
            self._dirty_widgets.add(self)  # what has been laid out is painted with what comes next
