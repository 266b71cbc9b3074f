"""Is called after each line of the program's own, while somebody wants to look."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ...inspect.records.records import Location
from ...inspect.source.call_sites import location_at, user_frame, user_frames

__all__ = ["LineTrace"]


class LineTrace:
    """Calls a function after each line of this thread that is no library's.

    Parameters
    ----------
    look : callable
        Called with a function that returns the line that has just run.
    """

    def __init__(self, look: Callable[[Callable[[], Location | None]], None]) -> None:
        self._look = look
        self._ran: tuple[FrameType, int] | None = None

    def start(self) -> None:
        """Begin, with the line that runs; doing so twice is harmless. A trace function of the program's own stays."""
        if sys.gettrace() is not None:
            return
        here = sys._getframe(1)
        for frame in user_frames(here):
            frame.f_trace = self._in_frame
        self._stand_at(user_frame(here))
        sys.settrace(self._called)

    def stop(self) -> None:
        """Trace no more."""
        if sys.gettrace() == self._called:
            sys.settrace(None)
        self._ran = None

    def _stand_at(self, frame: FrameType | None) -> None:
        self._ran = None if frame is None else (frame, frame.f_lineno)

    def _line(self) -> Location | None:
        return None if self._ran is None else location_at(*self._ran)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Follow a function that is called, unless it is a library's."""
        return self._in_frame if user_frame(frame) is frame else None

    def _in_frame(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event in ("line", "return"):
            self._look(self._line)
            # When a function has returned, the line of its caller is the one that runs.
            self._stand_at(frame if event == "line" else user_frame(frame.f_back) if frame.f_back else None)
        return self._in_frame
