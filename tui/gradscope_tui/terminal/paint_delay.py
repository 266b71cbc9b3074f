"""Paints once what one key changes: the screen waits a moment for the answer that a pane has asked for."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from textual.app import App
from textual.timer import Timer

__all__ = ["PaintDelay"]

LONGEST = 0.025
"""Seconds that the screen waits: what an answer takes on a machine that is not busy, and less than a person sees."""


class PaintDelay:
    """Puts off painting until an answer has come, or until it has been waited for long enough.

    Textual paints what has changed at once, and what changes afterwards a sixtieth of a second later at the earliest: a
    cursor and what the inspector says about its node would be two paintings.

    Parameters
    ----------
    app : App
        Whose screen is painted.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._held = ExitStack()
        self._timer: Timer | None = None
        self._due = False  # whether painting has been put off, and not taken place since

    def begin(self) -> None:
        """Paint nothing from now on; what has begun already is not prolonged, and what is due is not put off again."""
        if self._timer is None and not self._due:
            self._held.enter_context(self._app.batch_update())
            self._timer = self._app.set_timer(LONGEST, self.end)

    def end_soon(self) -> None:
        """Paint when the widgets have heard of what has happened until now: of the focus, of another size."""
        if self._timer is not None and self._app.screen_stack:
            self._app.screen.call_later(self.end)

    def end(self) -> None:
        """Paint what has changed meanwhile."""
        if self._timer is None:
            return
        self._timer.stop()
        self._timer = None
        self._held.close()
        if self._app.screen_stack:
            self._due = True
            self._app.screen.call_after_refresh(
                self._painted
            )  # also prompts the screen: the batch prompts the app alone

    def _painted(self) -> None:
        self._due = False
