"""Metal, which is not used."""

from __future__ import annotations

from .switches import is_available, is_built

__all__ = ["is_available", "is_built"]
