"""The switches of opt_einsum, which is not used: products are taken from the left."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .switches import is_available, put

__all__ = ["enabled", "flags", "get_opt_einsum", "is_available", "strategy"]

enabled: bool = False
strategy: str | None = None


def get_opt_einsum() -> None:
    """Return the library: None."""


def flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager[None]:
    """Set switches for the length of a block."""
    return put(__name__, enabled=enabled, strategy=strategy)
