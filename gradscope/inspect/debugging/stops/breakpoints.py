"""Breakpoints: where to stop, on what condition, how often to pass by, and what to print instead of stopping."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from .breakpoint_specs import USAGE, BreakpointError, Candidate, Matcher, parse_spec, split_spec

__all__ = [
    "Breakpoint",
    "BreakpointError",
    "BreakpointTable",
    "Candidate",
    "WatchedMemory",
    "parse_spec",
    "saved_tensor",
]

_BAD_VALUES = {"nan": 0, "inf": 1}
_FAILURES = ("violation", "exception")
_CAUGHT = (*_FAILURES, *_BAD_VALUES)
_SAVED = "saved:"


@dataclass(frozen=True, slots=True)
class WatchedMemory:
    """The memory of a saved tensor, which a breakpoint watches.

    Attributes
    ----------
    key : hashable
        What tensors that share the memory share, as long as it lives.
    owner : callable
        Returns None once it has gone, and another may have its key.
    """

    key: Hashable
    owner: Callable[[], Any]


@dataclass(slots=True)
class Breakpoint:
    """A place to stop.

    Attributes
    ----------
    spec : str
        As typed, without its condition.
    temporary : bool
        Goes when it has stopped the program once.
    enabled : bool
        May be set by anyone.
    hits : int
        How often it has stopped the program; of a logpoint, how often it has printed.
    ignore : int
        How many more times to pass by. May be set by anyone.
    log : str or None
        An expression to print instead of stopping.

    See Also
    --------
    gradscope.inspect.Debugger.add_breakpoint : sets one.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug((gs.ones(3, requires_grad=True) * 2).sum())
    >>> session.add_breakpoint("op:Mul", condition="norm > 1")
    Breakpoint(id=1, spec='op:Mul', condition='norm > 1', temporary=False, enabled=True, hits=0, ignore=0, log=None)
    >>> session.cont()
    >>> state = session.wait()
    >>> session.breakpoints[0].hits, session.reason.text
    (1, 'breakpoint 1 (op:Mul if norm > 1)')
    >>> session.abort()
    """

    id: int
    spec: str
    condition: str | None = None
    temporary: bool = False
    enabled: bool = True
    hits: int = 0
    ignore: int = 0
    log: str | None = None
    _matcher: Matcher = field(default=lambda candidate: False, repr=False, compare=False)
    _memory: WatchedMemory | None = field(default=None, repr=False, compare=False)
    _code: CodeType | None = field(default=None, repr=False, compare=False)
    _log_code: CodeType | None = field(default=None, repr=False, compare=False)

    @property
    def on_value(self) -> int | None:
        """Whether it looks for the first NaN (0) or infinity (1) instead of for a node (None)."""
        return _BAD_VALUES.get(self.spec)

    @property
    def on_write(self) -> bool:
        """Whether it looks for a write into a saved tensor instead of for a node."""
        return self.spec.startswith(_SAVED)

    @property
    def asks_for_last(self) -> bool:
        """Whether its condition compares with the iteration before."""
        return _asks_for_last(self._code) or _asks_for_last(self._log_code)

    def matches(self, candidate: Candidate) -> bool:
        """Whether `candidate` is a node this breakpoint names; the condition is not asked."""
        return self.enabled and self._matcher(candidate)

    def watches(self, memory: Hashable) -> bool:
        """Whether a write into `memory` is one into the saved tensor that it names."""
        known = self._memory
        return self.enabled and known is not None and known.key == memory and known.owner() is not None

    def passes_by(self) -> bool:
        """Whether this time is one of those that :attr:`ignore` counts, which is one less then."""
        if not self.ignore:
            return False
        self.ignore -= 1
        return True

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

    @classmethod
    def told(cls, id: int, spec: str, **fields: Any) -> Breakpoint:
        """Return one as a front knows it, which names nodes and does not ask its condition.

        Parameters
        ----------
        **fields
            The other attributes.
        """
        return cls(id, spec, **fields, _matcher=_matcher_of(spec))

    def command(self) -> str:
        """Return the command of line mode that makes it."""
        verb = "log" if self.log is not None else "tbreak" if self.temporary else "break"
        return f"{verb} {self}"

    def __str__(self) -> str:
        tail = f" :: {self.log}" if self.log is not None else ""
        return self.spec + (f" if {self.condition}" if self.condition else "") + tail


class BreakpointTable:
    """The breakpoints of a session, by number.

    Attributes
    ----------
    caught : dict of str to bool
        Whether to stop at a ``'violation'`` (a saved tensor has been modified), where a backward raises an
        ``'exception'``, and where the first ``'nan'`` or ``'inf'`` appears; all are on unless switched off.

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
        self.caught = dict.fromkeys(_CAUGHT, True)
        self._kept: tuple[dict[str, bool], dict[int, Breakpoint]] | None = None
        self._points: dict[int, Breakpoint] = {}
        self._next = itertools.count(1).__next__

    def __bool__(self) -> bool:
        return bool(self._points) and any(point.enabled for point in tuple(self._points.values()))

    @property
    def asks_for_last(self) -> bool:
        """Whether a condition compares with the iteration before."""
        return any(point.asks_for_last for point in tuple(self._points.values()))

    @property
    def catches_values(self) -> bool:
        """Whether the session stops where the first NaN or infinity appears."""
        return self.caught["nan"] or self.caught["inf"]

    def on_values(self) -> Iterator[tuple[str, Breakpoint | None]]:
        """Yield ``'nan'`` and ``'inf'`` where the session is to stop at one, with the breakpoint that wants it."""
        yield from ((kind, None) for kind in _BAD_VALUES if self.caught[kind])
        yield from ((point.spec, point) for point in self.all() if point.enabled and point.spec in _BAD_VALUES)

    def all(self) -> list[Breakpoint]:
        """Return the breakpoints in the order of their numbers."""
        return list(self._points.values())

    @property
    def on_writes(self) -> bool:
        """Whether one looks for writes."""
        return any(point.on_write for point in tuple(self._points.values()))

    def add(
        self,
        spec: str,
        *,
        condition: str | None = None,
        temporary: bool = False,
        log: str | None = None,
        memory: WatchedMemory | None = None,
    ) -> Breakpoint:
        """Add one; see :meth:`Debugger.add_breakpoint`. `memory` is that of the saved tensor which `spec` names."""
        text, typed = split_spec(spec)
        if typed is not None:
            condition = typed if condition is None else f"({typed}) and ({condition})"
        if not text:
            raise BreakpointError(f"a breakpoint needs a place to stop at\n{USAGE}")
        if text in _FAILURES:
            raise BreakpointError(f"{text} is not a place: the session stops at one unless told `catch {text} off`")
        if text in _BAD_VALUES and condition:
            raise BreakpointError(f"`{text}` takes no condition: it stops where one first appears")
        if text.startswith(_SAVED) and (condition or log is not None):
            raise BreakpointError(f"`{text}` takes no condition, and stops instead of logging: at each write into it")
        matcher = _matcher_of(text)
        if text.startswith(_SAVED) and memory is None:
            raise BreakpointError(f"`{text}` is watched in a program that is paused in a backward")
        code = _compile(condition) if condition else None
        point = Breakpoint(
            self._next(),
            text,
            condition or None,
            temporary,
            log=log,
            _matcher=matcher,
            _memory=memory,
            _code=code,
            _log_code=None if log is None else _compile(log),
        )
        self._points[point.id] = point
        return point

    def switch(self, on: bool) -> None:
        """Switch all breakpoints and stops at failures off while no front is connected, and on again."""
        if on and self._kept is not None:
            self.caught, self._points = self._kept
            self._kept = None
        elif not on and self._kept is None:
            self._kept = self.caught, self._points
            self.caught, self._points = dict.fromkeys(_CAUGHT, False), {}

    def find(self, id: int) -> Breakpoint:
        """Return one by its number."""
        if id not in self._points:
            known = ", ".join(map(str, self._points)) or "none"
            raise BreakpointError(f"there is no breakpoint {id} (there are: {known})")
        return self._points[id]

    def remove(self, id: int) -> None:
        """Remove one by its number."""
        del self._points[self.find(id).id]

    def catch(self, kind: str, on: bool) -> None:
        """Switch the stop at failures or bad values: ``'violation'``, ``'exception'``, ``'nan'``, ``'inf'``."""
        if kind not in self.caught:
            raise BreakpointError(f"there is no {kind!r} to catch; there are nan, inf, violation and exception")
        self.caught[kind] = on

    def hit(self, point: Breakpoint) -> None:
        """Count a stop; a temporary breakpoint goes."""
        point.hits += 1
        if point.temporary:
            self._points.pop(point.id, None)


def _asks_for_last(code: CodeType | None) -> bool:
    """Whether an expression needs the iteration before."""
    return code is not None and bool({"last", "changed"} & set(code.co_names))


def _matcher_of(spec: str) -> Matcher:
    return (lambda candidate: False) if spec in _BAD_VALUES or saved_tensor(spec) is not None else parse_spec(spec)


def saved_tensor(spec: str) -> tuple[int, str] | None:
    """Return the node and the name of the saved tensor that a spec names; None if it names nodes.

    Raises
    ------
    BreakpointError
        If it names neither.

    Examples
    --------
    >>> saved_tensor("saved:12.result"), saved_tensor("op:Mul*")
    ((12, 'result'), None)
    """
    if not spec.startswith(_SAVED):
        return None
    found = re.fullmatch(r"saved:(\d+)\.(\S+)", spec)
    if found is None:
        raise BreakpointError(f"breakpoint {spec!r} needs a node and a name, such as saved:12.result")
    return int(found[1]), found[2]


def _compile(condition: str) -> CodeType:
    try:
        return compile(condition.strip(), "<condition>", "eval")
    except (SyntaxError, ValueError) as error:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BreakpointError(
            f"the condition {condition!r} is not a Python expression: {text}\n"
            "It knows grad, grads, saved, norm, node, index, last, changed(), isnan(), isinf() and your program's "
            "variables."
        ) from None
