"""Rules that find something in a source file alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_records import Finding
from .statements import SourceText

__all__ = ["SourceRule"]


class SourceRule(Rule):
    """A rule that finds something in a source file. What it is not sure of it leaves alone.

    Attributes
    ----------
    words : tuple of str
        One of them stands in every file in which there is something to find: others are not parsed.
    patterns : tuple of Pattern
        Each is found in every such file too. Words go first: they are found in a twentieth of the time.
    needs : tuple
        Empty for a rule that finds nothing in a program that runs.
    """

    words: ClassVar[tuple[str, ...]]
    patterns: ClassVar[tuple[re.Pattern[str], ...]] = ()
    needs: ClassVar[tuple[Any, ...]] = ()

    def concerns(self, text: str) -> bool:
        """Whether there may be something to find in a file."""
        return any(word in text for word in self.words) and all(pattern.search(text) for pattern in self.patterns)

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield what is found in a file."""
        raise NotImplementedError
