"""Annotations in a pull request: workflow commands, which GitHub Actions reads from the output of a step.

References
----------
GitHub Docs, "Workflow commands for GitHub Actions": setting an error message.
"""

from __future__ import annotations

import os

from ...inspect.diagnosis.rule_registry import LEVELS, RULES
from ..check_report import Report
from ..findings.finding_records import Finding
from .paths import shown
from .report_format_registry import report_format
from .text_report import finding_as_text, last_lines

__all__ = ["as_annotations"]


@report_format("github", place=5)
def as_annotations(report: Report) -> str:
    """Return an annotation for each finding and each warning, and the summary."""
    # GitHub names files from the top of the repository, wherever in it the step runs.
    top = os.environ.get("GITHUB_WORKSPACE") or report.directory
    lines = [_of_finding(finding, top, report.directory) for finding in report.findings]
    for notice in report.notices:
        place = f"file={_property(shown(notice.filename, top))}" + (f",line={notice.line}" if notice.line else "")
        lines.append(f"::warning {place},title=gradscope check::{_data(notice.text)}")
    said = [line for line in last_lines(report) if not line.startswith("warning: ")]
    return "\n".join([*lines, *said]) + "\n"


def _of_finding(finding: Finding, top: str, directory: str) -> str:
    primary, title = finding.primary, f"{finding.code} {RULES[finding.code].title}"
    words = [] if primary is None else [f"file={_property(shown(primary.filename, top))}", f"line={primary.lineno}"]
    properties = ",".join([*words, f"title={_property(title)}"])
    return f"::{LEVELS[finding.severity]} {properties}::{_data(finding_as_text(finding, directory=directory))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
