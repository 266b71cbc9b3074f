"""Lines of the user's program: where a call comes from, and how a place is written."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator
from types import FrameType, GetSetDescriptorType
from typing import Any

from ...program_files import is_library_file, source_name
from ..records.records import Location
from .source_paths import shown_path

__all__ = [
    "caller",
    "fields_of",
    "line_of",
    "location_at",
    "place",
    "raised_at",
    "user_frame",
    "user_frames",
]


def place(location: Location | None) -> str:
    """Return ``file:line``, relative to the directory in which the program was started when the file is below it.

    Returns
    -------
    str
        A dash where the line is not known.

    Examples
    --------
    >>> place(Location("train.py", 3, "main", "")), place(None)
    ('train.py:3', '-')
    """
    return "-" if location is None else f"{shown_path(location.filename)}:{location.lineno}"


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """Return the innermost frame that is neither ours, nor a framework's, nor the standard library's.

    Parameters
    ----------
    start : frame, optional
        Where to begin; the caller by default.
    """
    return next(user_frames(start or sys._getframe(1)), None)


def user_frames(start: FrameType) -> Iterator[FrameType]:
    """Yield the frames from `start` outwards that are neither ours, nor a framework's, nor the standard library's."""
    frame: FrameType | None = start
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def caller() -> Location | None:
    """Return the user's line that is running."""
    frame = user_frame(sys._getframe(1))
    return None if frame is None else location_at(frame, frame.f_lineno)


def user_lines() -> tuple[Location, ...]:
    """Return the lines of the user's functions that are running, the innermost first."""
    return tuple(location_at(frame, frame.f_lineno) for frame in user_frames(sys._getframe(1)))


def raised_at(error: BaseException) -> Location | None:
    """Return the user's innermost line that an exception has left; of a syntax error that which cannot be read.

    Examples
    --------
    >>> try:
    ...     compile("a = (1,", "train.py", "exec")
    ... except SyntaxError as error:
    ...     print(raised_at(error))
    train.py:1
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return line_of(error.filename, error.lineno)
    places = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_users(frame)]
    return location_at(*places[-1]) if places else None


def _is_users(frame: FrameType) -> bool:
    return not is_library_file(frame.f_code.co_filename)


def location_at(frame: FrameType, lineno: int | None) -> Location:
    """Return a line of the function that a frame runs; the function's first one for an instruction without a line."""
    return line_of(frame.f_code.co_filename, lineno or frame.f_code.co_firstlineno, frame.f_code.co_qualname)


def line_of(filename: str, lineno: int, function: str = "") -> Location:
    """Return a line of a file."""
    return Location(source_name(filename), lineno, function, linecache.getline(filename, lineno).strip())


def fields_of(thing: Any) -> dict[str, Any]:
    """Return an object's own attributes, without running a line of its class: a proxy does not wake up.

    Returns
    -------
    dict of str to object
        Empty for an object that keeps them elsewhere.
    """
    for kind in type(thing).__mro__:
        way = kind.__dict__.get("__dict__")
        if way is not None:
            return way.__get__(thing) if type(way) is GetSetDescriptorType else {}
    return {}
