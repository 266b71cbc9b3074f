"""The report for people: each finding with its places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from ...inspect.records.records import Location
from ...inspect.source.source_paths import start_directory
from ..check_report import Report
from ..findings.finding_codes import CODES
from ..findings.finding_records import Finding, Site
from ..findings.source_fixes import without_comment
from ..suppression.notices import Notice
from .paths import shown
from .report_format_registry import report_format

__all__ = ["as_text", "finding_as_text", "last_lines", "notice_as_text", "statistics", "summary"]

# A longer line of source is cut, so that what it is annotated with stays on the screen.
_SOURCE_WIDTH = 60

# The report names at most so many of the other tensors that one write has spoilt.
_MORE = 3

# The report names at most so many of the gradients that a backward would have had wrong.
_GRADIENTS = 10

# The report names at most so many of the library calls that lead to a place.
_CALLS = 3

# The classes of the errors that end a program over its gradients when no write is to blame.
_ABOUT_GRADIENTS = (RuntimeError, AttributeError, TypeError)


@report_format("text", place=1)
def as_text(report: Report) -> str:
    """Return the report for people."""
    parts = [finding_as_text(finding, directory=report.directory) + "\n" for finding in report.findings]
    parts += [text + "\n" for text in _wrong_gradients(report)]
    return "\n".join([*parts, *last_lines(report)]) + "\n"


def _wrong_gradients(report: Report) -> Iterable[str]:
    """Yield, for each line that called backward(), how wrong the gradients would have been."""
    for read in dict.fromkeys(wrong.read for wrong in report.gradients):
        wrongs = [wrong for wrong in report.gradients if wrong.read == read]
        where = "" if read is None else f" {shown(read.filename, report.directory)}:{read.lineno}"
        lines = [f"With what was written over, gradients of{where or ' a backward'} would differ by (relative norm):"]
        width = max(len(_share(wrong.difference)) for wrong in wrongs)
        for wrong in wrongs[:_GRADIENTS]:
            what = f"`{wrong.name}`" if wrong.name else f"a leaf ({wrong.dtype} {list(wrong.shape)})"
            lines.append(f"  {_share(wrong.difference):>{width}}  {what}")
        if wrongs[_GRADIENTS:]:
            lines.append(f"  {'...':>{width}}  {len(wrongs) - _GRADIENTS} more, by less")
        yield "\n".join(lines)


def _share(difference: float) -> str:
    return f"{difference:.2g}" if difference < 1000 or math.isnan(difference) else f"{difference:.1e}"


def statistics(report: Report) -> str:
    """Return how many findings of each code there are, the most frequent first, and the last lines of a report."""
    counts = Counter(finding.code for finding in report.findings)
    rows = [f"{count:>5}  {code}  {CODES[code].title}" for code, count in counts.most_common()]
    return "\n".join([*rows, *[""] * bool(rows), *last_lines(report)]) + "\n"


def last_lines(report: Report) -> list[str]:
    """Return the lines after the findings: their number, the frameworks, what was not seen, and unused suppressions."""
    parts = [summary(report)]
    findings, error = report.findings, report.result.error
    if findings and report.explained:
        parts.append("The script did not catch the error and ended there.")
    if report.silenced is not None:
        parts.append(f"The script ended by {_silenced(report.silenced, report.directory)}.")
    if findings:
        codes = sorted({finding.code for finding in findings})
        parts.append(f"`gradscope check --explain {codes[0]}` tells more.")
    if isinstance(error, KeyboardInterrupt):
        parts.append("The script was interrupted; this is what was seen until then.")
    if report.frameworks and not findings and report.silenced is None and isinstance(error, _ABOUT_GRADIENTS):
        parts.append("`gradscope doctor` also looks for gradients that are missing, wrong or NaN.")
    parts += [f"Not looked into: {reason}." for reason in report.unseen]
    parts += [f"warning: {notice_as_text(notice, report.directory)}" for notice in report.notices]
    return parts


def summary(report: Report) -> str:
    """Return how much was found, and in how much."""
    if report.files is not None:
        return _static_summary(report)
    counts = f"{_count(report.backwards, 'backward pass', 'backward passes')}, "
    counts += _count(report.writes, "in-place write", "in-place writes")
    besides = _silent(report)
    if report.findings:
        return f"Found {_tally(report.findings)}{besides} in {counts}."
    if not report.frameworks and report.result.exit_code:
        return "Nothing was checked: the script ended before it used gradscope or PyTorch."
    if not report.frameworks:
        return "Nothing was checked: the script uses neither gradscope nor PyTorch."
    if not report.backwards:
        return f"Nothing found{besides}: no backward pass ran."
    return f"Nothing found{besides} in {counts}."


def _static_summary(report: Report) -> str:
    found = f"Found {_tally(report.findings)}" if report.findings else "Nothing found"
    return f"{found}{_silent(report)} in {_count(report.files or 0, 'file', 'files')}, read and not run."


def _silent(report: Report) -> str:
    """Return how many findings there are that are not told."""
    hidden = [f"{report.suppressed} suppressed"] * bool(report.suppressed)
    hidden += [f"{report.known} in the baseline"] * bool(report.known)
    return f" ({', '.join(hidden)})" if hidden else ""


def _silenced(finding: Finding, directory: str) -> str:
    primary = finding.primary
    where = "" if primary is None else f" ({shown(primary.filename, directory)}:{primary.lineno})"
    return f"the error that is {finding.code}{where}, which is not reported"


def notice_as_text(notice: Notice, directory: str) -> str:
    """Return a notice with its place in front."""
    line = f":{notice.line}" if notice.line else ""
    return f"{shown(notice.filename, directory)}{line}: {notice.text}"


def finding_as_text(finding: Finding, *, directory: str | None = None) -> str:
    """Return one finding: what, the places with the primary one first, and the way out.

    Parameters
    ----------
    directory : str, optional
        Files below it are named relative to it; the one in which the program was started by default.

    See Also
    --------
    format_named

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import Sanitizer, finding_as_text
    >>> x = gs.ones(3, requires_grad=True)
    >>> with Sanitizer() as sanitizer:
    ...     y = x.exp()
    ...     _ = y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError:
    ...         pass
    >>> print(finding_as_text(sanitizer.findings[0]).splitlines()[0].partition(":")[0])
    GS101 error
    """
    times = f" ({finding.occurrences} times)" if finding.occurrences > 1 else ""
    lines = [f"{finding.code} {finding.severity}: {finding.message}{times}"]
    lines += _places(finding.sites, directory or start_directory())
    if finding.saved_version is not None:
        lines.append(f"  {_versions(finding)}")
    lines += [f"  also: {_in_short(other, directory or start_directory())}" for other in finding.also[:_MORE]]
    if finding.also[_MORE:]:
        lines.append(f"  also: {len(finding.also) - _MORE} more")
    if finding.help:
        lines.append(f"  help: {finding.help}")
    return "\n".join(lines)


def _places(sites: Sequence[Site], directory: str) -> Iterable[str]:
    places = [f"{shown(site.location.filename, directory)}:{site.location.lineno}" for site in sites]
    rows = [(place, _cut(site.location.source), site.text) for place, site in zip(places, sites, strict=True)]
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for number, (place, source, text) in enumerate(rows):
        mark = "<-" if number == 0 else "  "
        yield f"  {place:<{widths[0]}}  {source:<{widths[1]}}  {mark} {text}".rstrip()
        yield from _calls(sites[number].frames, directory)


def _calls(frames: Sequence[Location], directory: str) -> Iterable[str]:
    """Yield the calls of libraries below a line, the last of them the one that did it."""
    if frames[:-_CALLS]:
        yield f"    ... {_count(len(frames) - _CALLS, 'call', 'calls')}"
    for frame in frames[-_CALLS:]:
        yield f"    {shown(frame.filename, directory)}:{frame.lineno}  {_cut(frame.source)}".rstrip()


def _in_short(finding: Finding, directory: str) -> str:
    """Return what else a write has spoilt."""
    places = [site for site in finding.sites if site.role in ("saved", "read")][:1]
    where = "".join(f", {shown(s.location.filename, directory)}:{s.location.lineno}" for s in places)
    return f"{finding.tensor or 'a tensor'}, which {finding.node or 'another node'} needs{where}"


def _versions(finding: Finding) -> str:
    then, now = finding.saved_version, finding.current_version
    if then == now:
        return f"version {then} was saved and is there still: nothing counted the write"
    text = f"version {then} was saved, version {now} is there now"
    # The value is right and only the rule is broken: the reader should not look for a wrong number.
    return f"{text}: other parts of the memory were written, which count for all of it" if finding.spared else text


def _cut(source: str) -> str:
    source = without_comment(source)
    return source if len(source) <= _SOURCE_WIDTH else source[: _SOURCE_WIDTH - 3] + "..."


def _tally(findings: Sequence[Finding]) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    wrong = len(findings) - errors
    kinds = [
        _count(errors, "error", "errors") if errors or not wrong else "",
        _count(wrong, "silently wrong gradient", "silently wrong gradients") if wrong else "",
    ]
    return " and ".join(filter(None, kinds))


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
