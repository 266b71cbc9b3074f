"""D347: An optimizer that remembers is made anew for each step."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ....records.optimizer_steps import OptimizerHooks, held_by
from ....records.records import Location
from ....source.call_sites import caller
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS, Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...watch import Watch, guarded

__all__ = ["OptimizerMadeAnew"]


@dataclass
class OptimizerSeries:
    """The optimizers of one class that have stepped over the same parameters: how many, and the most steps of one."""

    name: str
    location: Location | None
    sighting: Sighting
    optimizers: int = 0
    steps: int = 0


class OptimizerSeriesWatch(Watch):
    """Counts optimizers that remember earlier gradients, and their steps."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._hooks = OptimizerHooks(after=self._stepped)
        self._steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.series: dict[tuple[str, int], OptimizerSeries] = {}

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Listen to the frameworks that are there by now."""
        self._hooks.look()

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        held = held_by(optimizer)
        if not held or not any(group.get("betas") or group.get("momentum") for group in optimizer.param_groups):
            return
        key = type(optimizer).__name__, id(held[0])
        series = self.series.get(key)
        if series is None:
            series = self.series[key] = OptimizerSeries(key[0], caller(), self._program.sighting(held))
        steps = self._steps[optimizer] = self._steps.get(optimizer, 0) + 1
        series.optimizers += steps == 1
        series.steps = max(series.steps, steps)


SERIES = Fact("optimizer series", OptimizerSeriesWatch, lambda watch: tuple(watch.series.values()), backward=True)


class OptimizerMadeAnew(Rule):
    """An optimizer that remembers is made anew for each step."""

    code = "D347"
    title = "an optimizer that is made anew for each step"
    severity = "silent-wrong"
    needs = (SERIES, LIMITS)
    kind = "updates"
    explains = ("D324",)
    what = """
        Momentum, and the averages by which Adam divides, are kept in the optimizer. One that is made in the training
        step forgets them: each step of Adam is its first, which moves every weight by the whole learning rate in the
        direction of a sign.
        """
    bad = """
        model = gs.nn.Linear(3, 1)
        for _ in range(8):
            optimizer = gs.optim.Adam(model.parameters(), lr=1e-3)
            optimizer.zero_grad()
            model(gs.randn(8, 3)).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Linear(3, 1)
        optimizer = gs.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(8):
            optimizer.zero_grad()
            model(gs.randn(8, 3)).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, series: Iterable[OptimizerSeries], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in series:
            if one.optimizers >= limits.watched_steps and one.steps == 1:
                yield Found(
                    f"{one.optimizers} optimizers of the class {one.name} stepped once each{at(one.location)}, over "
                    "the same parameters: what they remember of earlier gradients is lost\n"
                    "  Make the optimizer once, before the loop.",
                    one.location,
                    *one.sighting,
                )
