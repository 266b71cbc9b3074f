"""D356: Data is divided by the largest value of a byte for the second time."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy

from ....records.records import Location
from ...explanation import at
from ...no_gradient.dataflow_entries import LedgerEntry
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...sampled_graphs import BackwardSampler
from ...watch import Watch

__all__ = ["ScaledTwice"]

_BYTE = (255.0, 256.0)
_LOOKED_AT = 64


class ScaledData(NamedTuple):
    """Data that was divided twice by what a byte can hold."""

    divisor: float
    largest: float
    first: Location | None
    second: Location | None


class ScalingWatch(Watch):
    """Remembers which data was divided by what a byte can hold."""

    operators_heard = frozenset({"div", "mul"})
    operators_of_steps = False

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self._scaled: weakref.WeakKeyDictionary[LedgerEntry, tuple[float, Location | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._rounding = program.limits.byte_rounding
        self._sampler = BackwardSampler(program.limits.sampled_backwards)
        self.found: dict[Location | None, ScaledData] = {}

    def operator_ran(self, call: Any) -> None:
        """Look at what data is divided by, a number and no tensor."""
        if len(call.inputs) != 1 or len(call.outputs) != 1:
            return
        data, result = call.inputs[0], call.outputs[0]
        if result is data or result.requires_grad or not result.is_floating_point() or not result.shape:
            return
        if not self._sampler.is_due(call.location):
            return
        divisor = _divisor(self._adapter.to_host(data), self._adapter.to_host(result), self._rounding)
        if divisor is None:
            return
        if self._scaled:
            self._look_back(data, result, divisor, call.location)
        self._scaled[self._recorder.entry_of(result)] = divisor, call.location

    def _look_back(self, data: Any, result: Any, divisor: float, location: Location | None) -> None:
        entries = self._recorder.entry_of(data).ancestors()
        lines = [line for entry, (by, line) in self._scaled.items() if by == divisor and entry in entries]
        largest = float(numpy.abs(self._adapter.to_host(result)).max(initial=0.0))
        # Nothing has made the numbers large again in between.
        if lines and 0.0 < largest <= (1 + self._rounding) / divisor:
            self.found.setdefault(location, ScaledData(divisor, largest, lines[0], location))


def _divisor(before: Any, after: Any, rounding: float) -> float | None:
    """Return the number that the first few elements were divided by, if it is one that a byte can hold."""
    few, made = (numpy.asarray(array).reshape(-1)[:_LOOKED_AT].astype(numpy.float64) for array in (before, after))
    if few.shape != made.shape:
        return None
    there = (made != 0) & numpy.isfinite(few) & numpy.isfinite(made)
    if not there.any():
        return None
    ratios = few[there] / made[there]
    return next((number for number in _BYTE if (abs(ratios - number) <= rounding * number).all()), None)


SCALED_DATA = Fact("scaled data", ScalingWatch, lambda watch: tuple(watch.found.values()), operators=True)


class ScaledTwice(Rule):
    """Data is divided by the largest value of a byte for the second time."""

    code = "D356"
    title = "data that is scaled down twice"
    severity = "silent-wrong"
    needs = (SCALED_DATA,)
    certainty = "likely"
    kind = "data"
    what = """
        Pixels are bytes, and are divided by 255 to lie between 0 and 1. What is divided once more lies between 0 and
        0.004: all inputs are nearly the same, and the weights of the first layer get next to no gradient. It happens
        where a loader scales already what the training loop scales again.
        """
    bad = """
        images = gs.randint(0, 256, (32, 8)).float() / 255
        labels = gs.arange(32) % 4
        gs.nn.functional.cross_entropy(gs.nn.Linear(8, 4)(images[:16] / 255), labels[:16]).backward()
        """
    good = """
        images = gs.randint(0, 256, (32, 8)).float() / 255
        labels = gs.arange(32) % 4
        gs.nn.functional.cross_entropy(gs.nn.Linear(8, 4)(images[:16]), labels[:16]).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[ScaledData]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for data in found:
            text = (
                f"data is divided by {data.divisor:g}{at(data.second)}, and was so before{at(data.first, data.second)}"
                f": its largest number is {data.largest:.2g}\n"
                "  Scale it once."
            )
            yield text, data.second
