"""D332: A causal mask hides the past and shows the future."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from ...adapters import Observer
from ...records.records import Location, operator_name
from ..explanation import at
from ..nan.nan_producers import saved_values
from ..program_facts import Fact, WatchedProgram
from ..rule_registry import Rule

__all__ = ["InvertedMask"]


@dataclass(frozen=True)
class FutureWeights:
    """Attention weights of which each row but the last has nothing on or before the diagonal.

    Attributes
    ----------
    length : int
        How many positions there are.
    """

    length: int
    location: Location | None


class MaskWatch(Observer):
    """Looks at the weights of attentions."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._least = program.limits.mask_length
        self.found: dict[Location | None, FutureWeights] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        for link in self._graphs.of(task).values():
            if operator_name(self._adapter.node_name(link.node)) != "Softmax":
                continue
            result = saved_values(self._adapter, link.node).get("result")
            if result is not None and _sees_only_ahead(self._adapter.to_host(result), self._least):
                line = self._adapter.location(link.node)
                self.found[line] = FutureWeights(int(result.shape[-1]), line)


def _sees_only_ahead(weights: Any, least: int) -> bool:
    """Whether all rows but the last have their weight behind the diagonal; one with nothing allowed is uniform."""
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < least:
        return False
    rows = numpy.asarray(weights, dtype=numpy.float64)[..., :-1, :]
    ahead = numpy.triu(numpy.ones(weights.shape[-2:], dtype=bool), 1)[:-1]
    return bool(numpy.isfinite(rows).all() and not (rows * ~ahead).any() and (rows * ahead).any())


INVERTED_MASKS = Fact("inverted masks", MaskWatch, lambda watch: tuple(watch.found.values()), backward=True)


class InvertedMask(Rule):
    """A causal mask hides the past and shows the future."""

    code = "D332"
    title = "a causal mask that is inverted"
    severity = "silent-wrong"
    needs = (INVERTED_MASKS,)
    kind = "mask"
    what = """
        Each position of an attention has weights for later positions alone, and none for itself and those before it. A
        boolean mask says which entries to hide for masked_fill(), and which ones to show for
        scaled_dot_product_attention(): with the wrong one, a model that predicts the next token reads it off its input,
        and can do nothing where there is none.
        """
    bad = """
        scores = gs.nn.Linear(4, 5)(gs.randn(2, 5, 4))
        past = gs.tril(gs.ones(5, 5)) == 1
        weights = gs.softmax(scores.masked_fill(past, -1e9), dim=-1)
        (weights @ gs.randn(2, 5, 3)).square().mean().backward()
        """
    good = """
        scores = gs.nn.Linear(4, 5)(gs.randn(2, 5, 4))
        past = gs.tril(gs.ones(5, 5)) == 1
        weights = gs.softmax(scores.masked_fill(~past, -1e9), dim=-1)
        (weights @ gs.randn(2, 5, 3)).square().mean().backward()
        """

    def judge(self, found: Iterable[FutureWeights]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            text = (
                f"the attention{at(one.location)} gives each of the first {one.length - 1} of {one.length} positions "
                "weights for later positions alone: the causal mask is inverted\n"
                "  masked_fill() hides where the mask is True: hand it the negation, ~mask."
            )
            yield text, one.location
