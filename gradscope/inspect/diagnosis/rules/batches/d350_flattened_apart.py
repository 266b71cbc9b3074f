"""D350: Scores and labels of a loss are flattened in different orders."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....output.number_format import format_shape
from ....records.records import Location, operator_of
from ...explanation import at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch

__all__ = ["FlattenedApart"]

_FLATTENING = {"flatten", "reshape", "view"}
_LOSSES = {"cross_entropy", "nll_loss"}


class FlattenedLoss(NamedTuple):
    """A loss whose scores and labels had these dimensions before they were flattened."""

    scores: tuple[int, ...]
    labels: tuple[int, ...]
    location: Location | None


class FlattenedWatch(Watch):
    """Remembers what was flattened, until a loss takes it."""

    operators_heard = frozenset({"log_softmax", *_LOSSES, *_FLATTENING})
    operators_of_steps = False

    def __init__(self, program: WatchedProgram) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], tuple[int, ...]]] = {}
        self.found: dict[Location | None, FlattenedLoss] = {}

    def operator_ran(self, call: Any) -> None:
        """Take what flattens, what keeps the order, and losses."""
        name = operator_of(call.name)
        if name in _LOSSES:
            self._compare(call)
        elif name in _FLATTENING and call.inputs and call.outputs:
            before, after = tuple(call.inputs[0].shape), tuple(call.outputs[0].shape)
            # The first two dimensions become one; what is behind them stays.
            if len(before) == len(after) + 1 and before[2:] == after[1:] and len(before) in (2, 3):
                self._note(call.outputs[0], before[:2])
        elif name == "log_softmax" and call.inputs and call.outputs:
            dimensions = self._dimensions(call.inputs[0])
            if dimensions:
                self._note(call.outputs[0], dimensions)

    def _note(self, tensor: Any, dimensions: tuple[int, ...]) -> None:
        key = id(tensor)
        self._known[key] = weakref.ref(tensor, lambda _: self._known.pop(key, None)), dimensions

    def _dimensions(self, tensor: Any) -> tuple[int, ...]:
        reference, dimensions = self._known.get(id(tensor), (None, ()))
        return dimensions if reference is not None and reference() is tensor else ()

    def _compare(self, call: Any) -> None:
        if len(call.inputs) < 2 or not self._known:
            return
        scores, labels = map(self._dimensions, call.inputs[:2])
        if scores and labels and scores != labels and scores == labels[::-1]:
            self.found.setdefault(call.location, FlattenedLoss(scores, labels, call.location))


FLATTENED = Fact("flattened losses", FlattenedWatch, lambda watch: tuple(watch.found.values()), operators=True)


class FlattenedApart(Rule):
    """Scores and labels of a loss are flattened in different orders."""

    code = "D350"
    title = "scores and labels that are flattened in different orders"
    severity = "silent-wrong"
    needs = (FLATTENED,)
    kind = "loss"
    what = """
        A recurrent layer without batch_first returns the steps of time first. Flattened, its scores go from step to
        step, and labels whose batch comes first from sample to sample: there are as many of both, and each score is
        held against the label of another sample.
        """
    bad = """
        scores = gs.nn.Linear(4, 3)(gs.randn(6, 2, 4))
        labels = gs.randint(0, 3, (2, 6))
        gs.nn.functional.cross_entropy(scores.reshape(-1, 3), labels.reshape(-1)).backward()
        """
    good = """
        scores = gs.nn.Linear(4, 3)(gs.randn(6, 2, 4)).transpose(0, 1)
        labels = gs.randint(0, 3, (2, 6))
        gs.nn.functional.cross_entropy(scores.reshape(-1, 3), labels.reshape(-1)).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[FlattenedLoss]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            text = (
                f"the loss{at(one.location)} is given scores that were {format_shape(one.scores)} and labels that were "
                f"{format_shape(one.labels)} before both were flattened: each score meets the label of another place\n"
                "  Transpose one of them first: scores.transpose(0, 1), or batch_first=True."
            )
            yield text, one.location
