"""The breakpoints of an editor, and those of the program that they stand for.

An editor replaces all breakpoints of a file, or of a kind, whenever one of them changes: those that stay the same keep
their hit counts, and the memory that they watch. The editor knows them by numbers of its own, so that they outlive the
process.
"""

from __future__ import annotations

import glob
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..wire.client import RemoteDebugger

__all__ = ["StopPoints", "data_id", "line_spec", "log_expression"]

TROUBLE = {
    "nan": "the first NaN among the gradients",
    "inf": "the first infinity among the gradients",
    "violation": "a saved tensor that has been written",
    "exception": "an exception in a backward",
}
"""The kinds of trouble at which a session stops."""

_ON_BY_DEFAULT = ("violation", "exception")


@dataclass(slots=True)
class _Point:
    number: int
    spec: str
    options: dict[str, Any]
    in_program: int | None = None
    problem: str = ""

    def told(self) -> dict[str, Any]:
        found = {"id": self.number, "verified": self.in_program is not None}
        if "line" in self.options:
            found["line"] = self.options["line"]
        return {**found, "message": self.problem} if self.problem else found


class StopPoints:
    """What an editor has set, by group: a file, the functions, the data.

    Attributes
    ----------
    ignored : bool
        Whether nothing stops the program: the editor runs it without debugging.
    """

    def __init__(self) -> None:
        self.ignored = False
        self._groups: dict[str, list[_Point]] = {}
        self._catching = {kind: kind in _ON_BY_DEFAULT for kind in TROUBLE}
        self._next = itertools.count(1).__next__

    def replace(
        self, debugger: RemoteDebugger, group: str, wanted: list[tuple[str, dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Set the breakpoints of a group, and remove those that are not among them; return what the editor is told.

        Parameters
        ----------
        wanted : list of (str, dict)
            A spec of the debugger, and the editor's ``condition``, ``hitCondition`` and ``logMessage``.
        """
        before, now = self._groups.get(group, []), []
        for spec, options in wanted:
            same = next((p for p in before if (p.spec, p.options) == (spec, options) and not p.problem), None)
            if same is not None:
                before.remove(same)
            now.append(same or self._added(debugger, _Point(self._next(), spec, options)))
        for point in before:
            if point.in_program is not None:
                debugger.remove_breakpoint(point.in_program)
        self._groups[group] = now
        return [point.told() for point in now]

    def catch(self, debugger: RemoteDebugger, kinds: list[str]) -> None:
        """Stop at these kinds of trouble, and at no others.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        unknown = set(kinds) - set(TROUBLE)
        if unknown:
            raise ValueError(f"an exception filter is one of {', '.join(TROUBLE)}, got {', '.join(sorted(unknown))}")
        self._catching = {kind: kind in kinds for kind in TROUBLE}
        self._catch(debugger)

    def set_again(self, debugger: RemoteDebugger) -> list[dict[str, Any]]:
        """Set everything in a new process; return what the editor is told of breakpoints that could not be."""
        lost: list[dict[str, Any]] = []
        for point in self._all():
            point.in_program = None
            if not point.problem:
                self._added(debugger, point)
                if point.problem:
                    lost.append(point.told())
        self._catch(debugger)
        return lost

    def number(self, in_program: int | None) -> int | None:
        """Return the editor's number of a breakpoint of the program; None for one that the editor has not set."""
        return next((p.number for p in self._all() if in_program is not None and p.in_program == in_program), None)

    def _catch(self, debugger: RemoteDebugger) -> None:
        for kind, on in self._catching.items():
            debugger.catch(kind, on and not self.ignored)
        # An editor goes back from where it has stopped.
        if (self._catching.get("nan") or self._catching.get("inf")) and not self.ignored:
            debugger.record_always = True

    def _all(self) -> Iterator[_Point]:
        return itertools.chain.from_iterable(self._groups.values())

    def _added(self, debugger: RemoteDebugger, point: _Point) -> _Point:
        try:
            if self.ignored:
                raise ValueError("the program runs without debugging")
            passed = _passed_before(point.options.get("hitCondition"))
            log, condition = point.options.get("logMessage"), point.options.get("condition")
            added = debugger.add_breakpoint(
                _resolved(debugger, point.spec),
                condition=condition or None,
                log=log_expression(log) if log else None,
            )
            if passed:
                debugger.ignore_breakpoint(added.id, passed)
            point.in_program = added.id
        except (ValueError, TypeError, RuntimeError) as error:
            point.problem = str(error)
        return point


def data_id(debugger: RemoteDebugger, index: int, name: str) -> str:
    """Return what an editor knows a saved tensor by: which backward it is of, and a spec of the debugger."""
    return f"{debugger.task_index} saved:{index}.{name}"


def _resolved(debugger: RemoteDebugger, spec: str) -> str:
    """Return a spec of the debugger for one that may be a :func:`data_id`."""
    backward, _, saved = spec.partition(" ")
    if not saved.startswith("saved:"):
        return spec
    if backward != str(debugger.task_index):
        raise ValueError(f"the saved tensors of backward {backward} can be watched while it is shown")
    return saved


def line_spec(path: str, line: int) -> str:
    """Return the spec for the nodes that a line has made.

    Examples
    --------
    >>> line_spec("/home/me/black if white/train[1].py", 7)
    'line:/home/me/black?if?white/train[[]1].py:7'
    """
    return f"line:{re.sub(r'[ ]', '?', glob.escape(path))}:{line}"


def _passed_before(condition: str | None) -> int:
    """Return how many times a breakpoint is passed by before it stops at the hit that the editor names."""
    if not condition:
        return 0
    if not condition.strip().isdecimal() or not int(condition):
        raise ValueError(f"a hit count is a number from 1, got {condition!r}")
    return int(condition) - 1


def log_expression(message: str) -> str:
    """Return the expression for a log message, whose parts in braces are expressions.

    Examples
    --------
    >>> log_expression("norm {norm} of {saved['self']}")
    "'norm ' + str(norm) + ' of ' + str(saved['self'])"
    >>> log_expression("here")
    "'here'"
    """
    parts, text, depth, start = [], "", 0, 0
    for place, sign in enumerate(message):
        if sign == "{":
            depth += 1
            start = place + 1 if depth == 1 else start
        elif sign == "}" and depth:
            depth -= 1
            if not depth:
                parts += [repr(text)] if text else []
                parts.append(f"str({message[start:place]})")
                text = ""
        elif not depth:
            text += sign
    if depth:
        raise ValueError(f"a brace is not closed in the log message {message!r}")
    return " + ".join([*parts, repr(text)] if text or not parts else parts)
