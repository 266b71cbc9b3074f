"""What has run inside of compiled nodes, as a recording keeps it: an event whose text lists the calls as JSON."""

from __future__ import annotations

import json
from typing import Any

from ...output.terminal_text import printable
from ...records.records import InnerOperator, Location

__all__ = ["COMPILED", "INSIDE", "inside_text", "read_inside"]

INSIDE = "compiled"
"""The kind of these events."""

COMPILED = "CompiledFunction"
"""How the names of compiled nodes begin."""

_MOST = 10_000


def inside_text(inside: tuple[InnerOperator, ...]) -> str:
    """Return calls inside of a compiled region as text.

    Examples
    --------
    >>> text = inside_text((InnerOperator("sqrt", ("div",), given=0.0, made=float("nan"), bad=2),))
    >>> read_inside(text)[0].operator, read_inside(text)[0].bad
    ('sqrt', 2)
    """
    rows = [
        (one.operator, one.kernels, one.module, _place(one.location), one.given, one.made, one.bad) for one in inside
    ]
    return json.dumps(rows)


def _place(location: Location | None) -> list[Any] | None:
    return None if location is None else [location.filename, location.lineno, location.function, location.source]


def read_inside(text: Any) -> tuple[InnerOperator, ...]:
    """Return the calls again.

    Raises
    ------
    ValueError, TypeError
        If the text is none that :func:`inside_text` has made.
    """
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError("what is inside of a compiled node is no list")
    return tuple(map(_operator, rows[:_MOST]))


def _operator(row: Any) -> InnerOperator:
    operator, kernels, module, place, given, made, bad = row
    location = None
    if place is not None:
        filename, lineno, function, source = place
        location = Location(_text(filename), int(lineno), _text(function), _text(source))
    return InnerOperator(
        _text(operator), tuple(map(_text, kernels)), _text(module), location, _norm(given), _norm(made), int(bad)
    )


def _text(value: Any) -> str:
    return printable(str(value))


def _norm(value: Any) -> float | None:
    return None if value is None else float(value)
