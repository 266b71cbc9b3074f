"""What a person types to name nodes, as in `break mod:layers.*`, and whether it means a node."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from ...records.records import Location

__all__ = ["BreakpointError", "Candidate", "Matcher", "is_expression", "parse_spec", "split_spec"]

KINDS = ("op", "node", "param", "mod", "line", "iter", "backward")

USAGE = (
    "A breakpoint is an operator (AddmmBackward0, Addmm, op:Mul*), node:12, param:fc1.weight, mod:layers.*, "
    "line:train.py:31, iter:3, backward:3, nan, inf or *, each with an optional `if CONDITION`, or a condition alone; "
    "saved:12.result is one for writes into what node 12 has saved."
)


class BreakpointError(ValueError):
    """A breakpoint that cannot be understood, or is not there.

    See Also
    --------
    Debugger

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).sum())
    >>> try:
    ...     session.add_breakpoint("nowhere:Mul")
    ... except gi.BreakpointError:
    ...     print("not understood")
    not understood
    >>> session.abort()
    """


class Candidate(Protocol):
    """A node, as a breakpoint asks about it."""

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


def parse_spec(spec: str) -> Matcher:
    """Return the test for nodes that a breakpoint's spec describes.

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
            raise BreakpointError(f"breakpoint {spec!r} names nothing after {kind}:\n{USAGE}")
    elif re.fullmatch(r"(.*[./\\].*|In\[\d+\]):\d+", spec):
        kind, rest = "line", spec
    elif found:
        raise BreakpointError(f"unknown kind of breakpoint {kind!r} in {spec!r}\n{USAGE}")
    else:
        kind, rest = "op", spec
    return _MATCHERS[kind](spec, rest)


def _glob(pattern: str) -> Callable[[str], bool]:
    found = re.compile(fnmatch.translate(pattern.lower())).match
    # A graph of 100,000 nodes has few different names, so that most answers are in the cache.
    return lru_cache(maxsize=1024)(lambda text: found(text.lower()) is not None)


def _operator(spec: str, rest: str) -> Matcher:
    if not re.fullmatch(r"[\w.*?\[\]!-]+", rest):
        raise BreakpointError(f"{rest!r} is not the name of an operator\n{USAGE}")
    same = _glob(rest)
    return lambda candidate: same(candidate.name) or same(candidate.operator)


def _node(spec: str, rest: str) -> Matcher:
    if not rest.isdecimal():
        raise BreakpointError(f"breakpoint {spec!r} needs a node's number, got {rest!r}\n{USAGE}")
    number = int(rest)
    return lambda candidate: candidate.index == number


def _parameter(spec: str, rest: str) -> Matcher:
    same = _glob(rest)
    return lambda candidate: bool(candidate.parameter) and same(candidate.parameter)


def _iteration(spec: str, rest: str) -> Matcher:
    number = _count(spec, rest)
    return lambda candidate: candidate.index == 0 and getattr(candidate, "iteration", 0) == number


def _backward(spec: str, rest: str) -> Matcher:
    number = _count(spec, rest)
    return lambda candidate: candidate.index == 0 and getattr(candidate, "task", 0) == number


def _count(spec: str, rest: str) -> int:
    if not rest.isdecimal() or not int(rest):
        raise BreakpointError(f"breakpoint {spec!r} needs a number from 1, got {rest!r}\n{USAGE}")
    return int(rest)


def _module(spec: str, rest: str) -> Matcher:
    inside, itself = _glob(rest), _glob(rest.removesuffix(".*"))
    # A node that a block computes itself, such as the sum with its input, is a part of it as its layers are.
    return lambda candidate: bool(candidate.module) and (inside(candidate.module) or itself(candidate.module))


def _line(spec: str, rest: str) -> Matcher:
    filename, _, number = rest.rpartition(":")
    if not filename or not number.isdecimal():
        raise BreakpointError(f"breakpoint {spec!r} needs a file and a line, such as line:train.py:31\n{USAGE}")
    lineno, parts = int(number), [_name(part) for part in _parts(filename)]

    @lru_cache(maxsize=64)
    def same_file(path: str) -> bool:
        names = _parts(path)[-len(parts) :]
        return len(names) == len(parts) and all(matches(name) for matches, name in zip(parts, names))

    def same(candidate: Candidate) -> bool:
        location = candidate.location
        return location is not None and location.lineno == lineno and same_file(location.filename)

    return same


def _name(part: str) -> Callable[[str], object]:
    """Return what tells whether a name is meant: In[3], the name of a notebook cell, is also a pattern of others."""
    matches = re.compile(fnmatch.translate(part)).match
    return lambda name: name == part or matches(name)


def _parts(filename: str) -> list[str]:
    return [p for p in os.path.normpath(filename).split(os.sep) if p not in (".", "")]


_MATCHERS: dict[str, Callable[[str, str], Matcher]] = {
    "op": _operator,
    "node": _node,
    "param": _parameter,
    "mod": _module,
    "line": _line,
    "iter": _iteration,
    "backward": _backward,
}


def split_spec(text: str) -> tuple[str, str | None]:
    """Return the spec and the condition of what a person typed; ``*`` and the text itself where it is a condition.

    Examples
    --------
    >>> split_spec("mod:layers.3.* and norm > 10")
    ('mod:layers.3.*', 'norm > 10')
    >>> split_spec("param:fc1.weight if isnan(grad) and index > 3")
    ('param:fc1.weight', 'isnan(grad) and index > 3')
    >>> split_spec("norm > 10")
    ('*', 'norm > 10')
    """
    spec, *tail = (part.strip() for part in re.split(r"\s(?:if|and)\s", text, maxsplit=1))
    if is_expression(spec):
        return "*", text.strip()
    return spec, tail[0] if tail else None


def is_expression(text: str) -> bool:
    """Whether a spec without a kind can only be a condition, such as ``isnan(grad)``."""
    if text.partition(":")[0] in KINDS or not re.search(r"[<>=()]", text):
        return False
    try:
        compile(text, "<condition>", "eval")
    except (SyntaxError, ValueError):
        return False
    return True
