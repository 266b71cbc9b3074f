"""The report as one JSON object, of a stable schema that ``docs/check.md`` describes.

Fields may be added; none changes its meaning while ``schema`` stays the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...inspect.output.terminal_text import json_text
from ..check_report import Report
from ..findings.finding_records import Finding, Fix, Site
from .report_format_registry import report_format

if TYPE_CHECKING:
    from ..watching.wrong_gradients import WrongGradient

__all__ = ["as_json"]

SCHEMA = 1


@report_format("json", alone=True, place=3)
def as_json(report: Report) -> str:
    """Return the report as JSON."""
    result = report.result
    error = result.error
    facts = {
        "schema": SCHEMA,
        "script": result.path,
        "arguments": list(result.arguments),
        "exit_status": report.status,
        "frameworks": list(report.frameworks),
        "backward_passes": report.backwards,
        "inplace_writes": report.writes,
        "suppressed": report.suppressed,
        "known": report.known,
        "unseen": list(report.unseen),
        "warnings": [{"filename": n.filename, "line": n.line or None, "text": n.text} for n in report.notices],
        "ended_by": None if error is None else {"type": type(error).__name__, "message": str(error)},
        "files": report.files,
        "findings": [_finding(finding) for finding in report.findings],
        "gradients": [_gradient(wrong) for wrong in report.gradients],
    }
    return json_text(facts, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    tensor = finding.tensor
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "occurrences": finding.occurrences,
        "help": finding.help,
        "fix": None if finding.fix is None else _fix(finding.fix),
        "sites": [_site(site) for site in finding.sites],
        "tensor": None
        if tensor is None
        else {
            "name": tensor.name or None,
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "producer": tensor.producer or None,
            "saved_as": tensor.saved_as or None,
            "is_parameter": tensor.parameter,
        },
        "node": finding.node or None,
        "spared": finding.spared,
        "saved_version": finding.saved_version,
        "current_version": finding.current_version,
        "also": [_finding(other) for other in finding.also],
    }


def _gradient(wrong: WrongGradient) -> dict[str, Any]:
    read = wrong.read
    return {
        "name": wrong.name or None,
        "shape": list(wrong.shape),
        "dtype": wrong.dtype,
        "difference": wrong.difference if math.isfinite(wrong.difference) else None,
        "filename": None if read is None else read.filename,
        "line": None if read is None else read.lineno,
    }


def _site(site: Site) -> dict[str, Any]:
    location = site.location
    return {
        "role": site.role,
        "filename": location.filename,
        "line": location.lineno,
        "function": location.function,
        "source": location.source,
        "text": site.text,
        "frames": [{"filename": f.filename, "line": f.lineno, "function": f.function} for f in site.frames],
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {"filename": fix.filename, "start": list(fix.start), "end": list(fix.end), "text": fix.text}
