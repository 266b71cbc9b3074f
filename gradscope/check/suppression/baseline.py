"""The findings that are known: a file with which an old code base takes up ``gradscope check``."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from ...inspect.output.terminal_text import json_text
from ..findings.finding_records import Finding
from ..findings.source_fixes import without_comment
from .notices import Notice

__all__ = ["Baseline", "fingerprint"]

SCHEMA = 1

_TOOL = "gradscope check"

_FIELDS = ("code", "file", "function", "source")

Fingerprint = tuple[str, str, str, str]


def fingerprint(finding: Finding, directory: str) -> Fingerprint:
    """Return by what a finding is known again: its code, and file, function and text of its primary line.

    Of what happened in a library, the function there is named too. Neither the number of the line is in it nor its
    comment: no change above, and no note beside it, makes a known finding new.

    Parameters
    ----------
    directory : str
        Which the name of the file is relative to.
    """
    place = finding.primary
    if place is None:
        return finding.code, "", "", finding.message
    filename = place.filename
    if os.path.isabs(filename):
        try:
            filename = Path(os.path.relpath(filename, directory)).as_posix()
        except ValueError:  # the two paths are on different drives
            filename = Path(filename).as_posix()
    function = " > ".join([place.function, *(frame.function for frame in finding.frames[1:][-1:])])
    return finding.code, filename, function, without_comment(" ".join(place.source.split()))


class Baseline:
    """The findings that a file knows.

    Parameters
    ----------
    filename : str
        The file, which need not be there.
    entries : iterable of Fingerprint
        What it knows.
    """

    def __init__(self, filename: str, entries: Iterable[Fingerprint] = ()) -> None:
        self._filename = filename
        self._directory = os.path.dirname(os.path.abspath(filename))
        self._entries = frozenset(entries)
        self._met: set[Fingerprint] = set()

    @classmethod
    def read(cls, filename: str) -> Baseline:
        """Return the baseline in a file.

        Raises
        ------
        OSError
            If it cannot be read.
        ValueError
            If it is no baseline.
        """
        try:
            facts = json.loads(Path(filename).read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise ValueError(f"{filename}: no baseline: {error}") from None
        except RecursionError:
            raise ValueError(f"{filename}: no baseline: it is nested too deeply") from None
        return cls(filename, _entries(filename, facts))

    def knows(self, finding: Finding) -> bool:
        """Whether a finding is in it."""
        key = fingerprint(finding, self._directory)
        self._met.add(key)
        return key in self._entries

    def notices(self, looked_for: Container[str] | None = None) -> Iterator[Notice]:
        """Yield which files it knows are no more, and how many of its other findings were not met.

        Parameters
        ----------
        looked_for : container of str, optional
            The codes that were selected; all by default.
        """
        unmet = {entry for entry in self._entries - self._met if looked_for is None or entry[0] in looked_for}
        gone = [entry for entry in sorted(unmet) if entry[1]]
        missing = Counter(file for _, file, _, _ in gone if not os.path.exists(os.path.join(self._directory, file)))
        for file, count in missing.items():
            yield Notice(f"knows {_count(count)} in {file}, which is no more", self._filename)
        rest = len(unmet) - missing.total()
        if rest:
            text = f"knows {_count(rest)} that this run has not met; --update-baseline leaves them out"
            yield Notice(text, self._filename)

    def write(self) -> int:
        """Write the findings that this run has met, known or not, and return how many."""
        found = [dict(zip(_FIELDS, entry, strict=True)) for entry in sorted(self._met)]
        text = json_text({"schema": SCHEMA, "tool": _TOOL, "findings": found}, indent=2)
        Path(self._filename).write_text(text + "\n", encoding="utf-8")
        return len(found)


def _entries(filename: str, facts: Any) -> Iterator[Fingerprint]:
    if not isinstance(facts, dict) or not isinstance(facts.get("findings"), list):
        raise ValueError(f"{filename}: no baseline: an object with findings is wanted")
    if facts.get("tool", _TOOL) != _TOOL:
        raise ValueError(f"{filename}: no baseline: it is one of the tool {facts['tool']!r}")
    if facts.get("schema") != SCHEMA:
        raise ValueError(f"{filename}: a baseline with schema {facts.get('schema')!r}; this version reads {SCHEMA}")
    for number, entry in enumerate(facts["findings"], start=1):
        known = entry if isinstance(entry, dict) else {}
        words = [known[field] for field in _FIELDS if isinstance(known.get(field), str)]
        if len(words) != len(_FIELDS):
            raise ValueError(f"{filename}: no baseline: finding {number} needs the texts {', '.join(_FIELDS)}")
        code, file, function, source = words
        yield code, file, function, without_comment(source) if file else source


def _count(number: int) -> str:
    return f"{number} finding" + "s" * (number != 1)
