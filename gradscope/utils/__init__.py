"""Around training: data sets and their loaders."""

from __future__ import annotations

from . import data

__all__ = ["data"]
