"""D322: Two optimizers step with the same gradients."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ....output.number_format import count
from ....records.optimizer_steps import OptimizerHooks, held_by
from ....records.records import Location
from ....source.call_sites import caller
from ...examination import named
from ...explanation import at
from ...program_facts import EXAMINATION, Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch, guarded

__all__ = ["TwoOptimizers"]


@dataclass
class SharedParameters:
    """Parameters with whose gradients two optimizers have stepped.

    Attributes
    ----------
    optimizers : tuple of str
        Their classes.
    lines : tuple of Location or None
        Where each stepped.
    names : dict of str to None
        The parameters.
    times : int
        How often it happened.
    """

    optimizers: tuple[str, str]
    lines: tuple[Location | None, Location | None]
    names: dict[str, None] = field(default_factory=dict)
    times: int = 0


class StepsOfOptimizers(Watch):
    """Notes who has stepped with the gradients that the last backward has left."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._names = program.watch_of(EXAMINATION).names.paths
        self._hooks = OptimizerHooks(before=self._steps, after=self._stepped)
        # The optimizers whose step() runs, the innermost last: one that wraps another takes no step of its own.
        self._running: list[Any] = []
        self._wrappers: set[int] = set()
        self._since_backward: dict[int, tuple[weakref.ref[Any], str, Location | None]] = {}
        self.found: dict[tuple[Location | None, Location | None], SharedParameters] = {}

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Forget who has stepped: there are new gradients."""
        self._hooks.look()
        self._since_backward.clear()

    @guarded
    def _steps(self, optimizer: Any) -> None:
        self._wrappers.update(map(id, self._running))
        self._running.append(optimizer)

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        while self._running and self._running.pop() is not optimizer:
            pass  # an earlier step has raised
        if id(optimizer) in self._wrappers:
            return
        line, kind, told = caller(), type(optimizer).__name__, set()
        for leaf in held_by(optimizer):
            if self._adapter.leaf_grad(leaf) is None:
                continue
            reference, other, earlier = self._since_backward.get(id(leaf), (None, None, None))
            if reference is None or reference() is None:
                self._since_backward[id(leaf)] = weakref.ref(optimizer), kind, line
            elif reference() is not optimizer:
                shared = self.found.setdefault((earlier, line), SharedParameters((str(other), kind), (earlier, line)))
                shared.names[self._names().get(id(leaf), "a leaf")] = None
                shared.times += (earlier, line) not in told
                told.add((earlier, line))


SHARED_PARAMETERS = Fact(
    "shared parameters", StepsOfOptimizers, lambda watch: tuple(watch.found.values()), backward=True
)


class TwoOptimizers(Rule):
    """Two optimizers step with the same gradients."""

    code = "D322"
    title = "two optimizers that step with the same gradients"
    severity = "silent-wrong"
    needs = (SHARED_PARAMETERS,)
    kind = "updates"
    what = """
        Two optimizers hold a parameter, and both step after the same backward: it is changed twice for one gradient,
        and each optimizer's momentum describes a path that the parameter did not take.
        """
    bad = """
        body, head = gs.nn.Linear(2, 3), gs.nn.Linear(3, 1)
        first = gs.optim.SGD(body.parameters(), lr=0.1)
        second = gs.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        for _ in range(3):
            first.zero_grad()
            second.zero_grad()
            head(body(gs.ones(4, 2))).square().mean().backward()
            first.step()
            second.step()
        """
    good = """
        body, head = gs.nn.Linear(2, 3), gs.nn.Linear(3, 1)
        first = gs.optim.SGD(body.parameters(), lr=0.1)
        second = gs.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(3):
            first.zero_grad()
            second.zero_grad()
            head(body(gs.ones(4, 2))).square().mean().backward()
            first.step()
            second.step()
        """

    def judge(self, found: Iterable[SharedParameters]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for shared in found:
            (first, second), (earlier, later) = shared.optimizers, shared.lines
            text = (
                f"{named(tuple(shared.names))}: {first}{at(earlier)} and {second}{at(later)} have both stepped with "
                f"the same gradients, {count(shared.times, 'time')}\n"
                "  Give each parameter to one optimizer."
            )
            yield text, later
