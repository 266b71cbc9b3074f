"""Where gradients vanish, explode, die or stop being numbers along one backward, read from the norms of its nodes."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...output.number_format import repeated_factor, several
from ...records.records import Location, NodeRecord
from ..finding_limits import Limits
from ..nan.bad_values import bad_value_text, inherited_in
from .bounded_chain import LET_THROUGH, SATURATING
from .reshaping_operators import RESHAPING

__all__ = ["EXPLODING", "VANISHING", "NormTrouble", "bad_source", "norm_trouble"]

VANISHING = Limits.vanishing_norm
"""Norms below are shown as vanishing, where nothing else is set."""

EXPLODING = Limits.exploding_norm
"""Norms above are shown as exploding, where nothing else is set."""

_FAINT = {"float16": 1e-6, "float32": 1e-35, "float64": 1e-300}
"""Norms below which what comes to a node is near the least that its type has a number for."""

_UNKNOWN = "It may have been in what the node had saved, since the forward pass: that is not known here."


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
    stop : str
        The breakpoint that stops where it is so; empty where the debugger stops there by itself.
    """

    kind: str
    title: str
    text: str
    index: int
    parameters: tuple[str, ...] = ()
    stop: str = ""


def norm_trouble(nodes: Sequence[NodeRecord], limits: Limits | None = None) -> list[NormTrouble]:
    """Return what the norms of a backward show, as far as it has run.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        In execution order; those whose norm is not known are passed over.
    limits : Limits, optional
        Beyond which there is something to say.

    Examples
    --------
    >>> from gradscope.inspect.records.records import NodeRecord
    >>> def node(index, name, norm, target, parameter=""):
    ...     edges = () if target is None else (EdgeRecord(target, 0),)
    ...     return NodeRecord(index, index, f"{name}Backward0", name, 1, "", parameter, None, edges, norm=norm)
    >>> from gradscope.inspect.records.records import EdgeRecord
    >>> chain = [node(0, "Sum", 1.0, 1), node(1, "Sqrt", 2.0, 2), node(2, "AccumulateGrad", math.nan, None, "w")]
    >>> norm_trouble(chain)[0].title
    'a NaN comes out of Sqrt, which was given none'
    """
    limits = limits or Limits()
    known = [node for node in nodes if node.norm is not None]
    sources = _sources(known)
    bad = _first_bad(known, sources)
    if bad is not None:
        return [bad]
    counted = [node for node in known if not _is_cancelled(node, sources.get(node.key), limits.cancelled)]
    spread = list(_spread(counted, sources, limits))
    return [*_first_zero(counted, sources), *spread, *([] if spread else _over_uses(counted, limits))]


def bad_source(nodes: Sequence[NodeRecord], node: NodeRecord) -> NodeRecord | None:
    """Return the node out of which the NaN or infinity came that another one was given.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        Those of the backward that have run, in execution order.
    node : NodeRecord
        The one that was given it.

    Returns
    -------
    NodeRecord or None
        None where it entered the backward, and where that is not known.
    """
    sources = _sources([one for one in nodes if one.norm is not None])
    source = sources.get(node.key)
    while source is not None and not math.isfinite(_size(source)):
        source = sources.get(source.key)
    return source


def _sources(nodes: Sequence[NodeRecord]) -> Mapping[int, NodeRecord]:
    """Return for each node, by its key, the one from which the largest part of its gradient has come."""
    sources: dict[int, NodeRecord] = {}
    sizes: dict[int, float] = {}
    for node in nodes:
        for place, edge in enumerate(node.edges):
            size = _sent(node, place)
            if edge.target_key is not None and size >= sizes.get(edge.target_key, 0.0):
                sources[edge.target_key], sizes[edge.target_key] = node, size
    return sources


def _sent(node: NodeRecord, place: int) -> float:
    """Return how much a node sends along an edge: without bound where that is known not to be finite."""
    produced = node.grad_inputs or ()
    summary = produced[place] if place < len(produced) else None
    return math.inf if summary is not None and (summary.nans or summary.infs) else _size(node)


def _size(node: NodeRecord | None) -> float:
    if node is None or node.norm is None:
        return 0.0
    return math.inf if math.isnan(node.norm) else node.norm


def _is_cancelled(node: NodeRecord, source: NodeRecord | None, share: float) -> bool:
    """Whether the gradient of a vector is zero but for rounding, since the sum over all else that makes it cancels."""
    if not node.parameter or not node.outputs or len(node.outputs[0].shape) > 1 or source is None:
        return False
    return node.norm is not None and source.norm is not None and node.norm <= share * source.norm != 0.0


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
        inherited = inherited_in(source)
        text = "" if inherited is not None else _UNKNOWN
        return NormTrouble(kind, bad_value_text(source.operator, kind, inherited), text, source.index)
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
        last, text = by_index[index], f"So it is for {several(parameters)}."
        if _is_faint(last):
            yield _run_dry(last, text, tuple(parameters), sources)
        else:
            title = f"{last.operator} makes the gradient zero everywhere"
            yield NormTrouble("zero", title, text, index, tuple(parameters))


def _is_faint(node: NodeRecord) -> bool:
    """Whether so little comes to a node that its type has no smaller numbers for what the node makes of it."""
    least = _FAINT.get(node.outputs[0].dtype, _FAINT["float32"]) if node.outputs else _FAINT["float32"]
    return 0.0 < _size(node) < least


def _run_dry(
    last: NodeRecord, text: str, parameters: tuple[str, ...], sources: Mapping[int, NodeRecord]
) -> NormTrouble:
    """Say that the gradient has become zero little by little, and which operator does most of it."""
    first = last
    while (source := sources.get(first.key)) is not None:
        first = source
    index, why = _most_by_factors("vanishing", _factors_to(last, sources)) or (last.index, "")
    sizes = f"{first.norm:.1e} at {first.operator}, {last.norm:.1e} at #{last.index}"
    title = f"the gradient is vanishing until it is 0: {sizes}"
    return NormTrouble("vanishing", title, f"{why}\n{text}".lstrip(), index, parameters)


def _spread(nodes: Sequence[NodeRecord], sources: Mapping[int, NodeRecord], limits: Limits) -> Iterator[NormTrouble]:
    """Yield that the gradients of parameters vanish or explode, and which operator does most of it."""
    leaves = [(node.norm, node) for node in nodes if node.parameter and node.norm]
    if len(leaves) < 2:
        return
    least, smallest = min(leaves, key=lambda pair: pair[0])
    most, largest = max(leaves, key=lambda pair: pair[0])
    if most < limits.norm_spread * least:
        return
    if least < limits.vanishing_norm:
        yield _by_operator("vanishing", largest, smallest, sources, f"0 < norm < {limits.vanishing_norm:g}")
    if most > limits.exploding_norm:
        yield _by_operator("exploding", smallest, largest, sources, f"norm > {limits.exploding_norm:g}")


def _over_uses(nodes: Sequence[NodeRecord], limits: Limits) -> Iterator[NormTrouble]:
    """Yield that the gradient vanishes or explodes from one use of a parameter to the next, which its own norm hides.

    A parameter that is used in each step of a sequence gets the sum over all steps, of which a few make nearly all.
    """
    uses = _uses(nodes, limits.recurrent_calls)
    changes = [(_log_ratio(users[-1], users[0]), leaf, users) for leaf, users in uses if _changes(users, limits)]
    if not changes:
        return
    change, leaf, users = max(changes, key=lambda found: abs(found[0]))
    first, last = users[0], users[-1]
    kind, condition, effect = (
        ("vanishing", f"0 < norm < {limits.vanishing_norm:g}", "what the first of them did is hardly learned")
        if change < 0
        else ("exploding", f"norm > {limits.exploding_norm:g}", "what the first of them did drowns out the rest")
    )
    title = (
        f"the gradient is {kind} over {len(users)} uses of {leaf.parameter}: from {first.norm:.1e} to {last.norm:.1e}"
    )
    factor = math.exp(change / (len(users) - 1))
    text = f"From each use to the one before it the norm is multiplied by about {factor:.2g}: {effect}."
    stop = f"op:{first.operator} if {condition}"
    yield NormTrouble(kind, title, text, first.index, (leaf.parameter,), stop)


def _changes(users: Sequence[NodeRecord], limits: Limits) -> bool:
    first, last = _size(users[0]), _size(users[-1])
    if not first or not last:
        return False
    vanishes = last < min(limits.vanishing_norm, first / limits.norm_spread)
    return vanishes or last > max(limits.exploding_norm, first * limits.norm_spread)


def _uses(nodes: Sequence[NodeRecord], least: int) -> Iterator[tuple[NodeRecord, list[NodeRecord]]]:
    """Yield the parameters that one line uses again and again, with the nodes that do, in the order of the backward."""
    by_key = {node.key: node for node in nodes}
    uses: dict[tuple[int, Location | None], list[NodeRecord]] = defaultdict(list)
    for node in nodes:
        if node.operator in RESHAPING:
            continue
        for leaf in {_leaf_at(edge.target_key, by_key) for edge in node.edges}:
            if leaf is not None:
                uses[leaf, node.location].append(node)
    for (leaf, _), users in uses.items():
        if len(users) >= least:
            yield by_key[leaf], users


def _leaf_at(key: int | None, by_key: Mapping[int, NodeRecord]) -> int | None:
    """Return the key of the parameter that a gradient comes to, past what only gives it another shape."""
    node = None if key is None else by_key.get(key)
    while node is not None and node.operator in RESHAPING and node.edges:
        target = node.edges[0].target_key
        node = None if target is None else by_key.get(target)
    return None if node is None or not node.parameter else node.key


def _by_operator(
    kind: str, usual: NodeRecord, unlike: NodeRecord, sources: Mapping[int, NodeRecord], condition: str
) -> NormTrouble:
    """Say which operator does most of what happens on the way to a parameter; of such norms `condition` is true."""
    title = f"the gradient is {kind}: {usual.norm:.1e} at {usual.parameter}, {unlike.norm:.1e} at {unlike.parameter}"
    index, text = _most_of(kind, unlike, sources)
    return NormTrouble(kind, title, text, index, (usual.parameter, unlike.parameter), f"param:* if {condition}")


def _most_of(kind: str, leaf: NodeRecord, sources: Mapping[int, NodeRecord]) -> tuple[int, str]:
    """Return the node of the operator that does most of it, and what it does; of the last one, what its input does."""
    user = _user_of(leaf, sources)
    if user is None:
        return leaf.index, ""
    sign = 1 if kind == "exploding" else -1
    factors = _factors_to(user, sources)
    on_the_way = sum(log for logs in factors.values() for log, _ in logs)
    if sign * _log_ratio(leaf, user) > max(0.0, sign * on_the_way):
        size = "next to nothing" if sign < 0 else "very large"
        return (
            user.index,
            f"{user.norm:.1e} comes to {user.operator}, whose other input is {size}: look at the forward.",
        )
    return _most_by_factors(kind, factors) or (leaf.index, "")


def _most_by_factors(kind: str, factors: Mapping[str, list[tuple[float, NodeRecord]]]) -> tuple[int, str] | None:
    """Return the strongest node of the operator that does most of it, and what it does; None where nothing is known."""
    if not factors:
        return None
    sign = 1 if kind == "exploding" else -1
    name = max(factors, key=lambda name: sign * sum(log for log, _ in factors[name]))
    logs = [log for log, _ in factors[name]]
    strongest = max(factors[name], key=lambda pair: sign * pair[0])[1]
    where = several([f"`{path}`" for path in _paths(node.module for _, node in factors[name])])
    inside = f" in {where}" if where else ""
    text = f"{name}{inside} does most of it: it multiplies the norm {repeated_factor(logs)}."
    return strongest.index, f"{text}\n{LET_THROUGH}" if kind == "vanishing" and name in SATURATING else text


def _paths(modules: Iterable[str]) -> list[str]:
    """Return the paths of modules, of those that differ by their numbers alone as one: ``blocks.*.fc1``."""
    alike: dict[str, dict[str, None]] = {}
    for module in modules:
        if module:
            alike.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "*", module), {})[module] = None
    told: list[str] = []
    for pattern, paths in alike.items():
        told += [pattern] if len(paths) > 1 and pattern.strip("*.") else list(paths)
    return told


def _user_of(leaf: NodeRecord, sources: Mapping[int, NodeRecord]) -> NodeRecord | None:
    """Return the operator that uses a leaf, past those that only give it another shape."""
    user = sources.get(leaf.key)
    while user is not None and user.operator in RESHAPING:
        user = sources.get(user.key)
    return user


def _factors_to(node: NodeRecord, sources: Mapping[int, NodeRecord]) -> dict[str, list[tuple[float, NodeRecord]]]:
    """Return by operator the logarithms of what those on the way to a node multiply the norm by, and their nodes."""
    factors: dict[str, list[tuple[float, NodeRecord]]] = defaultdict(list)
    while (source := sources.get(node.key)) is not None:
        if source.norm and node.norm:
            factors[source.operator].append((_log_ratio(node, source), source))
        node = source
    return factors


def _log_ratio(node: NodeRecord, source: NodeRecord) -> float:
    """Return the logarithm of what a norm is multiplied by from a node to one that it leads to; 0 where one is zero."""
    return math.log(node.norm) - math.log(source.norm) if node.norm and source.norm else 0.0
