"""Around training: data sets and their loaders, checkpoints, hooks and memory that is shared.

- :mod:`~.data`: data sets, samplers, loaders
- :mod:`~.checkpoint`: activations that are computed again instead of kept
- :mod:`~.dlpack`: arrays of other libraries, without a copy
- :mod:`~.hooks`: handles that remove what was registered
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["checkpoint", "data", "dlpack", "hooks"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
