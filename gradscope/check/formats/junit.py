"""JUnit's XML, which CI servers show as tests: each finding a test that has failed, a clean run one that has passed.

References
----------
The schema of Apache Ant's and Maven Surefire's test reports, in the form that Jenkins' xUnit plugin reads.
"""

from __future__ import annotations

from ...inspect.output.markup import Markup, element
from ..check_report import Report
from ..findings.finding_records import Finding
from .paths import shown
from .report_format_registry import report_format
from .text_report import finding_as_text, last_lines

__all__ = ["as_junit"]


@report_format("junit", alone=True, place=6)
def as_junit(report: Report) -> str:
    """Return the report as a test suite in XML."""
    cases = [_case(finding, report.directory) for finding in report.findings]
    if not cases:
        cases = [element("testcase", {"classname": "gradscope.check", "name": report.result.path})]
    counts = {"tests": len(cases), "failures": len(report.findings), "errors": 0, "skipped": 0}
    said = element("system-out", None, "\n".join(last_lines(report)))
    suite = element("testsuite", {"name": "gradscope check", **counts}, *cases, said)
    whole = element("testsuites", {"name": "gradscope check", **counts}, suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{whole}\n'


def _case(finding: Finding, directory: str) -> Markup:
    primary = finding.primary
    filename = "" if primary is None else shown(primary.filename, directory)
    place = {} if primary is None else {"file": filename, "line": primary.lineno}
    name = finding.code if primary is None else f"{finding.code} {filename}:{primary.lineno}"
    failure = element(
        "failure",
        {"type": finding.severity, "message": finding.message},
        finding_as_text(finding, directory=directory),
    )
    return element("testcase", {"classname": "gradscope.check", "name": name, **place}, failure)
