"""Slices of a program: the statements through which a value goes, as the source tells.

A rough reading, without running anything: variables by name, statements in the order in which they are written, all
branches taken, and a call passes on what it is given. What it calls a way may be none.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...source.source_syntax import FUNCTIONS
from .detaching_calls import DetachingCall, detaching_call, dotted, is_quiet
from .no_grad_reasons import Reason

__all__ = ["ProgramSlice", "DetachingLine", "PassedCall"]

# The results of these say something about a tensor and carry nothing of its value.
_FACTS = {"device", "dtype", "grad", "grad_fn", "is_cuda", "layout", "ndim", "requires_grad", "shape"}
_ASKING = {"dim", "element_size", "get_device", "is_contiguous", "numel", "size", "stride"}
_ASKING_FUNCTIONS = {"hasattr", "id", "isinstance", "len", "print", "range", "repr", "str", "type"}
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class DetachingLine(NamedTuple):
    """A line on the way of the value that detaches it.

    Attributes
    ----------
    replaces : bool
        Whether the result gets the name of the value, so that all that follows has no other: ``x = x.detach()``.
    """

    cut: DetachingCall
    lineno: int
    replaces: bool = False


class PassedCall(NamedTuple):
    """A call that is given the value: of what (``'self.encode'``), in which places and keywords."""

    called: str
    places: tuple[int, ...]
    keywords: tuple[str, ...]


@dataclass(frozen=True)
class _Step:
    """A statement: `values` go into `targets`; into the result of the function, where it is an `end`."""

    targets: frozenset[str]
    values: tuple[ast.expr, ...]
    lineno: int
    end: bool
    quiet: int
    loop: int


class ProgramSlice:
    """The statements of a function, or of a file outside of its functions, through which a value goes.

    Parameters
    ----------
    carried : iterable of str
        Names that hold the value where it begins: ``'w'``, ``'self.body'``.
    beside : iterable of str
        Dotted names that do not hold it, although they begin with one that does: ``'model.head'``.
    ends : iterable of str
        Names in which it should arrive. Without these, and without a backward() in the function, its results.
    quiet : int
        The line that turns recording off for all of it; 0 for none.
    """

    def __init__(
        self,
        body: Sequence[ast.stmt],
        carried: Iterable[str],
        *,
        beside: Iterable[str] = (),
        ends: Iterable[str] = (),
        quiet: int = 0,
    ) -> None:
        steps = list(_steps(body, quiet))
        ends = frozenset(ends)
        started = [step for step in steps if _starts_backward(step)]
        if started or ends:
            steps = [replace(step, end=step in started or bool(step.targets & ends)) for step in steps]
        self._beside = frozenset(beside)
        self._way = list(self._follow(steps, frozenset(carried), _wanted(steps, ends)))

    def _follow(
        self, steps: Sequence[_Step], held: frozenset[str], wanted: frozenset[str]
    ) -> Iterator[tuple[_Step, frozenset[str]]]:
        """Follow the value through the statements; yield those on the way, each with the names that held it before."""
        anywhere = not any(step.end for step in steps)
        for loop, group in itertools.groupby(steps, key=lambda step: step.loop):
            turn = list(group)
            # What the first turn of a loop leaves in a variable, the second may read further up.
            for step in turn if loop else ():
                held = self._after(step, held)
            for step in turn:
                if self._reads(step, held) and (step.end or anywhere or step.targets & wanted):
                    yield step, held
                held = self._after(step, held)

    def _after(self, step: _Step, held: frozenset[str]) -> frozenset[str]:
        return held | step.targets if self._reads(step, held) else held

    def _reads(self, step: _Step, held: frozenset[str]) -> bool:
        return any(self._carries(value, held) for value in step.values)

    def _carries(self, node: ast.AST, held: frozenset[str]) -> bool:
        """Whether an expression reads the value."""
        stack = [node]
        while stack:
            part = stack.pop()
            name = dotted(part)
            if name in held:
                return True
            fact = isinstance(part, ast.Attribute) and part.attr in _FACTS
            if not (fact or name in self._beside or (isinstance(part, ast.Call) and _asks(part.func))):
                stack += ast.iter_child_nodes(part)
        return False

    @property
    def delivers(self) -> bool:
        """Whether the value goes into the result."""
        return any(step.end for step, _ in self._way)

    def detaching_lines(self) -> Iterator[DetachingLine]:
        """Yield what detaches the value on its way."""
        told: set[int] = set()
        for step, held in self._way:
            if step.quiet and step.quiet not in told:
                told.add(step.quiet)
                yield DetachingLine(
                    DetachingCall((), Reason.NO_GRAD, f"runs under no_grad, from line {step.quiet}", 0), step.lineno
                )
            for node in _nodes(step):
                cut = detaching_call(node)
                if cut is not None and any(self._carries(operand, held) for operand in cut.operands):
                    read = {name for operand in cut.operands for name in _names(operand)}
                    yield DetachingLine(cut, node.lineno, bool(step.targets & held & read))

    def passed(self) -> Iterator[PassedCall]:
        """Yield the calls on the way that are given the value."""
        for step, held in self._way:
            for node in _nodes(step):
                if not isinstance(node, ast.Call):
                    continue
                places = tuple(i for i, argument in enumerate(node.args) if self._carries(argument, held))
                keywords = tuple(k.arg for k in node.keywords if k.arg and self._carries(k.value, held))
                if places or keywords:
                    yield PassedCall(dotted(node.func), places, keywords)


def _wanted(steps: Sequence[_Step], ends: frozenset[str]) -> frozenset[str]:
    """Return the names from which the end is computed."""
    wanted, before = set(ends), -1
    while before != len(wanted):
        before = len(wanted)
        for step in reversed(steps):
            if step.end or step.targets & wanted:
                wanted.update(name for value in step.values for name in _names(value))
    return frozenset(wanted)


def _nodes(step: _Step) -> Iterator[Any]:
    for value in step.values:
        yield from ast.walk(value)


def _asks(function: ast.expr) -> bool:
    """Whether a call asks something of a tensor, and does not take its value."""
    if isinstance(function, ast.Attribute):
        return function.attr in _ASKING
    return isinstance(function, ast.Name) and function.id in _ASKING_FUNCTIONS


def _steps(body: Sequence[ast.stmt], quiet: int, loop: int = 0) -> Iterator[_Step]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            continue
        if isinstance(statement, FUNCTIONS):
            own = statement.lineno if is_quiet(statement.decorator_list) else quiet
            yield from _steps(statement.body, own, loop)
            continue
        turns = loop or (statement.lineno if isinstance(statement, _LOOPS) else 0)
        yield from _step_of(statement, quiet, turns)
        inner = quiet
        if isinstance(statement, (ast.With, ast.AsyncWith)) and is_quiet([i.context_expr for i in statement.items]):
            inner = statement.lineno
        for block in _blocks(statement):
            yield from _steps(block, inner, turns)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _step_of(statement: ast.stmt, quiet: int, loop: int) -> Iterator[_Step]:
    targets: list[ast.expr] = []
    values: list[ast.expr | None] = []
    end = False
    match statement:
        case ast.Assign():
            targets, values = statement.targets, [statement.value]
        case ast.AugAssign():
            targets, values = [statement.target], [statement.target, statement.value]
        case ast.AnnAssign():
            targets, values = [statement.target], [statement.value]
        case ast.For() | ast.AsyncFor():
            targets, values = [statement.target], [statement.iter]
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
            values = [item.context_expr for item in statement.items]
        case ast.Return():
            values, end = [statement.value], True
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            values, end = [statement.value], True
        case ast.Expr(value=ast.Call(func=ast.Attribute() as method) as call):
            # In out.add_(h) and losses.append(h) the argument flows into the object of the method.
            targets = [method.value]
            values = [call]
        case ast.Expr():
            values = [statement.value]
    read = tuple(value for value in values if value is not None)
    if read:
        stored = frozenset(name for target in targets for name in _stored(target))
        yield _Step(stored, read, statement.lineno, end, quiet, loop)
    for value in read:
        for node in ast.walk(value):
            if isinstance(node, ast.NamedExpr):
                yield _Step(frozenset([node.target.id]), (node.value,), node.lineno, False, quiet, loop)


def _stored(target: ast.expr) -> Iterator[str]:
    """Yield the variables that are written: of ``a, b.c[i] = ...``, ``a`` and ``b.c``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _stored(element)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _stored(target.value)
    elif dotted(target):
        yield dotted(target)


def _names(expression: ast.expr) -> Iterator[str]:
    """Yield the variables and the dotted names that an expression reads."""
    for node in ast.walk(expression):
        if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node):
            yield dotted(node)


def _starts_backward(step: _Step) -> bool:
    return any(
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "backward"
        for value in step.values
    )
