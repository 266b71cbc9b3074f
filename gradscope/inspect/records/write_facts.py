"""Facts about writes, which rules judge: what wrote, and where memory was handed to that counts no version."""

from __future__ import annotations

from dataclasses import dataclass

from .records import Location

__all__ = ["ASSIGNED", "ShareFact", "WriteFact"]

ASSIGNED = ".data ="
"""The name of the write that gives a tensor other memory: what a share is told of it as."""


@dataclass(frozen=True, slots=True)
class WriteFact:
    """A write in place.

    Attributes
    ----------
    grad_enabled : bool
        Whether recording was on.
    requires_grad : bool
        That of the alias that was written, before the write.
    step : bool
        Whether an optimizer of the framework's own did it.
    module : str
        The class of the module that did it because it was told to work in place, ``'ReLU'``; empty for any other write.
    """

    operator: str
    location: Location | None
    grad_enabled: bool
    requires_grad: bool
    step: bool
    module: str = ""


@dataclass(frozen=True, slots=True)
class ShareFact:
    """Memory handed to where a write counts no version.

    Attributes
    ----------
    how : str
        ``'.data'``, ``'numpy()'`` and the like.
    """

    how: str
    location: Location | None
