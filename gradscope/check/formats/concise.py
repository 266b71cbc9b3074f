"""One line a finding, ``file:line: CODE severity: message``, which editors and problem matchers read."""

from __future__ import annotations

from ..check_report import Report
from ..findings.finding_records import Finding
from .paths import shown
from .report_format_registry import report_format
from .text_report import last_lines

__all__ = ["as_lines"]


@report_format("concise", place=2)
def as_lines(report: Report) -> str:
    """Return the report with one line for each finding."""
    return "\n".join([*(_line(finding, report.directory) for finding in report.findings), *last_lines(report)]) + "\n"


def _line(finding: Finding, directory: str) -> str:
    primary = finding.primary
    place = "-" if primary is None else f"{shown(primary.filename, directory)}:{primary.lineno}"
    return f"{place}: {finding.code} {finding.severity}: {finding.message}"
