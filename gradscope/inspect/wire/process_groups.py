"""Timeouts of ``torch.distributed``: a rank that a person looks at must not end the others, which wait for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ..output.terminal_text import say

__all__ = ["LONG", "StretchedTimeouts"]

LONG = timedelta(days=7)
"""What collectives may take while a front is attached."""

_C10D = "torch.distributed.distributed_c10d"


class StretchedTimeouts:
    """The timeouts of this process's groups, stretched while a front is attached.

    PyTorch reads a timeout when a collective begins: one that waits already, and a group that is made between two calls
    of :meth:`stretch`, have the program's own.
    """

    def __init__(self) -> None:
        self._own: list[tuple[Any, timedelta]] = []
        self._groups = 0
        self._told = False
        self._lock = threading.Lock()

    def stretch(self) -> None:
        """Stretch the timeouts of all groups that there are; rank 0 says so once. It may be called at any time."""
        c10d = sys.modules.get(_C10D)
        if c10d is None or len(c10d._world.pg_map) == self._groups:
            return
        with self._lock:
            self._groups = len(c10d._world.pg_map)
            for backend in _backends(c10d):
                own = backend.options._timeout
                if own < LONG:
                    backend._set_default_timeout(LONG)
                    self._own.append((backend, own))
            if self._own and not self._told:
                self._told = True
                if os.environ.get("RANK", "0") == "0":
                    text = f"gradscope: collectives wait up to {LONG.days} days for each other while somebody looks on"
                    say(text, file=sys.stderr)

    def restore(self) -> None:
        """Give groups their own timeouts back, unless the program has set others meanwhile."""
        with self._lock:
            for backend, own in self._own:
                if backend.options._timeout == LONG:
                    backend._set_default_timeout(own)
            self._own, self._groups = [], 0


def _backends(c10d: Any) -> Iterator[Any]:
    """Yield what carries out the collectives of each group, where its timeout can be read and set."""
    seen: set[int] = set()
    for group in list(c10d._world.pg_map):
        for device in getattr(group, "_device_types", ()):
            backend = group._get_backend(device)
            known = hasattr(backend, "_set_default_timeout") and hasattr(getattr(backend, "options", None), "_timeout")
            if known and id(backend) not in seen:
                seen.add(id(backend))
                yield backend
