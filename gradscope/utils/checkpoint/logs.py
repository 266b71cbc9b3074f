"""Logs of the operators that ran in a checkpoint, the first time and when it was computed again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from ...runtime import call_sites, events

__all__ = ["OperatorLog", "difference"]


Operator = tuple[str, str]


class OperatorLog:
    """The operators that a thread has run, in order, each with its line.

    Attributes
    ----------
    operators : list of (str, str)
        What ran, and where.
    """

    def __init__(self) -> None:
        self.operators: list[Operator] = []

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note the operators of the block."""
        with events.subscribe(self._heard, events.OperatorRecorded, thread=threading.get_ident(), call_sites=1):
            yield

    def _heard(self, event: Any) -> None:
        shapes = ", ".join(str(list(output.shape)) for output in event.outputs)
        self.operators.append((f"{event.name} -> {shapes}", _place(event.call_site)))


def _place(site: call_sites.CallSite | None) -> str:
    frame = None if site is None else site.user_frame()
    return "" if frame is None else f" at {frame.filename}:{frame.lineno}"


def difference(first: Sequence[Operator], second: Sequence[Operator]) -> str:
    """Return the first operator in which two logs differ.

    Parameters
    ----------
    first, second : sequence of (str, str)
        Of the call, and of the call in the backward pass.

    Examples
    --------
    >>> print(difference([("exp", ""), ("sin", " at model.py:3")], [("exp", "")]))
    The operators differ from number 2 on:
      in the forward pass:  sin at model.py:3
      computed again:       none
    """
    for number, (one, two) in enumerate(zip_longest(first, second, fillvalue=("none", "")), 1):
        if one[0] != two[0]:
            return (
                f"The operators differ from number {number} on:\n"
                f"  in the forward pass:  {one[0]}{one[1]}\n  computed again:       {two[0]}{two[1]}"
            )
    return f"The same {len(first)} operators ran both times."
