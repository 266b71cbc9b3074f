"""The outcome of a run under the sanitizer, from which every format of a report is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .findings.finding_records import Finding
from .script_result import ScriptResult
from .static.source_files import StaticCheck
from .suppression.notices import Notice

if TYPE_CHECKING:
    from .sanitizer import Sanitizer
    from .watching.wrong_gradients import WrongGradient

__all__ = ["Report", "make_report", "make_static_report"]


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a run, and how it ended.

    Attributes
    ----------
    findings : tuple of Finding
        Those that are neither suppressed nor known.
    result : ScriptResult
        How the script ended.
    status : int
        The exit status of the command.
    frameworks : tuple of str
        As of :class:`~gradscope.check.Sanitizer`.
    backwards, writes : int
        How many were watched.
    suppressed : int
        How many findings a comment, or the suppressions file, has silenced.
    known : int
        How many more the baseline knows.
    unseen : tuple of str
        Why parts of the program could not be looked into.
    notices : tuple of Notice
        What is wrong with comments, the suppressions file and the baseline themselves.
    explained : bool
        Whether the error that ended the script is one of the findings.
    silenced : Finding or None
        The finding that the error is, where that has been silenced.
    gradients : tuple of WrongGradient
        How wrong the gradients of leaves would have been, where the program went on after violations.
    files : int or None
        How many files were read; None where a program has run.

    See Also
    --------
    make_report : makes it.
    formats : write it.

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import check_script, make_report
    >>> path = os.path.join(tempfile.mkdtemp(), "fine.py")
    >>> with open(path, "w") as file:
    ...     _ = file.write("import gradscope as gs; gs.ones(3, requires_grad=True).sum().backward()")
    >>> report = make_report(*check_script(path))
    >>> report.backwards, report.findings, report.status
    (1, (), 0)
    """

    findings: tuple[Finding, ...]
    result: ScriptResult
    status: int
    frameworks: tuple[str, ...]
    backwards: int
    writes: int
    suppressed: int
    known: int
    unseen: tuple[str, ...]
    notices: tuple[Notice, ...] = ()
    explained: bool = False
    silenced: Finding | None = None
    gradients: tuple[WrongGradient, ...] = ()
    files: int | None = None

    @property
    def directory(self) -> str:
        """The directory in which the program was started."""
        return self.result.directory


def make_report(
    sanitizer: Sanitizer, result: ScriptResult, status: int = 0, notices: tuple[Notice, ...] = ()
) -> Report:
    """Return the report on a run.

    Parameters
    ----------
    status : int
        The exit status of the command.
    notices : tuple of Notice
        As of :class:`Report`.

    See Also
    --------
    format_named, make_static_report

    Examples
    --------
    >>> from gradscope.check import Sanitizer, ScriptResult
    >>> report = make_report(Sanitizer(), ScriptResult("train.py", (), None, 0))
    >>> report.findings, report.unseen
    ((), ())
    """
    return Report(
        findings=tuple(sanitizer.findings),
        result=result,
        status=status,
        frameworks=sanitizer.frameworks,
        backwards=sanitizer.backwards,
        writes=sanitizer.writes,
        suppressed=sanitizer.suppressed,
        known=sanitizer.known,
        unseen=(*sanitizer.unseen, *filter(None, [result.unseen])),
        notices=notices,
        explained=sanitizer.explains(result.error),
        silenced=sanitizer.silenced(result.error),
        gradients=tuple(sanitizer.gradients),
    )


def make_static_report(
    told: StaticCheck, paths: Sequence[str], directory: str, status: int = 0, notices: tuple[Notice, ...] = ()
) -> Report:
    """Return the report on files that were read and not run.

    Parameters
    ----------
    paths : sequence of str
        As they were named, relative to `directory`.
    status, notices
        As for :func:`make_report`.

    See Also
    --------
    make_report

    Examples
    --------
    >>> make_static_report(StaticCheck(files=["train.py"]), ["train.py"], "/home/me").files
    1
    """
    return Report(
        findings=tuple(told.findings),
        result=ScriptResult(paths[0], tuple(paths[1:]), None, 0, directory),
        status=status,
        frameworks=(),
        backwards=0,
        writes=0,
        suppressed=told.suppressed,
        known=told.known,
        unseen=told.unread,
        notices=notices,
        files=len(told.files),
    )
