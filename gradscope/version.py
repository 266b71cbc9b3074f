"""What this is a version of, and of what it was built."""

from __future__ import annotations

from . import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

cuda: str | None = None
hip: str | None = None
git_version: str | None = None
debug: bool = False
