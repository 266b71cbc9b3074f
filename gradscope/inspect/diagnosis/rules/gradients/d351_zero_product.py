"""D351: Two parameters that are zero multiply each other, and neither gets a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...examination import named
from ...explanation import at
from ...flow.reshaping_operators import RESHAPING
from ...program_facts import EXAMINATION, Fact, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import source_of
from ...watch import Watch

__all__ = ["ZeroProduct"]

_WITH_BIAS = {"Addmm", "Linear"}
_PRODUCTS = {"Mul", "Mm", "Bmm", *_WITH_BIAS}
# What may stand between the two factors and leaves a zero as it is.
_KEEPING_ZERO = RESHAPING | {"NativeDropout", "Div"}


@dataclass(frozen=True)
class ZeroFactors:
    """Pairs of parameters that are zero and multiply each other.

    Attributes
    ----------
    names : tuple of str
        The parameters, the two of each pair one after the other; empty strings for those without a name.
    first, second : Location or None
        The lines that have made them.
    used : Location or None
        Where the first pair is multiplied.
    """

    names: tuple[str, ...]
    first: Location | None
    second: Location | None
    used: Location | None


class ZeroFactorWatch(Watch):
    """Looks for products of two parameters that are zero in the first backward passes."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._recorder = program.ledger.recorder
        self._names = program.watch_of(EXAMINATION).names
        self._wanted = program.limits.first_backwards
        # By the ids of a pair: in how many backward passes both were zero, the two, and the line of their product.
        self._times: dict[tuple[int, int], tuple[int, Any, Any, Location | None]] = {}
        self._moved: set[tuple[int, int]] = set()

    @property
    def found(self) -> tuple[ZeroFactors, ...]:
        """The pairs, by the lines that have made them."""
        paths = self._names.paths()
        by_line: dict[tuple[Location | None, Location | None], tuple[list[str], Location | None]] = {}
        for pair, (times, one, two, used) in self._times.items():
            if times >= self._wanted and pair not in self._moved:
                lines = self._recorder.made_at(one), self._recorder.made_at(two)
                names = [paths.get(identity, "") for identity in pair]
                by_line.setdefault(lines, ([], used))[0].extend(names)
        return tuple(ZeroFactors(tuple(names), *lines, used) for lines, (names, used) in by_line.items())

    def task_started(self, task: Any) -> None:
        """Look at the products of the graph."""
        links = self._graphs.of(task)
        pairs = {(id(one), id(two)): (one, two, used) for one, two, used in self._pairs(links)}
        for pair, (one, two, used) in pairs.items():
            if self._is_zero(one) and self._is_zero(two):
                times = self._times[pair][0] if pair in self._times else 0
                self._times[pair] = times + 1, one, two, used
            elif pair in self._times:
                self._moved.add(pair)

    def task_finished(self, task: Any) -> None:
        """Drop the pairs of which one gets a gradient on another way."""
        for pair, (_, one, two, _) in self._times.items():
            grads = [self._adapter.leaf_grad(parameter) for parameter in (one, two)]
            if any(grad is not None and numpy.any(self._adapter.to_host(grad)) for grad in grads):
                self._moved.add(pair)

    def _pairs(self, links: Mapping[int, NodeLinks]) -> Iterator[tuple[Any, Any, Location | None]]:
        """Yield the parameters that are multiplied with each other, the one that comes first in front, and where."""
        for key, link in links.items():
            last = self._factor_of(links, link)
            if last is None:
                continue
            for child, _ in link.edges:
                before = source_of(self._adapter, links, child, _KEEPING_ZERO)
                first = None if before is None else self._adapter.variable(before.node)
                if first is None and before is not None and self._adapter.key(before.node) != key:
                    first = self._factor_of(links, before)
                if first is not None and first is not last:
                    yield first, last, self._adapter.location(link.node)

    def _factor_of(self, links: Mapping[int, NodeLinks], link: NodeLinks) -> Any:
        """Return the parameter that a product has as a factor; none where it has a bias, which is no factor."""
        if operator_name(self._adapter.node_name(link.node)) not in _PRODUCTS:
            return None
        sources = [source_of(self._adapter, links, child) for child, _ in link.edges]
        leaves = [self._adapter.variable(source.node) for source in sources if source is not None]
        factors = [leaf for leaf in leaves if leaf is not None and self._adapter.is_parameter(leaf)]
        biased = len(factors) > 1 and operator_name(self._adapter.node_name(link.node)) in _WITH_BIAS
        return factors[-1] if factors and not biased else None

    def _is_zero(self, parameter: Any) -> bool:
        return len(parameter.shape) > 0 and not numpy.any(self._adapter.to_host(parameter))


ZERO_FACTORS = Fact("zero factors", ZeroFactorWatch, lambda watch: watch.found, backward=True)


class ZeroProduct(Rule):
    """Two parameters that are zero multiply each other, and neither gets a gradient."""

    code = "D351"
    title = "two zero factors"
    severity = "silent-wrong"
    needs = (ZERO_FACTORS,)
    certainty = "likely"
    kind = "initialisation"
    explains = ("D316", "D325", "D329")
    what = """
        The gradient of each factor of a product has the other one as a factor. Where both start at zero, as the two
        matrices of an adapter must not, both gradients are zero, and no step ever changes that. One of them may be
        zero: then the product starts at zero, and the other one's random numbers let it grow.
        """
    bad = """
        a, b = (gs.nn.Parameter(gs.zeros(*shape)) for shape in ((3, 2), (2, 4)))
        optimizer = gs.optim.SGD([a, b], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (gs.randn(8, 3) @ a @ b - 1).square().mean().backward()
            optimizer.step()
        """
    good = """
        a, b = gs.nn.Parameter(gs.randn(3, 2)), gs.nn.Parameter(gs.zeros(2, 4))
        optimizer = gs.optim.SGD([a, b], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (gs.randn(8, 3) @ a @ b - 1).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[ZeroFactors]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for pair in found:
            known = tuple(filter(None, pair.names))
            whose = named(known) if len(known) == len(pair.names) else "two parameters"
            lines = at(pair.first) if pair.first == pair.second else f"{at(pair.first)} and{at(pair.second)}"
            text = (
                f"{whose} are zero{lines}, and multiply each other{at(pair.used)}: the gradient of each has the "
                "other as a factor, so both stay zero for ever\n"
                "  Initialise one of the two with random numbers; the other may be zero."
            )
            yield Found(text, pair.first or pair.used, known)
