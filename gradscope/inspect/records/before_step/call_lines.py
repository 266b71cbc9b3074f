"""The lines at which a program calls its modules, its backwards and its optimizers: where ranks may have parted."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from ....program_files import is_installed_file, source_name
from ...adapters import Adapter
from ...source.call_sites import user_frames
from ..module_tracking import Tracker

__all__ = ["CallLines", "line_of_frame", "own_frame", "own_line"]

_CHECKPOINT = "CheckpointFunction.forward"


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
    return line_of_frame(own_frame(sys._getframe(1)))


def own_frame(start: FrameType) -> FrameType | None:
    """Return the frame of :func:`own_line`, from `start` outwards; None where none is the program's."""
    frames = list(user_frames(start))
    own = (frame for frame in frames if not is_installed_file(frame.f_code.co_filename))
    return next(own, frames[0] if frames else None)


def line_of_frame(frame: FrameType | None) -> str:
    """Return the line that a frame runs, as ``'file:line'``; empty without one."""
    return "" if frame is None else f"{source_name(frame.f_code.co_filename)}:{frame.f_lineno}"


class _Called(NamedTuple):
    """The first call of a module."""

    module: weakref.ref[Any]
    line: str
    trained: bool
    checkpointed: bool


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
        self._called: dict[int, _Called] = {}
        self._checkpoints = False  # whether any module was called first inside of a re-entrant checkpoint

    def module_entered(self, module: Any) -> bool:
        """Note the call of a module; return whether it is an outermost one with parameters."""
        self.calls += 1
        outermost = not self._tracker.inside_module()
        self._tracker.module_entered(module)
        called = self._called.get(id(module))
        if called is None or called.module() is not module:
            called = self._called[id(module)] = self._called_first(module, sys._getframe(1))
            self.known += called.trained
            self._checkpoints |= called.checkpointed
        if outermost and called.trained:
            self.forward = own_line()
        return outermost and called.trained

    def _called_first(self, module: Any, frame: FrameType) -> _Called:
        line = line_of_frame(next(user_frames(frame), None))
        trained = bool(self._adapter.named_parameters(module))
        return _Called(weakref.ref(module), line, trained, trained and _inside_checkpoint(frame))

    def by_path(self) -> dict[str, str]:
        """Return the line at which each module was called first, by the module's path."""
        return {path: called.line for path, called in self._living()}

    def checkpointed(self) -> set[str]:
        """Return the paths of the modules with parameters that were called first inside of a re-entrant checkpoint."""
        return {path for path, called in self._living() if called.checkpointed} if self._checkpoints else set()

    def _living(self) -> Iterator[tuple[str, _Called]]:
        for called in list(self._called.values()):
            module = called.module()
            if module is not None:
                yield self._tracker.path_of(module), called


def _inside_checkpoint(frame: FrameType | None) -> bool:
    """Whether a frame runs inside of a re-entrant checkpoint, of either framework."""
    while frame is not None and frame.f_code.co_qualname != _CHECKPOINT:
        frame = frame.f_back
    return frame is not None
