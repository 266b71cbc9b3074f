"""The line at which a program has failed, as the traceback that it has printed says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradscope.inspect.records.records import Location

__all__ = ["raised_at"]

_FRAME = re.compile(r'\s*File "(?P<file>[^"<>]+)", line (?P<line>\d+), in (?P<function>.+)')
_OF_LIBRARIES = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python3[^/\\]*)[/\\]")


def raised_at(output: Sequence[str]) -> Location | None:
    """Return the innermost line of the program's own files in the last traceback of some output.

    Examples
    --------
    >>> said = [
    ...     "Traceback (most recent call last):",
    ...     '  File "train.py", line 7, in main',
    ...     "    step(x)",
    ...     "ValueError: no",
    ... ]
    >>> location = raised_at(["loss 0.5", *said])
    >>> location.filename, location.lineno, location.function, location.source
    ('train.py', 7, 'main', 'step(x)')
    """
    found = None
    for at, line in enumerate(output):
        if line.startswith("Traceback (most recent call last)"):
            found = None
        frame = _FRAME.fullmatch(line)
        if frame is not None and not _OF_LIBRARIES.search(frame["file"]):
            source = output[at + 1].strip() if at + 1 < len(output) else ""
            found = Location(frame["file"], int(frame["line"]), frame["function"], source)
    return found
