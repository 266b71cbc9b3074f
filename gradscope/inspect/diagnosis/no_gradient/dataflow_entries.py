"""The entries of a ledger: names, lines and links, never a tensor."""

from __future__ import annotations

import itertools
from typing import Any

from ...records.records import Location

__all__ = ["BackwardRun", "LedgerEntry", "next_number"]

next_number = itertools.count(1).__next__


class LedgerEntry:
    """An operator that ran, or (with an empty name) a tensor that was there before the ledger looked.

    Attributes
    ----------
    number : int
        Counts up in the order in which the operators ran.
    name : str
        The operator's name, without namespace and overload (``'mul'``); ``'alias'`` where memory came back in a tensor
        that no operator made (``.data``, NumPy).
    recorded : bool
        Whether a gradient flows through it.
    differentiable : bool
        Whether its result is of a dtype that can have a gradient.
    forgotten : bool
        Whether what it was computed from has been let go.
    leaf : bool
        Whether it is a leaf that requires grad.
    memory : Hashable
        Of a source: where its elements are.
    constant : bool
        Whether it is autograd.grad() without create_graph, with respect to what is no parameter.
    crossed : str
        Of a comparison, what broadcasting has made of a column and a row; else empty.
    """

    # An entry is made for every operator: defaults that nearly all share stand on the class.
    recorded = False
    grad_enabled = True
    differentiable = True
    forgotten = False
    location: Location | None = None
    memory: Any = None
    module = ""
    leaf = False
    constant = False
    crossed = ""

    def __init__(self, name: str = "", inputs: tuple[LedgerEntry, ...] = ()) -> None:
        self.number = next_number()
        self.name = name
        self.inputs = inputs

    def ancestors(self) -> set[LedgerEntry]:
        """Return the entry and all it was computed from."""
        found, stack = {self}, [self]
        while stack:
            for entry in stack.pop().inputs:
                if entry not in found:
                    found.add(entry)
                    stack.append(entry)
        return found

    def __repr__(self) -> str:
        return f"<LedgerEntry {self.number} {self.name or 'source'} at {self.location}>"


class BackwardRun:
    """One backward() or grad(), as far as the ledger is concerned.

    Attributes
    ----------
    number : int
        From 1.
    location : Location or None
        The line that called it.
    failed : bool
        Whether it ended by an exception.
    """

    __slots__ = ("__weakref__", "failed", "location", "number")

    def __init__(self, number: int, location: Location | None) -> None:
        self.number = number
        self.location = location
        self.failed = False
