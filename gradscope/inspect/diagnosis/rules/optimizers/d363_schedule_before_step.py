"""D363: A schedule is stepped before its optimizer."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....records.optimizer_steps import OptimizerHooks
from ....records.records import Location
from ....source.call_sites import caller
from ...explanation import at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...training.update_sizes import schedulers_of
from ...watch import Watch, guarded

__all__ = ["ScheduleBeforeStep"]


class EarlySchedule(NamedTuple):
    """A schedule that had been stepped when its optimizer took its first step.

    Attributes
    ----------
    planned, rate : float
        The learning rate that the schedule begins with, and that of the first step.
    """

    schedule: str
    optimizer: str
    planned: float
    rate: float
    location: Location | None


class ScheduleWatch(Watch):
    """Looks at the schedules of each optimizer when it steps for the first time."""

    def __init__(self, program: WatchedProgram) -> None:
        self._recorder = program.ledger.recorder
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        # The first backward, from which on steps are heard of, may be that of the first step's own closure.
        self._hooks = OptimizerHooks(before=self._steps, after=self._stepped.add)
        self.found: list[EarlySchedule] = []

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Listen to the optimizers that there are by now."""
        self._hooks.look()

    @guarded
    def _steps(self, optimizer: Any) -> None:
        if optimizer in self._stepped:
            return
        self._stepped.add(optimizer)
        group = optimizer.param_groups[0]
        # An optimizer that goes on from a checkpoint has a state; after a second backward a GradScaler may have left
        # the first step out, and a schedule that was stepped all the same has come in the right order.
        if "initial_lr" not in group or optimizer.state or self._recorder.backwards > 1:
            return
        for schedule in schedulers_of(optimizer):
            if getattr(schedule, "last_epoch", 0) == 1 and getattr(schedule, "_step_count", 0) == 2:
                rates = float(group["initial_lr"]), float(group["lr"])
                names = type(schedule).__name__, type(optimizer).__name__
                self.found.append(EarlySchedule(*names, *rates, caller()))


SCHEDULES = Fact("early schedules", ScheduleWatch, lambda watch: tuple(watch.found), backward=True)


class ScheduleBeforeStep(Rule):
    """A schedule is stepped before its optimizer."""

    code = "D363"
    title = "a schedule that is stepped before its optimizer"
    severity = "warning"
    needs = (SCHEDULES,)
    kind = "updates"
    what = """
        A schedule sets its first learning rate when it is made. Stepped before the optimizer, it is one value ahead:
        the first is never used, and a warm-up or a decay begins one step, or one epoch, too early.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        scheduler = gs.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            scheduler.step()
            optimizer.step()
        """
    good = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        scheduler = gs.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
            scheduler.step()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[EarlySchedule]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            text = (
                f"{one.schedule} was stepped before the first step of {one.optimizer}{at(one.location)}, which has the "
                f"learning rate {one.rate:.3g}: the {one.planned:.3g} that the schedule begins with is never used\n"
                "  Call scheduler.step() after optimizer.step()."
            )
            yield text, one.location
