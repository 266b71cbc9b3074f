"""MKL, which is not used."""

from __future__ import annotations

from .switches import is_available

__all__ = ["is_available"]
