"""Prints findings: as text for people, as JSON for machines.

The JSON has a stable schema, described in ``docs/check.md``: fields may be added, none changes its meaning while
``schema`` stays the same.
"""

from __future__ import annotations

import os
from typing import Any

from ..inspect.output.terminal_text import json_text
from ..inspect.records.records import Location
from ..inspect.source.call_sites import start_directory
from .findings import Finding, Site
from .sanitizer import Sanitizer
from .script_runner import ScriptResult
from .source_fixes import without_comment

__all__ = ["as_json", "as_text", "finding_as_text"]

SCHEMA = 1

# A longer line of source is cut, so that what it is annotated with stays on the screen.
_SOURCE_WIDTH = 60

# What trouble with gradients ends a program with, where no write is to blame.
_ABOUT_GRADIENTS = (RuntimeError, AttributeError, TypeError)


def as_text(sanitizer: Sanitizer, result: ScriptResult) -> str:
    """Return the report for people."""
    findings = sanitizer.findings
    parts = [finding_as_text(finding, directory=result.directory) + "\n" for finding in findings]
    counts = f"{_count(sanitizer.backwards, 'backward pass', 'backward passes')}, "
    counts += _count(sanitizer.writes, "in-place write", "in-place writes")
    hidden = f", {sanitizer.suppressed} suppressed" if sanitizer.suppressed else ""
    if findings:
        codes = " ".join(sorted({finding.code for finding in findings}))
        parts.append(f"Found {_tally(findings)}{hidden} in {counts}.")
        if sanitizer.explains(result.error):
            parts.append("The script did not catch the error and ended there.")
        parts.append(f"`gradscope check --explain {codes.split()[0]}` tells more.")
    elif not sanitizer.frameworks and result.exit_code:
        parts.append("Nothing was checked: the script ended before it used gradscope or PyTorch.")
    elif not sanitizer.frameworks:
        parts.append("Nothing was checked: the script uses neither gradscope nor PyTorch.")
    elif not sanitizer.backwards:
        parts.append(f"Nothing found{hidden}: no backward pass ran.")
    else:
        parts.append(f"Nothing found{hidden} in {counts}.")
    if isinstance(result.error, KeyboardInterrupt):
        parts.append("The script was interrupted; this is what was seen until then.")
    if sanitizer.frameworks and not findings and isinstance(result.error, _ABOUT_GRADIENTS):
        parts.append("`gradscope doctor` also looks for gradients that are missing, wrong or NaN.")
    parts += [f"Not looked into: {reason}." for reason in _unseen(sanitizer, result)]
    return "\n".join(parts) + "\n"


def finding_as_text(finding: Finding, *, directory: str | None = None) -> str:
    """Return one finding: what, the places with the primary one first, and the way out.

    Parameters
    ----------
    directory : str, optional
        Files below it are named relative to it; the one in which the program was started by default.
    """
    times = f" ({finding.occurrences} times)" if finding.occurrences > 1 else ""
    lines = [f"{finding.code} {finding.severity}: {finding.message}{times}"]
    start = directory or start_directory()
    shown = [(_place(site.location, start), _source(site), site.text) for site in finding.sites]
    widths = [max((len(row[i]) for row in shown), default=0) for i in (0, 1)]
    for number, (place, source, text) in enumerate(shown):
        mark = "<-" if number == 0 else "  "
        lines.append(f"  {place:<{widths[0]}}  {source:<{widths[1]}}  {mark} {text}".rstrip())
    if finding.saved_version is not None:
        lines.append(f"  {_versions(finding)}")
    if finding.help:
        lines.append(f"  help: {finding.help}")
    return "\n".join(lines)


def _versions(finding: Finding) -> str:
    then, now = finding.saved_version, finding.current_version
    if then == now:
        return f"version {then} was saved and is there still: nothing counted the write"
    text = f"version {then} was saved, version {now} is there now"
    # What fails is right, but for the rule: the reader should not look for a wrong number.
    return f"{text}: other parts of the memory were written, which count for all of it" if finding.spared else text


def as_json(sanitizer: Sanitizer, result: ScriptResult, status: int) -> str:
    """Return the report for machines: one JSON object.

    Parameters
    ----------
    status : int
        The exit status of the command.
    """
    error = result.error
    report = {
        "schema": SCHEMA,
        "script": result.path,
        "arguments": list(result.arguments),
        "exit_status": status,
        "frameworks": list(sanitizer.frameworks),
        "backward_passes": sanitizer.backwards,
        "inplace_writes": sanitizer.writes,
        "suppressed": sanitizer.suppressed,
        "unseen": _unseen(sanitizer, result),
        "ended_by": None if error is None else {"type": type(error).__name__, "message": str(error)},
        "findings": [_finding_as_dict(finding) for finding in sanitizer.findings],
    }
    return json_text(report, indent=2) + "\n"


def _unseen(sanitizer: Sanitizer, result: ScriptResult) -> list[str]:
    return [*sanitizer.unseen, *filter(None, [result.unseen])]


def _finding_as_dict(finding: Finding) -> dict[str, Any]:
    tensor = finding.tensor
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "occurrences": finding.occurrences,
        "help": finding.help,
        "sites": [
            {
                "role": site.role,
                "filename": site.location.filename,
                "line": site.location.lineno,
                "function": site.location.function,
                "source": site.location.source,
                "text": site.text,
            }
            for site in finding.sites
        ],
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
    }


def _place(location: Location, directory: str) -> str:
    """Return ``file:line``, relative to the directory when it is below."""
    filename = location.filename
    relative = os.path.relpath(filename, directory) if os.path.isabs(filename) else filename
    return f"{filename if relative.startswith(os.pardir) else relative}:{location.lineno}"


def _source(site: Site) -> str:
    source = without_comment(site.location.source)
    return source if len(source) <= _SOURCE_WIDTH else source[: _SOURCE_WIDTH - 3] + "..."


def _tally(findings: list[Finding]) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    wrong = len(findings) - errors
    kinds = [
        _count(errors, "error", "errors") if errors or not wrong else "",
        _count(wrong, "silently wrong gradient", "silently wrong gradients") if wrong else "",
    ]
    return " and ".join(filter(None, kinds))


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
