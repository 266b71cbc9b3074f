"""The switch of NNPACK, which is not used."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .switches import is_available, put

__all__ = ["enabled", "flags", "is_available"]

enabled: bool = True


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Set the switch for the length of a block."""
    return put(__name__, enabled=enabled)
