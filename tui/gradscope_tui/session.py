"""What the terminal UI asks of a debugging session, so that its tests can bring a session of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Breakpoint", "Session", "StopReason", "is_over", "is_paused"]


class StopReason(Protocol):
    """Why the session has stopped."""

    @property
    def kind(self) -> str:
        """'step', 'breakpoint', 'entry', 'exception', 'nan', 'violation', 'pause', 'run-to' or 'finished'."""

    @property
    def text(self) -> str:
        """The reason in words."""
