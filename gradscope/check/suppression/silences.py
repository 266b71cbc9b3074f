"""All that silences findings, which the sanitizer asks of each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum

from ...program_files import is_library_file
from ..findings.finding_records import Finding
from .baseline import Baseline
from .code_selection import CodeSelection
from .line_comments import LineComments
from .notices import Notice
from .suppressions_file import SuppressionsFile

__all__ = ["SilenceReason", "Silences"]


class SilenceReason(Enum):
    """The reason why a finding is silenced."""

    NOT_SELECTED = "its code is not selected"
    SUPPRESSED = "a comment, or the suppressions file, silences it"
    KNOWN = "the baseline knows it"


class Silences:
    """The line comments, settings and baseline that silence findings.

    Parameters
    ----------
    selection : CodeSelection, optional
        All codes by default.
    suppressions : SuppressionsFile, optional
        None by default.
    baseline : Baseline, optional
        None by default.

    See Also
    --------
    Settings : as a project has them.

    Examples
    --------
    >>> finding = Finding("GS101", "`y` was modified in place", ())
    >>> Silences().reason(finding), Silences(CodeSelection(ignore=["GS101"])).reason(finding)
    (None, <SilenceReason.NOT_SELECTED: 'its code is not selected'>)
    """

    def __init__(
        self,
        selection: CodeSelection | None = None,
        suppressions: SuppressionsFile | None = None,
        baseline: Baseline | None = None,
    ) -> None:
        self._selection = selection or CodeSelection()
        self._suppressions = suppressions
        self.baseline = baseline
        self._comments = LineComments()

    def looks_for(self, code: str) -> bool:
        """Whether a code is selected."""
        return code in self._selection

    def reason(self, finding: Finding) -> SilenceReason | None:
        """Return the reason why a finding is silenced; None where it is reported."""
        if finding.code not in self._selection:
            return SilenceReason.NOT_SELECTED
        if any(self._comments.silence(place.filename, place.lineno, finding.code) for place in finding.frames):
            return SilenceReason.SUPPRESSED
        if self._suppressions is not None and self._suppressions.silence(finding.code, finding.frames):
            return SilenceReason.SUPPRESSED
        return SilenceReason.KNOWN if self.baseline is not None and self.baseline.knows(finding) else None

    def note_text(self, filename: str, text: str) -> None:
        """Note what stands in a file that has been read: it is not read again where no comment silences anything."""
        self._comments.note_text(filename, text)

    def notices(self, script: str = "", *, sources: Sequence[str] | None = None) -> Iterator[Notice]:
        """Yield what is wrong with what silences, and what has silenced nothing.

        Parameters
        ----------
        script : str
            A file whose comments are looked at beside those of the modules that the program has imported.
        sources : sequence of str, optional
            The files that were read, where no program has run.
        """
        for filename in _files_of_the_program(script) if sources is None else sources:
            yield from self._comments.notices(filename, read=sources is not None, looked_for=self._selection)
        for file in (self._suppressions, self.baseline):
            if file is not None:
                yield from file.notices(self._selection)


def _files_of_the_program(script: str) -> list[str]:
    """Return the files of the program itself: no framework's, and nothing that has been installed."""
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return list(dict.fromkeys(filename for filename in (script, *modules) if filename and _is_own(filename)))


def _is_own(filename: str) -> bool:
    installed = "site-packages" in filename or "dist-packages" in filename
    return filename.endswith(".py") and not installed and not is_library_file(filename)
