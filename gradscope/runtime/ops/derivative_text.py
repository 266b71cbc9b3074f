"""The derivatives of an operator as they are declared, in words that a person can read."""

from __future__ import annotations

import functools
import inspect
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from tokenize import COMMENT, DEDENT, INDENT, NAME, NEWLINE, NL, STRING, TokenInfo

from .declaration.annotations import Formula
from .declaration.registry import OPERATORS, Operator

__all__ = ["derivative_text"]

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@functools.cache
def derivative_text(node_name: str) -> tuple[tuple[str, str], ...]:
    """Return the derivative of the operator that a node belongs to, by argument, as the source has it.

    Parameters
    ----------
    node_name : str
        Such as ``'MulBackward0'``.

    Returns
    -------
    tuple of (str, str)
        For each argument the expression of its gradient, in which ``g`` is the gradient that arrives; for a
        derivative that takes several steps where it stands. Empty where no operator has such a node.

    Examples
    --------
    >>> derivative_text("MulBackward0")
    (('self', 'g * conj(other)'), ('other', 'g * conj(self)'))
    """
    op = next((op for op in OPERATORS.values() if op.differentiable and op.node_name == node_name), None)
    if op is None:
        return ()
    return tuple((name, _formula(function)) for name, function in _functions(op).items())


def _functions(op: Operator) -> dict[str, Formula]:
    found = dict(op.derivatives)
    if op.joint is not None:
        found[", ".join(parameter.name for parameter in op.edged)] = op.joint
    return found


def _formula(function: Formula) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        return str(getattr(function, "__name__", function))
    names = inspect.signature(function).parameters
    tokens = _tokens(Path(code.co_filename))
    found = [*_lambdas(tokens, code.co_firstlineno, list(names)), *_returned(tokens, code.co_firstlineno)]
    if len(found) == 1:
        return found[0]
    where = Path(code.co_filename).relative_to(Path(__file__).parents[3]).as_posix()
    name = code.co_name.replace("<lambda>", "derivative")
    return f"{name}({', '.join(names)}), {where}:{code.co_firstlineno}"


def _lambdas(tokens: Sequence[TokenInfo], line: int, names: list[str]) -> Iterator[str]:
    """Yield the bodies of the lambdas that begin on a line and take these arguments."""
    for at, token in enumerate(tokens):
        if token.string == "lambda" and token.start[0] == line:
            colon = next(k for k in range(at, len(tokens)) if tokens[k].string == ":")
            if [t.string for t in tokens[at + 1 : colon] if t.type == NAME] == names:
                yield " ".join(_joined(_expression(tokens, colon + 1)).split())


def _returned(tokens: Sequence[TokenInfo], line: int) -> Iterator[str]:
    """Yield what the function that begins on a line returns, where that is all it does."""
    start = next((at for at, t in enumerate(tokens) if t.string == "def" and t.start[0] == line), None)
    if start is None:
        return
    body = next(at for at in range(start, len(tokens)) if tokens[at].type == INDENT) + 1
    if tokens[body].type == STRING:  # its docstring
        body += 2
    end = next(at for at in range(body, len(tokens)) if tokens[at].type == NEWLINE)
    following = next(t for t in tokens[end + 1 :] if t.type not in (COMMENT, NL))
    if tokens[body].string == "return" and following.type == DEDENT:
        yield " ".join(_joined(t for t in tokens[body + 1 : end] if t.type not in (COMMENT, NL)).split())


def _expression(tokens: Sequence[TokenInfo], start: int) -> Iterator[TokenInfo]:
    """Yield the tokens of the expression that begins somewhere, up to the comma, bracket or line that ends it."""
    depth = 0
    for token in tokens[start:]:
        depth += (token.string in _OPENING) - (token.string in _CLOSING)
        if depth < 0 or (depth == 0 and (token.string == "," or token.type == NEWLINE)):
            return
        if token.type not in (COMMENT, NL):
            yield token


def _joined(tokens: Iterator[TokenInfo]) -> str:
    """Return tokens as they stand in their lines, of several lines one."""
    text, before = "", None
    for token in tokens:
        if before is not None and before.end[0] == token.start[0]:
            text += " " * (token.start[1] - before.end[1])
        elif before is not None and before.string not in _OPENING and token.string not in _CLOSING:
            text += " "
        text, before = text + token.string, token
    return text


@functools.cache
def _tokens(path: Path) -> list[TokenInfo]:
    # Not the parser's tree: Python 3.11 fails to make one while another thread does.
    with tokenize.open(path) as file:
        return list(tokenize.generate_tokens(file.readline))
