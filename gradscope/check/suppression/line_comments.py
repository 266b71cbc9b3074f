"""Comments that silence findings on their statement: ``# gradscope: ignore[GS101, GS106]``."""

from __future__ import annotations

import ast
import io
import linecache
import re
import tokenize
from collections.abc import Container, Iterator
from dataclasses import dataclass

from ...inspect.source.source_syntax import syntax_tree
from ..findings.finding_codes import CODES, all_codes, find_code
from .notices import Notice, meant

__all__ = ["LineComments"]

_IGNORE = re.compile(r"#\s*gradscope:\s*ignore\b(?:\[([^\]]*)\])?")
_IS_THERE = re.compile(r"gradscope:\s*ignore")


@dataclass(frozen=True, slots=True)
class _Comment:
    """A comment, the lines of the statement that it silences, and the codes; None where it names none."""

    line: int
    first: int
    last: int
    codes: tuple[str, ...] | None


class LineComments:
    """The comments of all files that findings are in, and which of them have silenced one.

    A comment counts on any line of its statement; of ``with``, ``for``, ``def`` and their kin on the lines above the
    body.

    Examples
    --------
    >>> LineComments().silence("<a file that is no more>", 1, "GS101")
    False
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[_Comment, ...]] = {}
        self._used: set[tuple[str, int, str]] = set()

    def silence(self, filename: str, line: int, code: str) -> bool:
        """Whether a comment on the statement at a line names a code; that comment is used then."""
        for comment in self._comments(filename):
            if comment.first <= line <= comment.last and code in (comment.codes or ()):
                self._used.add((filename, comment.line, code))
                return True
        return False

    def notices(self, filename: str, *, read: bool = False, looked_for: Container[str] = CODES) -> Iterator[Notice]:
        """Yield what is wrong with the comments of a file, and which codes have silenced nothing.

        Parameters
        ----------
        read : bool
            Whether the file was read rather than run: which codes could have been found.
        looked_for : container of str
            The codes that were selected.
        """
        for comment in self._comments(filename):
            if comment.codes is None:
                text = "`# gradscope: ignore` names no code, and silences nothing: write ignore[CODE]"
                yield Notice(text, filename, comment.line)
            for code in comment.codes or ():
                if find_code(code) is None:
                    known = all_codes() if code.startswith("D") else CODES
                    yield Notice(f"ignore[{code}]: no such code; {meant(code, known)}", filename, comment.line)
                elif code in looked_for and _found_by(code, read) and (filename, comment.line, code) not in self._used:
                    yield Notice(f"ignore[{code}] has silenced nothing in this run", filename, comment.line)

    def note_text(self, filename: str, text: str) -> None:
        """Note what stands in a file that has been read: it is not read again where no comment silences anything."""
        if not _IS_THERE.search(text):
            self._files[filename] = ()

    def _comments(self, filename: str) -> tuple[_Comment, ...]:
        found = self._files.get(filename)
        if found is None:
            text = "".join(linecache.getlines(filename))
            found = self._files[filename] = _comments_in(filename, text) if _IS_THERE.search(text) else ()
        return found


def _found_by(code: str, read: bool) -> bool:
    """Whether a kind of finding is looked for alone in programs that run, or in files that are read."""
    return code in CODES and bool(CODES[code].needs) != read


def _comments_in(filename: str, text: str) -> tuple[_Comment, ...]:
    found = []
    spans = _spans(filename)
    for line, comment in _comment_tokens(text):
        match = _IGNORE.search(comment)
        if match is not None:
            inside = [span for span in spans if span[0] <= line <= span[1]]
            first, last = min(inside, key=lambda span: span[1] - span[0], default=(line, line))
            words = None if match[1] is None else tuple(filter(None, re.split(r"[\s,]+", match[1].upper())))
            found.append(_Comment(line, first, last, words or None))
    return tuple(found)


def _comment_tokens(text: str) -> list[tuple[int, str]]:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append((token.start[0], token.string))
    except (tokenize.TokenError, SyntaxError):  # the comments before the error have been read
        pass
    return found


def _spans(filename: str) -> list[tuple[int, int]]:
    """Return the first and last line of each statement, of a compound one without its body."""
    tree = syntax_tree(filename)
    found = []
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found.append((node.lineno, max(node.lineno, last)))
    return found
