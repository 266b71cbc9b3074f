"""The lines at which a program calls its modules, its backwards and its optimizers: where ranks may have parted."""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any

from ....runtime.events import is_installed_file
from ....runtime.notebook_cells import source_name
from ...adapters import Adapter
from ...source.call_sites import user_frames
from ..module_tracking import Tracker

__all__ = ["CallLines", "own_line"]


def own_line() -> str:
    """Return the innermost line of the program that runs, before those of packages that are installed.

    Returns
    -------
    str
        ``'file:line'``; empty where no line of the program's runs.

    Examples
    --------
    >>> own_line().rpartition(":")[2]
    '1'
    """
    frames = list(user_frames(sys._getframe(1)))
    own = (frame for frame in frames if not is_installed_file(frame.f_code.co_filename))
    return _line(next(own, frames[0] if frames else None))


def _line(frame: FrameType | None) -> str:
    return "" if frame is None else f"{source_name(frame.f_code.co_filename)}:{frame.f_lineno}"


class CallLines:
    """Notes where modules are called, on the program's threads.

    Parameters
    ----------
    tracker : Tracker
        Which is told of the modules too.

    Attributes
    ----------
    forward : str
        The newest line that called an outermost module with parameters.
    known : int
        How many modules with parameters have been called.
    calls : int
        How many calls of modules there were.
    """

    def __init__(self, adapter: Adapter, tracker: Tracker) -> None:
        self.forward = ""
        self.known = 0
        self.calls = 0
        self._adapter = adapter
        self._tracker = tracker
        self._called: dict[int, tuple[weakref.ref[Any], str, bool]] = {}

    def module_entered(self, module: Any) -> bool:
        """Note the call of a module; return whether it is an outermost one with parameters."""
        self.calls += 1
        outermost = not self._tracker.inside_module()
        self._tracker.module_entered(module)
        reference, _, trained = self._called.get(id(module), (None, "", False))
        if reference is None or reference() is not module:
            trained = bool(self._adapter.named_parameters(module))
            line = _line(next(user_frames(sys._getframe(1)), None))
            self._called[id(module)] = weakref.ref(module), line, trained
            self.known += trained
        if outermost and trained:
            self.forward = own_line()
        return outermost and trained

    def by_path(self) -> dict[str, str]:
        """Return the line at which each module was called first, by the module's path."""
        living = ((reference(), line) for reference, line, _ in list(self._called.values()))
        return {self._tracker.path_of(module): line for module, line in living if module is not None}
