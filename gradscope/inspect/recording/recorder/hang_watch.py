"""Where a rank is when nothing more comes from it, and what it has raised: for those who ask why a job hangs."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from types import FrameType

from ...debuggee.whereabouts import collective_in, is_library, whereabouts
from ...output.error_text import error_text

__all__ = ["BEHIND", "RAISED", "SILENT", "SKIPPED", "HangWatch", "raised_frame", "raised_text"]

SILENT, RAISED, SKIPPED = "silent", "raised", "skipped"
"""Kinds of events: where the main thread has been for a while, the exception that the program did not catch, and that
no backward has followed its last forward."""

BEHIND = ", behind its training loop"
"""How the place of a rank ends that has left the loop in which it trained."""

_PATIENCE = 2.0
"""Seconds at one place after which it is noted."""


class HangWatch:
    """Notes where the main thread is while nothing comes from it.

    Parameters
    ----------
    note : callable
        Given the place; it hands one item to the writer.
    patience : float
        Seconds.
    """

    def __init__(self, note: Callable[[str], None], patience: float = _PATIENCE) -> None:
        self._note = note
        self._patience = patience
        self._taken = 0
        self._place = ""
        self._since = 0.0
        self._noted = False

    def quiet(self, taken: int) -> None:
        """Look where the main thread is; the writer's thread asks when there was nothing to write.

        Parameters
        ----------
        taken : int
            How many items have been written by now: where there are more than before, the program has gone on.
        """
        now, place = time.monotonic(), whereabouts()
        if (taken, place) != (self._taken, self._place):
            self._taken, self._place, self._since, self._noted = taken, place, now, False
        elif not self._noted and now - self._since >= self._patience:
            self._noted = True
            self._taken += 1  # the note itself
            self._note(place)


def raised_frame(error: BaseException) -> FrameType | None:
    """Return the innermost frame that an exception has left; None of one that was not raised."""
    return next((frame for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__)))), None)


def raised_text(error: BaseException) -> str:
    """Return an exception in one line, with the user's line at which it left the program, and the collective there."""
    text = f"{type(error).__name__}: {(error_text(error) or 'no message').splitlines()[0]}"
    left = [*traceback.walk_tb(error.__traceback__)]
    places = [(frame, line) for frame, line in left if not is_library(frame)]
    if not places:
        return text
    frame, line = places[-1]
    # Wrong arguments are refused before anybody is waited for.
    collective = collective_in(frame for frame, _ in reversed(left)) if isinstance(error, RuntimeError) else ""
    inside = f", in {collective}" if collective else ""
    return f"{text}{inside}, at {os.path.basename(frame.f_code.co_filename)}:{line}"
