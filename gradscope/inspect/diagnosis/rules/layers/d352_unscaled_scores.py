"""D352: The scores of an attention are not scaled, and its weights are all but one-hot from the start."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...finding_limits import Limits
from ...flow.reshaping_operators import RESHAPING
from ...nan.nan_producers import saved_values
from ...program_facts import LIMITS, Fact, WatchedProgram
from ...rule_registry import Rule
from ...sampled_graphs import senders, source_of, users_of
from ...watch import Watch

__all__ = ["UnscaledScores"]

_PRODUCTS = {"Bmm", "Mm"}
_MASKING = RESHAPING | {"MaskedFill", "Add", "Where"}
_BESIDE_WEIGHTS = RESHAPING | {"NativeDropout", "Mul"}


@dataclass(frozen=True)
class UnscaledAttention:
    """An attention whose scores are products that nothing divides.

    Attributes
    ----------
    width : int
        Over how many numbers each product sums.
    deviation : float
        Of the scores.
    largest : float
        The largest weight of a query, on average.
    line : Location or None
        Where the product is.
    times : int
        In how many backward passes that was so.
    """

    width: int
    deviation: float
    largest: float
    line: Location | None
    times: int = 1


class ScoresWatch(Watch):
    """Looks at the scores of attentions in the first backward passes."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._limits = program.limits
        self._backwards = 0
        self._seen: dict[Location | None, UnscaledAttention] = {}
        self._times: Counter[Location | None] = Counter()

    @property
    def found(self) -> tuple[UnscaledAttention, ...]:
        """Those that were so from the start."""
        wanted = self._limits.first_backwards
        return tuple(one for line, one in self._seen.items() if self._times[line] == wanted)

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        if not links or self._backwards >= self._limits.first_backwards:
            return
        self._backwards += 1
        above = senders(links)
        here: dict[Location | None, list[UnscaledAttention]] = {}
        for key, link in links.items():
            if operator_name(self._adapter.node_name(link.node)) != "Softmax":
                continue
            users = users_of(self._adapter, above, key, _BESIDE_WEIGHTS)
            if any(index == 0 and self._is_product(user) for user, index in users):
                found = self._unscaled(links, link)
                if found is not None:
                    here.setdefault(found.line, []).append(found)
        for line, attentions in here.items():
            # Of the layers that one line makes each has to be so.
            if all(one.largest >= self._limits.one_hot for one in attentions):
                self._seen[line] = min(attentions, key=lambda one: one.largest)
                self._times[line] += 1

    def _is_product(self, link: NodeLinks) -> bool:
        return operator_name(self._adapter.node_name(link.node)) in _PRODUCTS

    def _unscaled(self, links: Mapping[int, NodeLinks], softmax: NodeLinks) -> UnscaledAttention | None:
        """Return the attention of a softmax whose scores are a bare product of what was computed."""
        product = source_of(self._adapter, links, softmax.edges[0][0], _MASKING)
        if product is None or not self._is_product(product):
            return None
        sources = [source_of(self._adapter, links, child) for child, _ in product.edges]
        # What multiplies or divides a factor may scale it; a parameter as a factor has been scaled when it was made.
        for source in sources:
            if source is None or operator_name(self._adapter.node_name(source.node)) not in _PROJECTING:
                return None
        saved = saved_values(self._adapter, product.node)
        weights = saved_values(self._adapter, softmax.node).get("result")
        if weights is None or not {"self", "mat2"}.issubset(saved):
            return None
        left, right = (self._adapter.to_host(saved[name]).astype(numpy.float64) for name in ("self", "mat2"))
        probabilities = self._adapter.to_host(weights)
        if left.shape[-1] < self._limits.wide_heads or probabilities.shape[-1] < self._limits.mask_length:
            return None
        line = self._adapter.location(product.node)
        largest = float(probabilities.max(-1).mean(dtype=numpy.float64))
        return UnscaledAttention(left.shape[-1], float((left @ right).std()), largest, line)


_PROJECTING = {"Addmm", "Mm", "Bmm", "Linear", "Relu", "Gelu", "Tanh", "Silu", "NativeLayerNorm"}
"""What computes queries and keys: none of it divides them by the root of their width."""


UNSCALED_ATTENTIONS = Fact("unscaled attentions", ScoresWatch, lambda watch: watch.found, backward=True)


class UnscaledScores(Rule):
    """The scores of an attention are not scaled, and its weights are all but one-hot from the start."""

    code = "D352"
    title = "attention scores that are not scaled"
    severity = "warning"
    needs = (UNSCALED_ATTENTIONS, LIMITS)
    kind = "softmax"
    what = """
        The product of a query and a key sums over their width, so its size grows with the root of that. Scores are
        divided by it (Vaswani et al., "Attention Is All You Need", 2017): otherwise the softmax puts all weight on one
        key from the first step on, and where it is one-hot its derivative is zero, so queries and keys do not learn.
        """
    bad = """
        x = 12 * gs.randn(4, 8, 64)
        query, key, value = (gs.nn.Linear(64, 64) for _ in range(3))
        for _ in range(2):
            scores = query(x) @ key(x).transpose(-2, -1)
            (gs.softmax(scores, -1) @ value(x)).square().mean().backward()
        """
    good = """
        x = gs.randn(2, 8, 64)
        query, key, value = (gs.nn.Linear(64, 64) for _ in range(3))
        for _ in range(2):
            scores = query(x) @ key(x).transpose(-2, -1) / 8
            (gs.softmax(scores, -1) @ value(x)).square().mean().backward()
        """
    topic = "vanishing"

    def judge(self, found: Iterable[UnscaledAttention], limits: Limits) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            text = (
                f"the scores of an attention{at(one.line)} are products over {one.width} numbers, their standard "
                f"deviation is {one.deviation:.2g}, and of each query's weights the largest is {one.largest:.2g} on "
                "average from the start: such a softmax passes next to no gradient\n"
                f"  Divide the scores by sqrt({one.width}) = {math.sqrt(one.width):.3g}."
            )
            yield text, one.line
