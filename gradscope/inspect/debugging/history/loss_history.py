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
        self._values: deque[float] = deque(maxlen=KEPT)

    def note(self, adapter: Adapter, frame: FrameType) -> None:
        """Remember the loss of the backward that a function calls; nothing where it is not known.

        Parameters
        ----------
        adapter : Adapter
            Knows what a tensor is.
        frame : frame
            Of the function that has called backward().
        """
        value = loss_value(adapter, frame)
        if value is not None:
            self._values.append(value)

    def recent(self) -> tuple[float, ...]:
        """Return the values that are remembered, the oldest first."""
        return tuple(self._values)
