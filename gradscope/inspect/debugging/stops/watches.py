"""Watch expressions: evaluated at every stop, on the program's own thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from ..session.session_records import WatchRecord

__all__ = ["WatchList"]

_RECENT = 40
"""Values of a watch that are remembered."""


class WatchList:
    """The watches of a session, by number.

    Examples
    --------
    >>> watches = WatchList()
    >>> watches.add("norm").id
    1
    >>> watches.update(lambda expression: "3.0")
    >>> watches.update(lambda expression: "4.0")
    >>> watches.all()
    (WatchRecord(id=1, expression='norm', value='4.0', previous='3.0', changed=True, error=''),)
    """

    def __init__(self) -> None:
        self._watches: dict[int, WatchRecord] = {}
        self._next = itertools.count(1).__next__

    def __bool__(self) -> bool:
        return bool(self._watches)

    def all(self) -> tuple[WatchRecord, ...]:
        """Return the watches with their values at the last stop."""
        return tuple(self._watches.values())

    def add(self, expression: str) -> WatchRecord:
        """Add one.

        Raises
        ------
        SyntaxError
            If it is not an expression.
        """
        expression = expression.strip()
        compile(expression, "<watch>", "eval")
        watch = WatchRecord(self._next(), expression)
        self._watches[watch.id] = watch
        return watch

    def remove(self, id: int) -> None:
        """Remove one by its number.

        Raises
        ------
        ValueError
            If there is none of that number.
        """
        if self._watches.pop(id, None) is None:
            known = ", ".join(map(str, self._watches)) or "none"
            raise ValueError(f"there is no watch {id} (there are: {known})")

    def update(self, evaluate: Callable[[str], str], *, id: int | None = None) -> None:
        """Evaluate all of them, or one; `evaluate` returns the value as text, or raises."""
        for watch in [w for w in self._watches.values() if id in (None, w.id)]:
            try:
                value, error = evaluate(watch.expression), ""
            except Exception as raised:
                value, error = None, f"{type(raised).__name__}: {raised}"
            seen = watch.value is not None or watch.error
            self._watches[watch.id] = replace(
                watch,
                value=value,
                previous=watch.value,
                changed=bool(seen) and (value, error) != (watch.value, watch.error),
                error=error,
                recent=(watch.recent + _number(value))[-_RECENT:],
            )


def _number(value: str | None) -> tuple[float, ...]:
    """Return a value as a number; nothing where it is none."""
    try:
        return (float(value),) if value is not None else ()
    except ValueError:
        return ()
