"""Call sites: where in the program something happened, as few or as many frames as somebody wants."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .. import program_files
from ..program_files import is_installed_file, is_library_file, is_notebook_package, source_name

__all__ = [
    "MOST_FRAMES",
    "CallSite",
    "Frame",
    "add_library",
    "capture_call_site",
    "capture_user_frames",
    "following_libraries",
    "user_site",
]

MOST_FRAMES = 48
"""The frames that are kept of a call site of which all are wanted, as in anomaly mode."""


class Frame(NamedTuple):
    """One frame of a call site."""

    filename: str
    lineno: int
    function: str


class CallSite:
    """Where something happened: raw (code, instruction) pairs, turned into lines when somebody asks.

    Attributes
    ----------
    told : object
        What an instrument has made of it, None at first: most call sites are met again.
    """

    __slots__ = ("_raw", "told")

    def __init__(self, raw: list[tuple[CodeType, int]]) -> None:
        self._raw = raw
        self.told: Any = None

    @property
    def frames(self) -> list[Frame]:
        """All frames, innermost first."""
        return [_frame(code, last) for code, last in self._raw]

    @property
    def filenames(self) -> list[str]:
        """The files of all frames, innermost first: without the lines, which take time to find."""
        return [code.co_filename for code, _ in self._raw]

    def user_frames(self) -> list[Frame]:
        """Return the frames outside gradscope and the standard library, innermost first."""
        return list(self._user_frames())

    def user_frame(self) -> Frame | None:
        """Return the innermost frame outside gradscope and the standard library."""
        return next(self._user_frames(), None)

    def _user_frames(self) -> Iterator[Frame]:
        # Lines are found one at a time: finding one is a walk along its function's line table, and most callers want
        # one frame.
        for code, last in self._raw:
            if not is_library_file(code.co_filename):
                yield _frame(code, last)

    @property
    def source_line(self) -> str:
        """The stripped text of the user's line, or an empty string."""
        frame = self.user_frame()
        return linecache.getline(frame.filename, frame.lineno).strip() if frame else ""

    def format(self) -> str:
        """Return the frames as a traceback prints them, outermost first; in a notebook from the cell inwards."""
        lines = []
        for filename, lineno, function in reversed(list(itertools.takewhile(_in_program, self.frames))):
            lines.append(f'  File "{filename}", line {lineno}, in {function}\n')
            text = linecache.getline(filename, lineno).strip()
            if text:
                lines.append(f"    {text}\n")
        return "".join(lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallSite) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(tuple([last for _, last in self._raw]))

    def __repr__(self) -> str:
        frame = self.user_frame()
        return f"<CallSite {frame.filename}:{frame.lineno} in {frame.function}>" if frame else "<CallSite>"


def add_library(directory: str) -> None:
    """Count the files of a directory as a library's: no call site points there (PyTorch's own Python files).

    Parameters
    ----------
    directory : str
        As of :func:`gradscope.program_files.add_library`.
    """
    program_files.add_library(directory)
    _innermost.clear()


def _frame(code: CodeType, last: int) -> Frame:
    return Frame(source_name(code.co_filename), _line_of(code, last), code.co_qualname)


def _in_program(frame: Frame) -> bool:
    return not is_notebook_package(frame.filename)


def _line_of(code: CodeType, last: int) -> int:
    for start, end, line in code.co_lines():
        if start <= last < end:
            return line or code.co_firstlineno
    return code.co_firstlineno


def capture_call_site(skip: int = 1) -> CallSite:
    """Return where the caller stands, `skip` frames up."""
    raw: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None and len(raw) < MOST_FRAMES:
        raw.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return CallSite(raw)


# Call sites by the identity of the code, which the call site keeps alive, and the instruction.
_innermost: dict[tuple[int, int], CallSite] = {}
_MOST_KEPT = 10_000


# Call sites whose innermost frame is installed code, by all frames from there to the user's own.
_through_libraries: dict[tuple[tuple[int, int], ...], CallSite] = {}
_following = 0


@contextlib.contextmanager
def following_libraries() -> Iterator[None]:
    """While this is open, a call site in an installed package leads on to the line of the program's own that called."""
    global _following
    _following += 1
    _innermost.clear()  # its sites lead no further
    try:
        yield
    finally:
        _following -= 1
        _innermost.clear()
        _through_libraries.clear()


def user_site(skip: int = 1) -> CallSite:
    """Return where the user's innermost frame stands, from `skip` frames up; the same object for the same place."""
    frame = sys._getframe(skip)
    # As a rule the program itself stands there, and has stood there before.
    site = _innermost.get((id(frame.f_code), frame.f_lasti))
    return _user_site_from(frame) if site is None else site


def _user_site_from(innermost: FrameType) -> CallSite:
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        if not is_library_file(code.co_filename):
            place = id(code), frame.f_lasti
            site = _innermost.get(place)
            if site is not None:
                return site
            if _following and is_installed_file(code.co_filename):
                return _site_through_libraries(frame)
            if len(_innermost) >= _MOST_KEPT:
                _innermost.clear()
            site = _innermost[place] = CallSite([(code, frame.f_lasti)])
            return site
        frame = frame.f_back
    return CallSite([])


def _site_through_libraries(innermost: FrameType) -> CallSite:
    """Return a call site with the frames of installed packages up to the program's own."""
    raw: list[tuple[CodeType, int]] = []
    frame: FrameType | None = innermost
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_library_file(filename):
            raw.append((frame.f_code, frame.f_lasti))
            if not is_installed_file(filename):
                break
        frame = frame.f_back
    places = tuple([(id(code), last) for code, last in raw])
    site = _through_libraries.get(places)
    if site is None:
        if len(_through_libraries) >= _MOST_KEPT:
            _through_libraries.clear()
        site = _through_libraries[places] = CallSite(raw)
    return site


def capture_user_frames(skip: int, count: int) -> CallSite:
    """Return the user's innermost `count` frames."""
    raw: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        if not is_library_file(code.co_filename):
            raw.append((code, frame.f_lasti))
            if len(raw) == count:
                break
        frame = frame.f_back
    return CallSite(raw)
