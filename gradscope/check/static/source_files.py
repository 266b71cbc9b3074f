"""The files that ``gradscope check --static`` reads, and what the rules find in them."""

from __future__ import annotations

import os
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...inspect.debuggee.script_targets import NOTEBOOK
from ...inspect.records.object_search import no_collection
from ..findings.finding_codes import CODES
from ..findings.finding_records import Finding
from ..suppression.silences import SilenceReason, Silences
from .source_rule import SourceRule
from .statements import SourceText

__all__ = ["StaticCheck", "check_sources"]

_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


@dataclass(slots=True)
class StaticCheck:
    """What was found in files that were read and not run.

    Attributes
    ----------
    files : list of str
        Those that were read.
    suppressed, known : int
        How many more findings there were that something silences, and that the baseline knows.
    unread : tuple of str
        Which files could not be read, and why.

    See Also
    --------
    check_sources : returns one.

    Examples
    --------
    >>> from gradscope.check import StaticCheck
    >>> StaticCheck(files=["train.py"]).findings
    []
    """

    findings: list[Finding] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    suppressed: int = 0
    known: int = 0
    unread: tuple[str, ...] = ()


def check_sources(paths: Iterable[str], silences: Silences | None = None) -> StaticCheck:
    """Look for what is sure to go wrong in source files, and run none.

    Parameters
    ----------
    paths : iterable of str
        Files, and directories of which all files ``*.py`` are read; not those in hidden folders, and in folders of what
        was built or installed.
    silences : Silences, optional
        Which findings are not told; by default those on lines with a ``# gradscope: ignore[...]`` comment.

    Raises
    ------
    FileNotFoundError
        If there is no such file or directory, or no Python file at any of the paths.

    See Also
    --------
    check_script : runs one, and finds more.

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import check_sources
    >>> path = os.path.join(tempfile.mkdtemp(), "train.py")
    >>> with open(path, "w") as file:
    ...     _ = file.write("loss.backward")
    >>> [(finding.code, finding.help) for finding in check_sources([path]).findings]
    [('GS202', 'write `loss.backward()`')]
    """
    silences = silences or Silences()
    rules = [rule for rule in CODES.values() if isinstance(rule, SourceRule)]
    told, paths = StaticCheck(), list(paths)
    with no_collection():  # a tree of syntax has no circles, and walking it would take two fifths of the time
        for filename in _files_in(paths):
            _look_at(filename, rules, silences, told)
    if paths and not (told.files or told.unread):
        raise FileNotFoundError(f"there is no Python file in {' or '.join(map(repr, paths))}")
    return told


def _files_in(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files at some paths, each once, by their absolute names, those of a directory in order."""
    seen: set[str] = set()
    for path in paths:
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no file or directory {path!r}")
        for filename in _python_files(path) if os.path.isdir(path) else (path,):
            absolute = os.path.abspath(filename)
            if absolute not in seen:
                seen.add(absolute)
                yield absolute


def _python_files(directory: str) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))


def _look_at(filename: str, rules: Iterable[SourceRule], silences: Silences, told: StaticCheck) -> None:
    """Note what is found in a file, or why it cannot be read."""
    try:
        text = _text_of(filename)
        concerned = [rule for rule in rules if rule.concerns(text)]
        source = _parsed(filename, text, look=bool(concerned))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        told.unread = (*told.unread, f"{filename}, which cannot be read: {_words_of(error)}")
        return
    told.files.append(filename)
    silences.note_text(filename, text)
    for finding in (finding for rule in concerned for finding in rule.look(source)) if source is not None else ():
        reason = silences.reason(finding)
        told.suppressed += reason is SilenceReason.SUPPRESSED
        told.known += reason is SilenceReason.KNOWN
        if reason is None:
            told.findings.append(finding)


def _text_of(filename: str) -> str:
    if filename.endswith(NOTEBOOK):  # its JSON would pass for Python in which there is nothing to find
        raise ValueError("it is a notebook; `jupyter nbconvert --to script` makes it a script")
    with tokenize.open(filename) as file:
        return file.read()


def _parsed(filename: str, text: str, *, look: bool) -> SourceText | None:
    """Return a file for rules to look at; None where none will, though it is Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes: the file's own, and no concern of these rules
        if look:
            return SourceText(filename, text)
        # Bytecode takes half the time of a tree of Python's objects, which nobody would look at.
        compile(text, filename, "exec", dont_inherit=True)
    return None


def _words_of(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    return str(error) or type(error).__name__
