"""SARIF 2.1.0, for code scanning, editors and whatever else reads the results of static analysis.

References
----------
OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020; the sections are named below.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from gradscope import __version__

from ...inspect.diagnosis.rule_registry import LEVELS, metadata
from ...inspect.output.terminal_text import json_text
from ...inspect.records.records import Location
from ..check_report import Report
from ..findings.finding_codes import CODES
from ..findings.finding_records import Finding, Fix, Site
from ..suppression.baseline import fingerprint
from ..suppression.notices import Notice
from .paths import uri
from .report_format_registry import report_format

__all__ = ["as_sarif"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_RULES = list(CODES)
_AROUND = 2  # lines of context, before and after


@report_format("sarif", alone=True, place=4)
def as_sarif(report: Report) -> str:
    """Return the report as a SARIF log with one run."""
    directory = report.directory
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "invocations": [_invocation(report)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, report) for finding in report.findings],
    }
    if directory:
        run["originalUriBaseIds"] = {_ROOT: {"uri": Path(directory).as_uri().rstrip("/") + "/"}}
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver() -> dict[str, Any]:
    """Return what looked (section 3.19); Azure DevOps shows its full name."""
    return {
        "name": "gradscope",
        "fullName": "gradscope check",
        "version": __version__,
        "rules": metadata(CODES.values()),
    }


def _invocation(report: Report) -> dict[str, Any]:
    """Return how the run went (section 3.20): what was not looked into, and what is wrong with suppressions."""
    result = report.result
    found: dict[str, Any] = {
        "arguments": [result.path, *result.arguments],
        "executionSuccessful": report.status in (0, 1),
        "exitCode": report.status,
        "toolExecutionNotifications": [
            {"level": "note", "message": {"text": f"Not looked into: {reason}."}} for reason in report.unseen
        ],
        "toolConfigurationNotifications": [_notification(notice, report.directory) for notice in report.notices],
    }
    if result.error is not None and not report.explained:
        text = f"The script ended by {type(result.error).__name__}: {result.error}"
        found["toolExecutionNotifications"].append({"level": "error", "message": {"text": text}})
    return found


def _notification(notice: Notice, directory: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(notice.filename, directory)}
    if notice.line:
        physical["region"] = {"startLine": notice.line}
    return {
        "level": "warning",
        "message": {"text": notice.text},
        "locations": [{"physicalLocation": physical}],
    }


def _result(finding: Finding, report: Report) -> dict[str, Any]:
    """Return a finding (section 3.27)."""
    directory = report.directory
    identity = "\0".join(fingerprint(finding, directory or "."))
    found: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": _RULES.index(finding.code),
        "level": LEVELS[finding.severity],
        "message": {"text": f"{finding.message}.{f' Help: {finding.help}.' if finding.help else ''}"},
        "locations": [_primary(finding, report)],
        "occurrenceCount": finding.occurrences,
        "partialFingerprints": {"gradscopeFinding/v1": sha256(identity.encode()).hexdigest()},
        "properties": {"severity": finding.severity, "node": finding.node},
    }
    if finding.sites:
        found["codeFlows"] = [{"threadFlows": [{"locations": list(_flow(finding.sites, directory))}]}]
    related = [(site.location, site.text) for site in finding.sites[1:]]
    related += [(site.location, site.text) for other in finding.also for site in other.sites if site.role == "saved"]
    if related:
        found["relatedLocations"] = [
            {"id": number, **_location(place, directory, text)} for number, (place, text) in enumerate(related, start=1)
        ]
    if finding.fix is not None:
        found["fixes"] = [_fix(finding.fix, finding.help, directory)]
    return found


def _primary(finding: Finding, report: Report) -> dict[str, Any]:
    """Return where a finding is shown; one that is nowhere, for which GitHub refuses a log, at the script's top."""
    place = finding.primary
    if place is None:
        return _location(Location(report.result.path, 1, "", ""), report.directory, "no place of it is known")
    found = _location(place, report.directory)
    if around := _around(Path(report.directory, place.filename), place.lineno):
        found["physicalLocation"]["contextRegion"] = around
    return found


def _around(path: Path, line: int) -> dict[str, Any] | None:
    """Return a line with some before and after it (section 3.29.5); None where the file has no such line."""
    lines = linecache.getlines(str(path))
    if not 0 < line <= len(lines):
        return None
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    return {"startLine": first, "endLine": last, "snippet": {"text": "".join(lines[first - 1 : last])}}


# The steps of a code flow are in the order in which the program takes them.
_ORDER = ("made", "source", "viewed", "shared", "saved", "freed", "written", "written again", "read")


def _flow(sites: Iterable[Site], directory: str) -> Iterable[dict[str, Any]]:
    """Yield the places in the order in which the program comes to them (section 3.38)."""
    for number, site in enumerate(sorted(sites, key=lambda site: _ORDER.index(site.role)), start=1):
        stack = [{"location": _location(place, directory)} for place in (*site.frames[::-1], site.location)]
        step: dict[str, Any] = {
            "executionOrder": number,
            "importance": "essential",
            "location": _location(site.location, directory, site.text),
        }
        yield {**step, "stack": {"frames": stack}} if site.frames else step


def _location(place: Location, directory: str, text: str = "") -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": place.lineno}
    if place.source:
        region["snippet"] = {"text": place.source}
    found: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(place.filename, directory), "region": region}
    }
    if place.function:
        found["logicalLocations"] = [{"fullyQualifiedName": place.function, "kind": "function"}]
    return {**found, "message": {"text": text}} if text else found


def _artifact(filename: str, directory: str) -> dict[str, str]:
    name, relative = uri(filename, directory)
    return {"uri": name, "uriBaseId": _ROOT} if relative and directory else {"uri": name}


def _fix(fix: Fix, text: str, directory: str) -> dict[str, Any]:
    """Return a change of the source (section 3.55)."""
    (line, column), (end_line, end_column) = fix.start, fix.end
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    replacement = {"deletedRegion": region, "insertedContent": {"text": fix.text}}
    change = {"artifactLocation": _artifact(fix.filename, directory), "replacements": [replacement]}
    return {"description": {"text": text}, "artifactChanges": [change]}
