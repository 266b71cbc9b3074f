"""The version of gradscope, under the names that PyTorch has for what it was built with."""

from __future__ import annotations

from . import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

cuda: str | None = None
hip: str | None = None
git_version: str | None = None
debug: bool = False
