"""The loop in which a program trains: around the lines that call a backward and the optimizer's step."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import NamedTuple

from ....program_files import is_library_file
from ...source.source_syntax import syntax_tree

__all__ = ["TrainingLoop"]

Stack = tuple[tuple[CodeType, int], ...]
"""The functions that run, the innermost first, each with its instruction."""


class _Loop(NamedTuple):
    """A loop, in the last of some functions that call each other."""

    functions: tuple[CodeType, ...]
    first: int
    last: int


class TrainingLoop:
    """Notes where backwards begin and steps are taken, and tells whether the program has left the loop around both.

    A function that is called from inside of the loop is inside of it, however it is called.
    """

    def __init__(self) -> None:
        self._backward: Stack = ()
        self._step: Stack = ()

    def backward_begins(self, frame: FrameType | None) -> None:
        """Note the line that calls a backward."""
        self._backward = _stack(frame)

    def steps(self, frame: FrameType | None) -> None:
        """Note the line that takes a step."""
        self._step = _stack(frame)

    def is_left_at(self, frame: FrameType | None) -> bool:
        """Whether a frame stands outside of the loop; not where there is none, or no source of it."""
        loop = _loop_around(_lines(self._backward), _lines(self._step))
        if loop is None or frame is None:
            return False
        stack = _lines(_stack(frame))
        if not stack or stack[0][0] is not loop.functions[0]:  # another thread's
            return False
        if tuple(code for code, _ in stack[: len(loop.functions)]) != loop.functions:
            return True
        return not loop.first <= stack[len(loop.functions) - 1][1] <= loop.last


def _stack(frame: FrameType | None) -> Stack:
    """Return the functions that run, with the instruction of each: which of them are the program's is asked later."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _lines(stack: Stack) -> list[tuple[CodeType, int]]:
    """Return the program's functions among those that run, the outermost first, each with its line."""
    return [(code, _line(code, at)) for code, at in reversed(stack) if not is_library_file(code.co_filename)]


def _line(code: CodeType, instruction: int) -> int:
    lines = (line for begin, end, line in code.co_lines() if begin <= instruction < end)
    return next(lines, None) or code.co_firstlineno


def _loop_around(backward: Sequence[tuple[CodeType, int]], step: Sequence[tuple[CodeType, int]]) -> _Loop | None:
    """Return the innermost loop in which both lines are."""
    shared = 0
    while shared < min(len(backward), len(step)) and backward[shared][0] is step[shared][0]:
        shared += 1
        if backward[shared - 1][1] != step[shared - 1][1]:
            break
    for depth in range(shared, 0, -1):
        code, line = step[depth - 1]
        lines = line, backward[depth - 1][1]
        around = [loop for loop in _loops(code) if all(loop.lineno <= one <= (loop.end_lineno or 0) for one in lines)]
        if around:
            innermost = max(around, key=lambda loop: loop.lineno)
            functions = tuple(code for code, _ in step[:depth])
            return _Loop(functions, innermost.lineno, innermost.end_lineno or innermost.lineno)
    return None


def _loops(code: CodeType) -> Iterator[ast.For | ast.While]:
    """Yield the loops of a function's own lines."""
    tree = syntax_tree(code.co_filename)
    nodes: Sequence[ast.AST] = [] if tree is None else [*ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    own = max(
        (one for one in functions if _starts(one) == code.co_firstlineno), key=lambda one: one.lineno, default=None
    )
    first, last = (0, math.inf) if own is None else (own.lineno, own.end_lineno or own.lineno)
    for node in nodes:
        if isinstance(node, ast.For | ast.While) and first <= node.lineno <= last:
            yield node


def _starts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
