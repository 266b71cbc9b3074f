"""Suppressions by library, file and function, in a file of lines ``CODE:PATTERN``, as sanitizers of C++ have them.

``GS107:timm`` silences GS107 where a function of timm wrote, ``GS107:timm.layers.*.forward`` in some functions of it,
``GS1:legacy/*.py`` all findings in some files. ``*`` stands for all codes, ``#`` begins a comment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ...inspect.records.records import Location
from ..findings.finding_codes import CODES
from .code_selection import codes_of
from .notices import Notice

__all__ = ["SuppressionsFile", "dotted_name"]

_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class _Suppression:
    line: int
    code: str
    pattern: str

    def covers(self, code: str, location: Location) -> bool:
        if not code.startswith(self.code):
            return False
        if "/" in self.pattern or self.pattern.endswith(".py"):
            path = Path(location.filename).as_posix()
            return fnmatchcase(path, self.pattern) or fnmatchcase(path, f"*/{self.pattern}")
        name = dotted_name(location)
        return name.startswith(f"{self.pattern}.") or fnmatchcase(name, self.pattern)


class SuppressionsFile:
    """The suppressions of a file, and which of them have silenced something.

    Parameters
    ----------
    filename : str
        The file.
    lines : iterable of str
        What stands in it.

    Raises
    ------
    ValueError
        If a line is no suppression, or names no code.

    Examples
    --------
    >>> suppressions = SuppressionsFile("third_party.txt", ["# not ours", "GS107:timm"])
    >>> place = Location("/venv/lib/python3.11/site-packages/timm/layers/drop.py", 3, "DropPath.forward", "")
    >>> suppressions.silence("GS107", [place]), suppressions.silence("GS101", [place])
    (True, False)
    """

    def __init__(self, filename: str, lines: Iterable[str]) -> None:
        self._filename = filename
        self._entries = tuple(_read(filename, lines))
        self._used: set[_Suppression] = set()

    @classmethod
    def read(cls, filename: str) -> SuppressionsFile:
        """Return the suppressions of a file.

        Raises
        ------
        OSError
            If it cannot be read.
        ValueError
            If it is no text, or as for the class.
        """
        try:
            return cls(filename, Path(filename).read_text(encoding="utf-8-sig").splitlines())
        except UnicodeDecodeError:
            raise ValueError(f"{filename}: no text in UTF-8") from None

    def silence(self, code: str, frames: Iterable[Location]) -> bool:
        """Whether a suppression covers a finding whose primary place these frames lead to."""
        frames = list(frames)
        found = [entry for entry in self._entries if any(entry.covers(code, frame) for frame in frames)]
        self._used.update(found)
        return bool(found)

    def notices(self, looked_for: Container[str] = CODES) -> Iterator[Notice]:
        """Yield which suppressions of codes that were looked for have silenced nothing."""
        for entry in self._entries:
            meant = any(code in looked_for for code in CODES if code.startswith(entry.code))
            if meant and entry not in self._used:
                text = f"{entry.code or '*'}:{entry.pattern} has silenced nothing in this run"
                yield Notice(text, self._filename, entry.line)


def _read(filename: str, lines: Iterable[str]) -> Iterator[_Suppression]:
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        code, colon, pattern = (part.strip() for part in text.partition(":"))
        if not (colon and code and pattern):
            raise ValueError(f"{filename}:{number}: {text!r} is no suppression: write CODE:PATTERN")
        try:
            yield _Suppression(number, "" if code == "*" else codes_of([code])[0], pattern.removeprefix("./"))
        except ValueError as error:
            raise ValueError(f"{filename}:{number}: {error}") from None


def dotted_name(location: Location) -> str:
    """Return the full name of the function that a line is in, as it would be imported: ``timm.layers.drop.f``.

    Examples
    --------
    >>> dotted_name(Location("/venv/lib/python3.11/site-packages/timm/__init__.py", 3, "f", ""))
    'timm.f'
    """
    path = Path(location.filename)
    parts = path.with_suffix("").parts
    installed = [index for index, part in enumerate(parts) if part in _INSTALLED]
    if installed:
        parts = parts[installed[-1] + 1 :]
    else:
        roots = [Path(os.path.abspath(entry or os.curdir)) for entry in sys.path]
        below = [root for root in roots if path.is_relative_to(root)]
        parts = parts[len(max(below, key=lambda root: len(root.parts)).parts) :] if below else parts[-1:]
    if len(parts) > 1 and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join([*parts, location.function])
