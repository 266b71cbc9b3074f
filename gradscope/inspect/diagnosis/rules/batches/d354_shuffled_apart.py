"""D354: Inputs and labels are shuffled by different permutations."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy

from ....records.records import Location, operator_of
from ...explanation import at
from ...no_gradient.dataflow_entries import LedgerEntry
from ...no_gradient.loss_terms import COMPARING
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...sampled_graphs import BackwardSampler
from ...watch import Watch

__all__ = ["ShuffledApart"]

_LOSSES = COMPARING | {
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
    "multi_margin_loss", "poisson_nll_loss", "gaussian_nll_loss",
}  # fmt: skip
"""Rows: of fewer, two permutations are often the same."""


class Shuffle(NamedTuple):
    """A permutation that the rows of a tensor were put into: how many there are, and a digest of their order."""

    rows: int
    order: bytes
    location: Location | None


class ShuffledLoss(NamedTuple):
    """A loss of which inputs and labels were shuffled apart."""

    inputs: Shuffle
    labels: Shuffle
    location: Location | None


class ShuffleWatch(Watch):
    """Remembers which tensors were shuffled, until a loss compares what was computed from two of them."""

    operators_heard = frozenset({"index", *_LOSSES})
    operators_of_steps = False

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self._shuffles: weakref.WeakKeyDictionary[LedgerEntry, Shuffle] = weakref.WeakKeyDictionary()
        self._least = program.limits.shuffled_rows
        self._sampler = BackwardSampler(program.limits.sampled_backwards)
        self.found: dict[Location | None, ShuffledLoss] = {}

    def operator_ran(self, call: Any) -> None:
        """Take what shuffles, and losses."""
        name = operator_of(call.name)
        if name == "index":
            if len(call.inputs) == 2 and len(call.outputs) == 1:
                tensor, order = call.inputs
                self._note(tensor, order, call.outputs[0], call.location)
        elif name in _LOSSES and self._shuffles and len(call.inputs) >= 2:
            self._compare(call)

    def _note(self, tensor: Any, order: Any, result: Any, location: Location | None) -> None:
        rows = order.shape[0] if len(order.shape) == 1 and not order.is_floating_point() else 0
        if rows < self._least or not tensor.shape or tensor.shape[0] != rows or result.shape != tensor.shape:
            return
        numbers, counted = self._adapter.to_host(order), numpy.arange(rows)
        unchanged = numbers.dtype.kind not in "iu" or numpy.array_equal(numbers, counted)
        if not unchanged and numpy.array_equal(numpy.sort(numbers), counted):
            digest = hashlib.sha256(numbers.astype(numpy.int64).tobytes()).digest()
            self._shuffles[self._recorder.entry_of(result)] = Shuffle(rows, digest, location)

    def _compare(self, call: Any) -> None:
        scores, labels = call.inputs[:2]
        if labels.requires_grad or not scores.requires_grad or not self._sampler.is_due(call.location):
            return
        found = [self._shuffles_of(tensor) for tensor in (scores, labels)]
        # Of what was shuffled twice nobody can tell at a glance how it lies now.
        if any(len(shuffles) != 1 for shuffles in found):
            return
        (one,), (other,) = found
        if one.rows == other.rows and one.order != other.order:
            self.found.setdefault(call.location, ShuffledLoss(one, other, call.location))

    def _shuffles_of(self, tensor: Any) -> list[Shuffle]:
        entries = self._recorder.entry_of(tensor).ancestors()
        by_order = {shuffle.order: shuffle for entry, shuffle in self._shuffles.items() if entry in entries}
        return list(by_order.values())


SHUFFLED_LOSSES = Fact("shuffled losses", ShuffleWatch, lambda watch: tuple(watch.found.values()), operators=True)


class ShuffledApart(Rule):
    """Inputs and labels are shuffled by different permutations."""

    code = "D354"
    title = "inputs and labels that are shuffled apart"
    severity = "silent-wrong"
    needs = (SHUFFLED_LOSSES,)
    kind = "loss"
    certainty = "likely"
    what = """
        The rows of the inputs were put into one order and those of the labels into another, so that each example is
        held against the label of some other one: there is nothing to learn but how frequent the labels are. Two calls
        of randperm() give two permutations; one call, or an index into both, keeps the rows together.
        """
    bad = """
        x, y = gs.randn(32, 3), gs.arange(32) % 4
        x, y = x[gs.randperm(32)], y[gs.randperm(32)]
        gs.nn.functional.cross_entropy(gs.nn.Linear(3, 4)(x), y).backward()
        """
    good = """
        x, y = gs.randn(32, 3), gs.arange(32) % 4
        order = gs.randperm(32)
        x, y = x[order], y[order]
        gs.nn.functional.cross_entropy(gs.nn.Linear(3, 4)(x), y).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[ShuffledLoss]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for loss in found:
            text = (
                f"the loss{at(loss.location)} compares rows that are no pairs: its {loss.inputs.rows} inputs were "
                f"shuffled{at(loss.inputs.location, loss.location)}, and the labels by another permutation"
                f"{at(loss.labels.location, loss.inputs.location)}\n"
                "  Draw one permutation, and index both with it."
            )
            yield text, loss.labels.location
