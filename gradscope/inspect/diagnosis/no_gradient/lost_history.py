"""Where the way from a tensor to the loss was lost, as a ledger has seen it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ...records.records import Location
from ...source.source_syntax import last_name, syntax_tree
from ..explanation import at
from .dataflow_entries import LedgerEntry
from .detaching_calls import quiet_from
from .no_grad_reasons import Reason

__all__ = ["DETACHING", "Answer", "loss_of_gradient", "lost_on_the_way"]

DETACHING = {"detach", "detach_copy"}
_COPYING = {"tensor", "as_tensor", "asarray", "scalar_tensor", "new_tensor"}


class Answer(NamedTuple):
    """Why there is no gradient: the reason, a sentence, the lines to look at, and what to do."""

    reason: Reason
    message: str
    locations: tuple[Location | None, ...] = ()
    help: str = ""


def lost_on_the_way(loss: LedgerEntry, sources: set[LedgerEntry]) -> list[LedgerEntry]:
    """Return the operators on the way from `sources` to the loss that let no gradient through, nearest first."""
    on_the_way = sorted(loss.ancestors(), key=lambda entry: entry.number)
    carries, alive = set(sources), set(sources)
    lost = []
    for entry in on_the_way:
        if entry in sources or not any(i in carries for i in entry.inputs):
            continue
        carries.add(entry)
        if entry.recorded:
            alive.add(entry)
        elif any(i in alive for i in entry.inputs):
            lost.append(entry)
    return lost if loss in carries else []


def loss_of_gradient(entry: LedgerEntry) -> Answer:
    """Return what an operator that let no gradient through did."""
    where = at(entry.location)
    if entry.name == "alias":
        return Answer(
            Reason.OUTSIDE,
            f"not reached: its values are used through `.data` or NumPy, outside the graph{where}",
            (entry.location,),
            "Use the tensor itself; for NumPy code write an autograd.Function.",
        )
    if entry.name in DETACHING:
        return Answer(Reason.DETACHED, f"not reached: detached{where}", (entry.location,), "Remove the detach().")
    function = "" if entry.grad_enabled else _function_of(entry.location)
    if function:
        return Answer(
            Reason.NO_GRAD,
            f"not reached: {entry.name} ran in {function}.forward(), which is not recorded{where}",
            (entry.location,),
            "Save its inputs and outputs alone, and compute the rest in backward().",
        )
    if not entry.grad_enabled:
        way_out = _out_of_no_grad(entry.location)
        return Answer(Reason.NO_GRAD, f"not reached: {entry.name} ran under no_grad{where}", (entry.location,), way_out)
    if entry.name == "grad":
        return Answer(
            Reason.NOT_DIFFERENTIABLE,
            f"not reached: autograd.grad() gives constants{where}",
            (entry.location,),
            "Pass create_graph=True, to differentiate through the gradient.",
        )
    if entry.name in _COPYING:
        return Answer(
            Reason.OUTSIDE,
            f"not reached: {entry.name}() copies the values into a tensor without history{where}",
            (entry.location,),
            "Use the tensor itself; several become one by stack() or cat().",
        )
    if not entry.differentiable:
        return Answer(
            Reason.NOT_DIFFERENTIABLE,
            f"not reached: {entry.name} gives integers or booleans, which have no gradient{where}",
            (entry.location,),
            _SOFT.get(entry.name, "Work with its values by where(), a product with a mask, or gather()."),
        )
    return Answer(
        Reason.NOT_DIFFERENTIABLE,
        f"not reached: {entry.name} was not recorded{where}",
        (entry.location,),
        "Either it has no derivative, or the tensor did not require grad at that time.",
    )


def _function_of(location: Location | None) -> str:
    """Return the name of the custom Function whose forward a line is in, an empty string where it is in none."""
    tree = None if location is None else syntax_tree(location.filename)
    if location is None or tree is None:
        return ""
    classes = (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    functions = (n for n in classes if any(last_name(base) == "Function" for base in n.bases))
    forwards = ((n.name, m) for n in functions for m in n.body if getattr(m, "name", "") == "forward")
    return next((name for name, m in forwards if m.lineno <= location.lineno <= (m.end_lineno or m.lineno)), "")


def _out_of_no_grad(location: Location | None) -> str:
    """Return what to do about an operator that ran under no_grad at a place."""
    tree = None if location is None else syntax_tree(location.filename)
    if location is None or tree is None:
        return "Move it out of the no_grad() block."
    block = quiet_from(tree, location.lineno)
    if block:
        return f"Move it out of the no_grad() block that begins at line {block}."
    called = {last_name(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno == location.lineno}
    return next((text for name, text in _QUIET_CALLS.items() if name in called), "Turn recording on again before it.")


_QUIET_CALLS = {
    "checkpoint": (
        "A re-entrant checkpoint records nothing unless one of its inputs requires grad: pass use_reentrant=False."
    ),
    "checkpoint_sequential": (
        "A re-entrant checkpoint records nothing unless its input requires grad: pass use_reentrant=False."
    ),
    "generate": "generate() runs under no_grad: call the model itself.",
    "sample": "sample() draws under no_grad: rsample() does not.",
}

_SOFT = {
    "argmax": "argmax has no derivative: use softmax(), max().values, or a straight-through estimator.",
    "argmin": "argmin has no derivative: use softmax(-x), min().values, or a straight-through estimator.",
    "to": "Rounding to integers has no derivative: keep the floating-point values for the loss.",
}
