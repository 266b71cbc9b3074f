"""D346: A backward starts at a tensor that nothing has computed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....output.number_format import count
from ....records.optimizer_steps import held_by, living_optimizers
from ....records.records import Location
from ....source.call_sites import caller, user_frames
from ...explanation import at
from ...no_gradient.no_grad_reasons import Suspect
from ...no_gradient.source_suspects import switches
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch

__all__ = ["LeafLoss"]


class LeafBackward(NamedTuple):
    """A line that calls backward() of a leaf, how often, and the lines that turn recording off."""

    location: Location | None
    times: int
    suspects: tuple[Suspect, ...]


class LeafLossWatch(Watch):
    """Notes backwards that start at leaves which no optimizer changes."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self.found: dict[Location | None, LeafBackward] = {}

    def task_started(self, task: Any) -> None:
        """Look at where it starts."""
        leaves = [self._adapter.variable(node) for node, _ in self._adapter.task_roots(task)]
        if not leaves or any(leaf is None or leaf.ndim for leaf in leaves):
            return
        optimizers = living_optimizers()
        held = {id(tensor) for optimizer in optimizers for tensor in held_by(optimizer)}
        if not optimizers or any(id(leaf) in held for leaf in leaves):
            return
        line = caller()
        known = self.found.get(line) or LeafBackward(line, 0, switches(list(user_frames(sys._getframe()))))
        self.found[line] = known._replace(times=known.times + 1)


LEAF_LOSSES = Fact("leaf losses", LeafLossWatch, lambda watch: tuple(watch.found.values()), backward=True)


class LeafLoss(Rule):
    """A backward starts at a tensor that nothing has computed."""

    code = "D346"
    title = "a loss without history whose requires_grad was set"
    severity = "error"
    needs = (LEAF_LOSSES,)
    kind = "no gradient"
    what = """
        A loss that was computed while recording was off, or that was made of numbers, has no history, and backward()
        refuses it. With requires_grad set by hand it is a leaf: backward() fills the gradient of the loss itself, and
        no parameter gets any. Setting it hides the error and not its reason.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        model(gs.ones(4, 2)).sum().backward()
        with gs.no_grad():
            loss = model(gs.ones(4, 2)).sum()
        loss.requires_grad_(True).backward()
        """
    good = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        loss = model(gs.ones(4, 2)).sum()
        loss.backward()
        """
    topic = "no-grad"

    def judge(self, found: Iterable[LeafBackward]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            why = "".join(f"\n  {suspect}" for suspect in one.suspects[:1])
            yield (
                f"backward(){at(one.location)} started {count(one.times, 'time')} at a loss that nothing has computed: "
                f"its requires_grad was set by hand, and no parameter got a gradient{why}\n"
                "  Take that away, and look why the loss has no history: recording was off, or it was made of numbers.",
                one.location,
            )
