"""Terms of a loss that are not what they look like: gradients without a graph, errors that broadcast unasked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ...records.records import Location
from ..explanation import at
from .dataflow_entries import LedgerEntry
from .lost_history import DETACHING

__all__ = ["COMPARING", "LossTerm", "crossed", "terms_of"]

_ADDING = {"add", "iadd", "radd", "sub", "isub", "rsub", "stack", "cat", "concat"}
_SCALING = {"mul", "imul", "rmul", "div", "truediv", "neg", "sum", "mean", "squeeze", "reshape", "view"}
_MEASURING = {"pow", "square", "abs", "sqrt", "norm", "linalg_vector_norm", "vector_norm"}
# Operators that compare two tensors element by element.
COMPARING = {"sub", "rsub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}


@dataclass(frozen=True)
class LossTerm:
    """A part of a loss that does not do what it looks like.

    Attributes
    ----------
    kind : str
        ``'constant gradient'`` or ``'broadcast'``.
    location : Location or None
        The line that computes it.
    """

    kind: str
    text: str
    location: Location | None

    def __str__(self) -> str:
        return self.text


def crossed(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return what broadcasting makes of two shapes that differ in dimensions of one element alone.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Of an operator's tensors.

    Returns
    -------
    str
        Empty where the result is as large as they are, or where as many dimensions show that all pairs are wanted.

    Examples
    --------
    >>> crossed([(8, 1), (8,)]), crossed([(8, 1), (4,)]), crossed([(8, 1), (1, 8)])
    ('(8, 1) and (8,) broadcast to (8, 8)', '', '')
    >>> crossed([(4, 1, 6, 6), (4, 6, 6)])
    '(4, 1, 6, 6) and (4, 6, 6) broadcast to (4, 4, 6, 6)'
    """
    if len(shapes) != 2 or len(shapes[0]) == len(shapes[1]):
        return ""
    one, other = shapes
    elements = [size for size in one if size != 1]
    if elements != [size for size in other if size != 1]:
        return ""
    result = _broadcast(one, other)
    if math.prod(result) == math.prod(one):
        return ""
    return f"{tuple(one)} and {tuple(other)} broadcast to {result}"


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a result; -1 where two shapes do not go together, which the operator has refused."""
    pairs = itertools.zip_longest(reversed(one), reversed(other), fillvalue=1)
    return tuple(reversed([a if b == 1 else b if a == 1 or a == b else -1 for a, b in pairs]))


def terms_of(loss: LedgerEntry, backward: Location | None) -> Iterable[LossTerm]:
    """Yield the terms of a loss that do not do what they look like.

    Parameters
    ----------
    backward : Location or None
        Where its backward was called.
    """
    for entry in _found(loss, lambda entry: entry.constant, _terms):
        text = (
            f"the loss{at(backward)} contains a gradient that autograd.grad() gave without a graph"
            f"{at(entry.location)}: it is a constant there\n"
            "  Pass create_graph=True, or detach() it where it is meant to be a constant."
        )
        yield LossTerm("constant gradient", text, entry.location)
    for entry in _found(loss, lambda entry: bool(entry.crossed), _errors):
        text = (
            f"{entry.crossed} in {entry.name}{at(entry.location)}: the loss compares each prediction with all targets\n"
            "  Give both the same shape: squeeze(1) the one, or unsqueeze(1) the other."
        )
        yield LossTerm("broadcast", text, entry.location)


def _found(
    loss: LedgerEntry, is_one: Callable[[LedgerEntry], bool], inner: Callable[[LedgerEntry], Collection[LedgerEntry]]
) -> list[LedgerEntry]:
    found: dict[LedgerEntry, None] = {}
    seen, stack = {loss}, [loss]
    while stack:
        entry = stack.pop()
        if is_one(entry):
            found[entry] = None
            continue
        new = [i for i in inner(entry) if i not in seen]
        seen.update(new)
        stack += new
    return sorted(found, key=lambda entry: -entry.number)


def _terms(entry: LedgerEntry) -> Collection[LedgerEntry]:
    """Return those inputs of an operator whose terms are terms of its result.

    A gradient that changes the data of another forward is meant to be a constant, and so is what was detached or
    computed under no_grad.
    """
    if not entry.recorded:
        return entry.inputs if entry.grad_enabled and entry.name not in DETACHING else ()
    name = entry.name.strip("_")
    if name in _ADDING:
        return entry.inputs
    return [i for i in entry.inputs if i.recorded] if name in _SCALING else ()


def _errors(entry: LedgerEntry) -> Collection[LedgerEntry]:
    """Return those inputs of an operator whose size its result measures."""
    name = entry.name.strip("_")
    return entry.inputs if entry.recorded and name in _ADDING | _SCALING | _MEASURING else ()
