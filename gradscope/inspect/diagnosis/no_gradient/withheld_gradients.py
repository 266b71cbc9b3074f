"""Gradients that a node was asked for and did not give: a custom Function whose backward returns None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...adapters import Adapter
from ...records.execution_order import NodeLinks
from ...source.call_sites import place
from ..explanation import at
from ..functions.failed_backward import arguments_of, last_return, return_lines
from .lost_history import Answer
from .no_grad_reasons import Reason

__all__ = ["functions_before", "given_none", "note_withheld"]

_WITHHELD = "gradscope.inspect.withheld"


def note_withheld(adapter: Adapter, call: Any, given: Sequence[Any], made: Sequence[Any]) -> None:
    """Note at a node that has run to which of its edges it gave no gradient, though it was given one itself.

    Parameters
    ----------
    call : object
        What an observer's ``node_exited`` is told.
    given, made : sequence
        What :meth:`Adapter.carried` tells of it.
    """
    edges = adapter.edges(call.node)
    asked = [i for i, (edge, grad) in enumerate(zip(edges, made)) if grad is None and edge[0] is not None]
    if not asked or all(grad is None for grad in given):
        return
    withheld = tuple(i for i in asked if adapter.task_runs(call.task, edges[i][0]))
    if withheld:
        adapter.notes(call.node)[_WITHHELD] = withheld


def given_none(adapter: Adapter, links: Mapping[int, NodeLinks], leaf: Any) -> Answer | None:
    """Return which node has kept the gradient of a leaf back, as a ledger has seen it, or the compiler knows.

    Parameters
    ----------
    links : mapping of int to NodeLinks
        From :func:`walk`.

    Returns
    -------
    Answer or None
        None if no node has.
    """
    for link in links.values():
        withheld = adapter.notes(link.node).get(_WITHHELD) or adapter.withheld(link.node)
        starts = [link.edges[i][0] for i in withheld if i < len(link.edges)]
        if any(_leads_to(adapter, links, start, leaf) for start in starts):
            return _answer(adapter, link.node)
    return None


def functions_before(adapter: Adapter, links: Mapping[int, NodeLinks], leaf: Any) -> list[str]:
    """Return the names of the custom Functions that the gradient of a leaf passes through."""
    found: dict[str, None] = {}
    for key, link in links.items():
        function = _function_of(link.node)
        if function is not None and _leads_to(adapter, links, key, leaf):
            found[function.__name__] = None
    return list(found)


def _function_of(node: Any) -> Any:
    """Return the custom Function that a node belongs to, None for any other node."""
    return getattr(type(node), "_forward_cls", None)


def _leads_to(adapter: Adapter, links: Mapping[int, NodeLinks], start: int | None, leaf: Any) -> bool:
    seen: set[int | None] = {start, None}
    stack = [start]
    while stack:
        key = stack.pop()
        link = None if key is None else links.get(key)
        if link is None:
            continue
        if adapter.variable(link.node) is leaf:
            return True
        new = [child for child, _ in link.edges if child not in seen]
        seen.update(new)
        stack += new
    return False


def _answer(adapter: Adapter, node: Any) -> Answer:
    function, recorded = _function_of(node), adapter.location(node)
    if function is None:
        message = f"reached, but {adapter.node_name(node)}{at(recorded)} gave it no gradient"
        return Answer(Reason.WITHHELD, message, (recorded,))
    if adapter.inside(node):
        return Answer(
            Reason.COMPILED,
            f"reached, but inside of what torch.compile has compiled{at(recorded)} no way leads from it to the result",
            (recorded,),
        )
    lines = return_lines(function.backward)
    returns = last_return(function.backward) if lines and len(lines) == 1 else None
    what = "returned None for it" if lines != [] else "has no return statement, which gives None"
    used = "" if recorded is None else f"; it was used at {place(recorded)}"
    return Answer(
        Reason.WITHHELD,
        f"reached, but {function.__name__}.backward {what}{at(returns)}{used}",
        (returns or recorded,),
        f"forward() takes {', '.join(arguments_of(function))}: return a gradient for each that wants one.",
    )
