"""What the sanitizer has found in a cell: as text, and as a table."""

from __future__ import annotations

from dataclasses import dataclass

from ..check import Finding, Report, finding_as_text
from ..check.formats.text_report import notice_as_text, summary
from ..inspect.output.notebook_html import note, page, table
from ..inspect.source.call_sites import place

__all__ = ["CheckResult"]


@dataclass(frozen=True, repr=False)
class CheckResult:
    """The report on a cell.

    Attributes
    ----------
    report : Report
        What was found and watched.
    """

    report: Report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The misuses, in the order they were met."""
        return self.report.findings

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __repr__(self) -> str:
        return "\n\n".join([*(self._text(finding) for finding in self.findings), "\n".join(self._last_lines())])

    def _repr_html_(self) -> str:
        rows = [(finding.code, place(finding.primary), finding.message) for finding in self.findings]
        told = [note(self._text(finding)) for finding in self.findings]
        shown = table(("code", "line", "what"), rows) if rows else ""
        return page(shown, *told, note("\n".join(self._last_lines())))

    def _text(self, finding: Finding) -> str:
        return finding_as_text(finding, directory=self.report.directory)

    def _last_lines(self) -> list[str]:
        lines = [summary(self.report), *(f"Not looked into: {reason}." for reason in self.report.unseen)]
        return lines + [f"warning: {notice_as_text(notice, self.report.directory)}" for notice in self.report.notices]
