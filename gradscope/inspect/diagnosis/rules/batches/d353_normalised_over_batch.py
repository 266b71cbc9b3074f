"""D353: Embeddings are normalised along the batch, and compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...nan.nan_producers import saved_values
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...sampled_graphs import source_of
from ...watch import Watch

__all__ = ["NormalisedOverBatch"]

_NORMS = {"LinalgVectorNorm", "Norm"}
_BETWEEN = frozenset({"ClampMin", "Expand", "Add", "Clamp"})


class SimilarityWatch(Watch):
    """Looks for products of embeddings whose norms are one along the dimension that is not summed over."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._limits = program.limits
        self._graphs = program.graphs
        self.found: dict[Location | None, tuple[tuple[int, ...], Location | None]] = {}

    def task_started(self, task: Any) -> None:
        """Look at the products of the graph."""
        links = self._graphs.of(task)
        for link in links.values():
            if operator_name(self._adapter.node_name(link.node)) != "Mm" or len(link.edges) != 2:
                continue
            divisions = [self._normalisation(links, child) for child, _ in link.edges]
            saved = saved_values(self._adapter, link.node)
            if None in divisions or not {"self", "mat2"}.issubset(saved):
                continue
            left, right = (self._adapter.to_host(saved[name]) for name in ("self", "mat2"))
            if self._is_of_columns(left) and self._is_of_columns(right.T):
                line = self._adapter.location(divisions[0])
                self.found.setdefault(line, (tuple(left.shape), self._adapter.location(link.node)))

    def _normalisation(self, links: Mapping[int, NodeLinks], key: int | None) -> Any:
        """Return the node that divides by a norm, where that is where a factor comes from."""
        source = source_of(self._adapter, links, key)
        if source is None or operator_name(self._adapter.node_name(source.node)) != "Div":
            return None
        norm = source_of(self._adapter, links, source.edges[-1][0], _BETWEEN)
        is_norm = norm is not None and operator_name(self._adapter.node_name(norm.node)) in _NORMS
        return source.node if is_norm else None

    def _is_of_columns(self, array: Any) -> bool:
        """Whether the columns of a matrix have the norm 1, and its rows, over which a product sums, have not."""
        values = numpy.asarray(array, dtype=numpy.float64)
        if values.ndim != 2 or min(values.shape) < self._limits.compared_embeddings:
            return False
        most = self._limits.unit_norm
        columns, rows = (numpy.sqrt((values**2).sum(axis)) for axis in (0, 1))
        return bool((abs(columns - 1) < most).all() and not (abs(rows - 1) < most).all())


SIMILARITIES = Fact("similarities", SimilarityWatch, lambda watch: tuple(watch.found.items()), backward=True)


class NormalisedOverBatch(Rule):
    """Embeddings are normalised along the batch, and compared with each other."""

    code = "D353"
    title = "embeddings normalised along the batch"
    severity = "silent-wrong"
    needs = (SIMILARITIES,)
    certainty = "likely"
    kind = "loss"
    what = """
        The product of two embeddings is the cosine of the angle between them where each is divided by its own norm.
        Divided along the batch instead, each feature is divided by the norm of what all examples have there: an
        embedding keeps its length, which then counts as much as its direction, and depends on the rest of the batch.
        """
    bad = """
        x, encoder = gs.randn(8, 3), gs.nn.Linear(3, 4)
        one, two = (gs.nn.functional.normalize(encoder(x + 0.1 * gs.randn(8, 3)), dim=0) for _ in range(2))
        gs.nn.functional.cross_entropy(one @ two.T / 0.1, gs.arange(8)).backward()
        """
    good = """
        x, encoder = gs.randn(8, 3), gs.nn.Linear(3, 4)
        one, two = (gs.nn.functional.normalize(encoder(x + 0.1 * gs.randn(8, 3)), dim=1) for _ in range(2))
        gs.nn.functional.cross_entropy(one @ two.T / 0.1, gs.arange(8)).backward()
        """
    topic = "not-learning"

    def judge(
        self, found: Iterable[tuple[Location | None, tuple[tuple[int, ...], Location | None]]]
    ) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for line, (shape, product) in found:
            text = (
                f"embeddings of shape {shape} are divided by their norms along dimension 0{at(line)}, the batch, and "
                f"multiplied with each other along dimension 1{at(product, line)}: that is no cosine\n"
                "  Normalise along the features: dim=1."
            )
            yield text, line
