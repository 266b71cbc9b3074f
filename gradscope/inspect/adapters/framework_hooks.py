"""Listens to either framework from when the program has imported it."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack

__all__ = ["FrameworkHooks"]


class FrameworkHooks(ABC):
    """What listens in modules of the frameworks, each of which the program may import at any time.

    Parameters
    ----------
    modules : sequence of str
        The names of the modules.
    wanted : str
        What a module must hold before anybody listens in it: one that is being imported does not yet.
    """

    def __init__(self, modules: Sequence[str], wanted: str) -> None:
        self._modules, self._wanted = modules, wanted
        self._undo: dict[str, ExitStack] = {}  # of the modules that are listened in
        self._lock = threading.Lock()

    def look(self) -> None:
        """Listen to the frameworks that are there by now; cheap, so that it can be asked at every backward."""
        for name in self._modules:
            if name not in self._undo and hasattr(sys.modules.get(name), self._wanted):
                with self._lock:
                    if name not in self._undo:  # another thread may have been first
                        self._undo[name] = undo = ExitStack()
                        self._listen_to(name, undo)

    def close(self) -> None:
        """Listen no more."""
        while self._undo:
            _, undo = self._undo.popitem()
            undo.close()

    @abstractmethod
    def _listen_to(self, name: str, undo: ExitStack) -> None:
        """Listen in a module; what ends that goes into `undo`."""
