"""The values of the losses of the latest backwards."""

from __future__ import annotations

from collections import deque
from types import FrameType

from ...adapters import Adapter
from ...records.loss_value import loss_value

__all__ = ["KEPT", "LossHistory"]

KEPT = 120
"""Backwards that are remembered."""


class LossHistory:
    """Remembers the value of the loss of each backward, where it is a variable and one number."""

    def __init__(self) -> None:
        self._values: deque[tuple[int, float]] = deque(maxlen=KEPT)

    def note(self, backward: int, adapter: Adapter, frame: FrameType) -> None:
        """Remember the loss of the backward that a function calls; nothing where it is not known.

        Parameters
        ----------
        backward : int
            Its number.
        adapter : Adapter
            Knows what a tensor is.
        frame : frame
            Of the function that has called backward().
        """
        value = loss_value(adapter, frame)
        if value is not None:
            self._values.append((backward, value))

    def recent(self) -> tuple[float, ...]:
        """Return the values that are remembered, the oldest first."""
        return tuple(value for _, value in self._values)

    def up_to(self, backward: int) -> tuple[float, ...]:
        """Return those up to that of a backward, which is the last of them; nothing where that is not known."""
        known = [(number, value) for number, value in self._values if number <= backward]
        return tuple(value for _, value in known) if known and known[-1][0] == backward else ()
