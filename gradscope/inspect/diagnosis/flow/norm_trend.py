"""Where gradients vanish, explode, die or stop being numbers along one backward, read from the norms of its nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...output.number_format import several
from ...records.records import NodeRecord
from ..limits import Limits

__all__ = ["EXPLODING", "VANISHING", "NormTrouble", "norm_trouble"]

VANISHING = 1e-7
"""Norms below are called vanishing: a float32 weight of 1 cannot change by less than 2 ** -23, about 1e-7."""

EXPLODING = 1e3
"""Norms above are called exploding."""

_LARGEST_LOG = 709.0
"""The largest logarithm of a float64."""


@dataclass(frozen=True, slots=True)
class NormTrouble:
    """What has become of the gradient.

    Attributes
    ----------
    kind : str
        ``'nan'``, ``'inf'``, ``'zero'``, ``'vanishing'`` or ``'exploding'``.
    title, text : str
        One line, and more.
    index : int
        The node that has done it, or most of it.
    parameters : tuple of str
        Those whose gradients show it.
    """

    kind: str
    title: str
    text: str
    index: int
    parameters: tuple[str, ...] = ()


def norm_trouble(nodes: Sequence[NodeRecord]) -> list[NormTrouble]:
    """Return what the norms of a backward show, as far as it has run.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        In execution order; those whose norm is not known are passed over.

    Examples
    --------
    >>> from gradscope.inspect.records.records import NodeRecord
    >>> def node(index, name, norm, target, parameter=""):
    ...     edges = () if target is None else (EdgeRecord(target, 0),)
    ...     return NodeRecord(index, index, f"{name}Backward0", name, 1, "", parameter, None, edges, norm=norm)
    >>> from gradscope.inspect.records.records import EdgeRecord
    >>> chain = [node(0, "Sum", 1.0, 1), node(1, "Sqrt", 2.0, 2), node(2, "AccumulateGrad", math.nan, None, "w")]
    >>> norm_trouble(chain)[0].title
    'Sqrt makes a NaN of a finite gradient'
    """
    known = [node for node in nodes if node.norm is not None]
    sources = _sources(known)
    bad = _first_bad(known, sources)
    if bad is not None:
        return [bad]
    counted = [node for node in known if not _is_cancelled(node, sources.get(node.key))]
    return [*_first_zero(counted, sources), *_spread(counted, sources)]


def _sources(nodes: Sequence[NodeRecord]) -> Mapping[int, NodeRecord]:
    """Return for each node, by its key, the last that has given it a gradient."""
    return {edge.target_key: node for node in nodes for edge in node.edges if edge.target_key is not None}


def _is_cancelled(node: NodeRecord, source: NodeRecord | None) -> bool:
    """Whether the gradient of a vector is zero but for rounding, since the sum over all else that makes it cancels."""
    if not node.parameter or not node.outputs or len(node.outputs[0].shape) > 1 or source is None:
        return False
    return node.norm is not None and source.norm is not None and node.norm <= Limits.cancelled * source.norm != 0.0


def _first_bad(nodes: Sequence[NodeRecord], sources: Mapping[int, NodeRecord]) -> NormTrouble | None:
    for node in nodes:
        if node.norm is None or math.isfinite(node.norm):
            continue
        kind, word = ("nan", "a NaN") if math.isnan(node.norm) else ("inf", "an infinity")
        source = sources.get(node.key)
        if source is None:
            return NormTrouble(
                kind, f"{word} enters this backward", "The loss, or the gradient given to it, has it.", 0
            )
        return NormTrouble(kind, f"{source.operator} makes {word} of a finite gradient", "", source.index)
    return None


def _first_zero(nodes: Sequence[NodeRecord], sources: Mapping[int, NodeRecord]) -> Iterator[NormTrouble]:
    """Yield where a gradient becomes zero everywhere, once for each operator that does it, if parameters get it."""
    killers: dict[int, int] = {}
    hit: dict[int, list[str]] = defaultdict(list)
    by_index = {node.index: node for node in nodes}
    for node in nodes:
        if node.norm != 0.0:
            continue
        source = sources.get(node.key)
        killers[node.index] = node.index if source is None else killers.get(source.index, source.index)
        if node.parameter:
            hit[killers[node.index]].append(node.parameter)
    for index, parameters in hit.items():
        name = by_index[index].operator
        yield NormTrouble(
            "zero", f"{name} makes the gradient zero everywhere", f"So it is for {several(parameters)}.", index,
            tuple(parameters),
        )  # fmt: skip


def _spread(nodes: Sequence[NodeRecord], sources: Mapping[int, NodeRecord]) -> Iterator[NormTrouble]:
    """Yield that the gradients of parameters vanish or explode, and which operator does most of it."""
    leaves = [(node.norm, node) for node in nodes if node.parameter and node.norm]
    if len(leaves) < 2:
        return
    least, smallest = min(leaves, key=lambda pair: pair[0])
    most, largest = max(leaves, key=lambda pair: pair[0])
    if most < Limits.norm_spread * least:
        return
    if least < VANISHING:
        yield _by_operator("vanishing", largest, smallest, sources)
    if most > EXPLODING:
        yield _by_operator("exploding", smallest, largest, sources)


def _by_operator(kind: str, usual: NodeRecord, unlike: NodeRecord, sources: Mapping[int, NodeRecord]) -> NormTrouble:
    """Say which operator does most of what happens on the way to a parameter."""
    factors: dict[str, list[tuple[float, NodeRecord]]] = defaultdict(list)
    node = unlike
    while (source := sources.get(node.key)) is not None:
        if source.norm and node.norm:
            factors[source.operator].append((math.log(node.norm) - math.log(source.norm), source))
        node = source
    title = f"the gradient is {kind}: {usual.norm:.1e} at {usual.parameter}, {unlike.norm:.1e} at {unlike.parameter}"
    both = usual.parameter, unlike.parameter
    if not factors:
        return NormTrouble(kind, title, "", unlike.index, both)
    sign = 1 if kind == "exploding" else -1
    name = max(factors, key=lambda name: sign * sum(log for log, _ in factors[name]))
    logs = [log for log, _ in factors[name]]
    strongest = max(factors[name], key=lambda pair: sign * pair[0])[1]
    times = "once" if len(logs) == 1 else f"{len(logs)} times, each time by"
    factor = math.exp(min(_LARGEST_LOG, sum(logs) / len(logs)))
    text = (
        f"{name} does most of it: it multiplies the norm {times} {'by ' if len(logs) == 1 else 'about '}{factor:.2g}."
    )
    return NormTrouble(kind, title, text, strongest.index, both)
