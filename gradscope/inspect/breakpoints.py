"""Breakpoints: what a person types, and whether a node is meant."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Protocol

from .records import Location

__all__ = ["Breakpoint", "BreakpointError", "BreakpointTable", "Candidate", "parse_spec"]

KINDS = ("op", "node", "param", "mod", "line")

_USAGE = (
    "A breakpoint is an operator (AddmmBackward0, Addmm, op:Mul*), node:12, param:fc1.weight, mod:layers.*, "
    "line:train.py:31, nan or *, each with an optional `if CONDITION`."
)


class BreakpointError(ValueError):
    """A breakpoint that cannot be understood, or is not there."""


class Candidate(Protocol):
    """What a breakpoint asks of a node."""

    @property
    def index(self) -> int:
        """Place in the engine's order."""

    @property
    def name(self) -> str:
        """``'MulBackward0'``."""

    @property
    def operator(self) -> str:
        """``'Mul'``."""

    @property
    def module(self) -> str:
        """Module path, or empty."""

    @property
    def parameter(self) -> str:
        """Parameter path, or empty."""

    @property
    def location(self) -> Location | None:
        """The user's line that made it."""


Matcher = Callable[[Candidate], bool]


@dataclass(slots=True)
class Breakpoint:
    """A place to stop.

    Attributes
    ----------
    id : int
    spec : str
        As typed, without its condition.
    condition : str or None
    temporary : bool
        Goes when it has stopped the program once.
    enabled : bool
        May be set by anyone.
    hits : int
        How often it has stopped the program.
    """

    id: int
    spec: str
    condition: str | None = None
    temporary: bool = False
    enabled: bool = True
    hits: int = 0
    _matcher: Matcher = field(default=lambda candidate: False, repr=False, compare=False)
    _code: CodeType | None = field(default=None, repr=False, compare=False)

    @property
    def on_nan(self) -> bool:
        """Whether it looks for the first NaN instead of for a node."""
        return self.spec == "nan"

    def matches(self, candidate: Candidate) -> bool:
        """Whether `candidate` is a node this breakpoint names; the condition is not asked."""
        return self.enabled and self._matcher(candidate)

    def holds(self, namespace: Mapping[str, Any]) -> bool:
        """Evaluate the condition in `namespace`; True without a condition.

        Raises
        ------
        Exception
            What the condition raised.
        """
        if self._code is None:
            return True
        value = eval(self._code, namespace if isinstance(namespace, dict) else dict(namespace))
        return bool(value.any()) if getattr(value, "shape", ()) else bool(value)

    def __str__(self) -> str:
        return self.spec + (f" if {self.condition}" if self.condition else "")


def parse_spec(spec: str) -> Matcher:
    """Return the test that a breakpoint's spec stands for.

    Parameters
    ----------
    spec : str

    Returns
    -------
    callable
        Takes a :class:`Candidate` (such as a :class:`NodeRecord`).

    Raises
    ------
    BreakpointError
        If the spec cannot be understood.

    Examples
    --------
    >>> from gradscope.inspect import NodeRecord
    >>> node = NodeRecord(3, 7, "MulBackward0", "Mul", 12, "layers.0", "", None, ())
    >>> [parse_spec(s)(node) for s in ("Mul", "op:M*", "node:3", "mod:layers.*", "param:*", "AddBackward0")]
    [True, True, True, True, False, False]
    """
    kind, found, rest = spec.partition(":")
    if found and kind in KINDS:
        rest = rest.strip()
        if not rest:
            raise BreakpointError(f"breakpoint {spec!r} names nothing after {kind}:\n{_USAGE}")
    elif re.fullmatch(r".*[./\\].*:\d+", spec):
        kind, rest = "line", spec
    elif found:
        raise BreakpointError(f"unknown kind of breakpoint {kind!r} in {spec!r}\n{_USAGE}")
    else:
        kind, rest = "op", spec
    return _MATCHERS[kind](spec, rest)


def _glob(pattern: str) -> Callable[[str], bool]:
    found = re.compile(fnmatch.translate(pattern.lower())).match
    return lambda text: found(text.lower()) is not None


def _operator(spec: str, rest: str) -> Matcher:
    if not re.fullmatch(r"[\w.*?\[\]!-]+", rest):
        raise BreakpointError(f"{rest!r} is not the name of an operator\n{_USAGE}")
    same = _glob(rest)
    return lambda candidate: same(candidate.name) or same(candidate.operator)


def _node(spec: str, rest: str) -> Matcher:
    if not rest.isdecimal():
        raise BreakpointError(f"breakpoint {spec!r} needs a node's number, got {rest!r}\n{_USAGE}")
    number = int(rest)
    return lambda candidate: candidate.index == number


def _parameter(spec: str, rest: str) -> Matcher:
    same = _glob(rest)
    return lambda candidate: bool(candidate.parameter) and same(candidate.parameter)


def _module(spec: str, rest: str) -> Matcher:
    same = _glob(rest)
    return lambda candidate: bool(candidate.module) and same(candidate.module)


def _line(spec: str, rest: str) -> Matcher:
    filename, _, number = rest.rpartition(":")
    if not filename or not number.isdecimal():
        raise BreakpointError(f"breakpoint {spec!r} needs a file and a line, such as line:train.py:31\n{_USAGE}")
    lineno, parts = int(number), _parts(filename)

    def same(candidate: Candidate) -> bool:
        location = candidate.location
        if location is None or location.lineno != lineno:
            return False
        return _parts(location.filename)[-len(parts) :] == parts

    return same


def _parts(filename: str) -> list[str]:
    return [p for p in os.path.normpath(filename).split(os.sep) if p not in (".", "")]


_MATCHERS: dict[str, Callable[[str, str], Matcher]] = {
    "op": _operator,
    "node": _node,
    "param": _parameter,
    "mod": _module,
    "line": _line,
}


class BreakpointTable:
    """The breakpoints of a session, by number.

    Examples
    --------
    >>> table = BreakpointTable()
    >>> print(table.add("op:Mul* if norm > 10"))
    op:Mul* if norm > 10
    >>> table.remove(1)
    >>> table.all()
    []
    """

    def __init__(self) -> None:
        self._points: dict[int, Breakpoint] = {}
        self._next = itertools.count(1).__next__

    def __bool__(self) -> bool:
        return any(point.enabled for point in tuple(self._points.values()))

    def all(self) -> list[Breakpoint]:
        """Return the breakpoints in the order of their numbers."""
        return list(self._points.values())

    def add(self, spec: str, *, condition: str | None = None, temporary: bool = False) -> Breakpoint:
        """Add one; see :meth:`Debugger.add_breakpoint`."""
        text, *tail = (part.strip() for part in re.split(r"\sif\s", spec, maxsplit=1))
        if tail:
            condition = tail[0] if condition is None else f"({tail[0]}) and ({condition})"
        if not text:
            raise BreakpointError(f"a breakpoint needs a place to stop at\n{_USAGE}")
        matcher: Matcher = (lambda candidate: False) if text == "nan" else parse_spec(text)
        if text == "nan" and condition:
            raise BreakpointError("`nan` takes no condition: it stops where a NaN first appears")
        point = Breakpoint(self._next(), text, condition or None, temporary)
        point._matcher = matcher
        point._code = _compile(condition) if condition else None
        self._points[point.id] = point
        return point

    def remove(self, id: int) -> None:
        """Remove one by its number."""
        if self._points.pop(id, None) is None:
            known = ", ".join(map(str, self._points)) or "none"
            raise BreakpointError(f"there is no breakpoint {id} (there are: {known})")

    def hit(self, point: Breakpoint) -> None:
        """Count a stop; a temporary breakpoint goes."""
        point.hits += 1
        if point.temporary:
            self._points.pop(point.id, None)


def _compile(condition: str) -> CodeType:
    try:
        return compile(condition.strip(), "<condition>", "eval")
    except (SyntaxError, ValueError) as error:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BreakpointError(
            f"the condition {condition!r} is not a Python expression: {text}\n"
            "It knows grad, grads, saved, norm, node, index, isnan(), isinf() and your program's variables."
        ) from None
