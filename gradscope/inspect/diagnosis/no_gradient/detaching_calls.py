"""Calls in the source that take a value out of the graph: ``detach()``, ``.data``, ``argmax``, ``torch.tensor(x)``.

The table knows an expression by its look. ``x.detach()`` may be a method of the user's own; who reads the table says
that it was read, and where a ledger says what ran.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...source.source_syntax import last_name
from .no_grad_reasons import Reason

__all__ = [
    *("FREEZING", "SWITCHING", "WEAK", "DetachingCall"),
    *("detaching_call", "dotted", "freezing", "is_quiet", "quiet_from", "switched_off"),
]

# From this weight on, a detached result is often used beside the value itself, and harmlessly: as a count, a mask, a
# number to print.
WEAK = 2


class DetachingCall(NamedTuple):
    """A call or attribute that gives the value without its history.

    Attributes
    ----------
    operands : tuple of ast.expr
        What it cuts off.
    weight : int
        The less, the more plausible.
    """

    operands: tuple[ast.expr, ...]
    reason: Reason
    text: str
    weight: int


_METHODS = {
    "detach": (Reason.DETACHED, "detach() gives a tensor without history", 0),
    "detach_": (Reason.DETACHED, "detach_() takes its history away", 0),
    "numpy": (Reason.OUTSIDE, "numpy() gives an array without history", 0),
    "item": (Reason.OUTSIDE, "item() gives a number without history", 1),
    "tolist": (Reason.OUTSIDE, "tolist() gives numbers without history", 1),
    "sample": (Reason.NO_GRAD, "sample() draws under no_grad: rsample() does not", 1),
} | {
    name: (Reason.NOT_DIFFERENTIABLE, f"{name}() gives integers or booleans, which have no gradient", 1)
    for name in ("argmax", "argmin", "argsort", "nonzero", "searchsorted", "bucketize", "multinomial")
} | {
    name: (Reason.NOT_DIFFERENTIABLE, f"{name}() rounds to integers or booleans, which have no gradient", WEAK)
    for name in ("bool", "byte", "char", "int", "long", "short")
} | {
    name: (Reason.NOT_DIFFERENTIABLE, f"{name}() compares, which has no gradient", WEAK)
    for name in ("eq", "ne", "gt", "ge", "lt", "le", "isclose", "logical_and", "logical_or", "logical_not")
}  # fmt: skip

_COPIES = {"tensor", "Tensor", "FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "BoolTensor", "from_numpy"}
_NUMBERS = {"float", "int", "bool"}
_INTEGERS = {
    "bool", "char", "int", "int16", "int32", "int64", "int8", "long", "short", "uint8",
    "BoolTensor", "ByteTensor", "IntTensor", "LongTensor", "ShortTensor",
}  # fmt: skip
_CASTS = {"to", "type", "astype", "type_as"}
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_QUIET = {"no_grad", "inference_mode"}


def detaching_call(node: ast.AST) -> DetachingCall | None:
    """Return what an expression cuts off, None for one that cuts nothing.

    Examples
    --------
    >>> cut = detaching_call(ast.parse("hidden.detach()", mode="eval").body)
    >>> cut.reason.value, ast.unparse(cut.operands[0])
    ('detached', 'hidden')
    >>> detaching_call(ast.parse("hidden.relu()", mode="eval").body)
    """
    if isinstance(node, ast.Call):
        return _called(node)
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
        return DetachingCall((node.value,), Reason.OUTSIDE, ".data gives a tensor without history", 0)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], _COMPARISONS):
        operands = (node.left, *node.comparators)
        return DetachingCall(operands, Reason.NOT_DIFFERENTIABLE, "a comparison has no gradient", WEAK)
    return None


def _called(node: ast.Call) -> DetachingCall | None:
    name, arguments = last_name(node.func), (*node.args, *(keyword.value for keyword in node.keywords))
    if isinstance(node.func, ast.Name):
        if name in _NUMBERS:
            return DetachingCall(arguments, Reason.OUTSIDE, f"{name}() gives a number without history", 1)
    elif name in _CASTS and any(last_name(argument) in _INTEGERS for argument in arguments):
        text = f"{name}() rounds to integers or booleans, which have no gradient"
        return DetachingCall(_receiver(node), Reason.NOT_DIFFERENTIABLE, text, WEAK)
    if name in _COPIES and arguments:
        return DetachingCall(arguments[:1], Reason.OUTSIDE, f"{name}() copies the values without their history", 0)
    if name in _METHODS:
        # x.argmax() and torch.argmax(x): the receiver is what is cut off, or names a library and carries nothing.
        return DetachingCall((*_receiver(node), *arguments), *_METHODS[name])
    return None


def _receiver(node: ast.Call) -> tuple[ast.expr, ...]:
    return (node.func.value,) if isinstance(node.func, ast.Attribute) else ()


def is_quiet(expressions: Sequence[ast.expr]) -> bool:
    """Whether the context managers of a ``with``, or the decorators of a function, turn recording off.

    Examples
    --------
    >>> is_quiet([ast.parse("torch.no_grad()", mode="eval").body])
    True
    """
    for expression in expressions:
        called = expression.func if isinstance(expression, ast.Call) else expression
        name = last_name(called)
        if name in _QUIET:
            return True
        if name == "set_grad_enabled" and isinstance(expression, ast.Call) and expression.args:
            mode = expression.args[0]
            if isinstance(mode, ast.Constant) and mode.value is False:
                return True
    return False


def quiet_from(tree: ast.AST, lineno: int) -> int:
    r"""Return the line on which the innermost block, or decorated function, around a line turns recording off.

    Returns
    -------
    int
        0 where the line is in none.

    Examples
    --------
    >>> quiet_from(ast.parse("with torch.no_grad():\n    y = f(x)\nz = g(y)"), 2)
    1
    """
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            quiet = is_quiet([item.context_expr for item in node.items])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            quiet = is_quiet(node.decorator_list)
        else:
            continue
        if quiet and node.lineno <= lineno <= (node.end_lineno or node.lineno):
            found = max(found, node.lineno)
    return found


SWITCHING = re.compile(r"set_grad_enabled")
"""Text without which a file has nothing that :func:`switched_off` finds."""

FREEZING = re.compile(
    r"requires_grad[\s\\)]*=(?!=|\s*True\s*(?:$|[,)#;]))|requires_grad_[\s\\)]*\((?!\s*(?:True\s*)?\))", re.MULTILINE
)
"""Text without which a file has nothing that :func:`freezing` finds."""


def switched_off(tree: ast.AST) -> list[int]:
    r"""Return the lines of statements that turn recording off and leave it so: ``set_grad_enabled(False)``.

    Examples
    --------
    >>> switched_off(ast.parse("torch.set_grad_enabled(False)\nwith torch.set_grad_enabled(False):\n    f()"))
    [1]
    """
    calls = (n.value for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call))
    return [call.lineno for call in calls if last_name(call.func) == "set_grad_enabled" and is_quiet([call])]


def freezing(tree: ast.AST) -> list[int]:
    r"""Return the lines of statements that set ``requires_grad`` to what is not True.

    Examples
    --------
    >>> freezing(ast.parse("p.requires_grad = False\nq.requires_grad_(stage > 1)\nq.requires_grad_()"))
    [1, 2]
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(last_name(target) == "requires_grad" for target in node.targets):
            given: list[ast.expr] = [node.value]
        elif isinstance(node, ast.Call) and last_name(node.func) == "requires_grad_":
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
        else:
            continue
        if any(not (isinstance(value, ast.Constant) and value.value is True) for value in given):
            found.append(node.lineno)
    return found


def dotted(expression: ast.AST) -> str:
    """Return ``'self.head.weight'`` for such an attribute; an empty string for what is no chain of names."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return ""
    return ".".join([expression.id, *reversed(parts)])
