"""Reads from another thread where the main thread is: a collective that never returns has a Python frame."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType

__all__ = ["collective_in", "current_line", "is_library", "main_thread_frame", "main_thread_stack", "whereabouts"]

_COLLECTIVES = os.path.join("torch", "distributed")
_WRAPPER = os.path.join("torch", "nn", "parallel", "distributed.py")
_INSTRUMENTS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARIES = (os.path.dirname(threading.__file__) + os.sep, os.path.dirname(os.path.dirname(_INSTRUMENTS)) + os.sep)


def whereabouts() -> str:
    """Return the collective that the main thread is in, and the line that called it; else the line that it is at.

    A collective of DistributedDataParallel's reducer has no frame: then it is in a backward. Nothing is stopped for it.
    """
    waits, called, frame = _library_call(_outwards(main_thread_frame()))
    if frame is None:
        return "outside the program's lines"
    place = f"{os.path.basename(frame.f_code.co_filename)}:{current_line(frame)}"
    if waits:
        return f"waits in {waits}, called at {place}"
    return f"is in {called}(), called at {place}" if called in ("backward", "grad") else f"is at {place}"


def collective_in(frames: Iterable[FrameType]) -> str:
    """Return the collective that frames, the innermost first, were in; an empty string where they were in none."""
    return _library_call(frames)[0]


def _library_call(frames: Iterable[FrameType]) -> tuple[str, str, FrameType | None]:
    """Return the collective that frames are in, the library's function that the program calls, and its frame."""
    waits = called = ""
    for frame in frames:
        if not is_library(frame):
            return waits, called, frame
        called = frame.f_code.co_name
        if _COLLECTIVES in frame.f_code.co_filename and called != "wrapper":
            waits = called
        elif frame.f_code.co_filename.endswith(_WRAPPER):
            waits = f"DistributedDataParallel.{called}"
    return waits, called, None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def main_thread_stack() -> str:
    """Return the functions that the main thread is in, as a traceback has them, from the program's outermost on.

    Those of the instruments between the program and its library are left out. Nothing is stopped for it.
    """
    frame = main_thread_frame()
    frames = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_INSTRUMENTS):
            frames.append((frame, current_line(frame)))
        frame = frame.f_back
    while frames and is_library(frames[-1][0]):  # what has started the program
        frames.pop()
    return "".join(traceback.StackSummary.extract(iter(frames[::-1])).format())


def current_line(frame: FrameType) -> int:
    """Return the number of the line that a frame runs.

    Another thread, and a signal, may find an instruction that has no line: then it is the function's first one.
    """
    return frame.f_lineno or frame.f_code.co_firstlineno


def main_thread_frame() -> FrameType | None:
    """Return what the main thread runs now."""
    return sys._current_frames().get(threading.main_thread().ident or 0)


def is_library(frame: FrameType) -> bool:
    """Whether a function is none of the user's."""
    name = frame.f_code.co_filename
    return "site-packages" in name or name.startswith("<") or name.startswith(_LIBRARIES)
