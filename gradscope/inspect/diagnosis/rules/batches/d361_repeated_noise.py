"""D361: Each step draws the same random numbers, as the seed is set before each."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ....records.optimizer_steps import OptimizerHooks
from ....records.records import Location
from ....source.call_sites import user_lines
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS, Fact, WatchedProgram
from ...rule_registry import Found, Rule
from ...training.random_seeds import Seed, SeedHooks
from ...watch import Watch, guarded

__all__ = ["RepeatedNoise"]


class RepeatedDraws(NamedTuple):
    """Steps of an optimizer before each of which the same numbers were drawn.

    Attributes
    ----------
    seed : int
        What was set before each.
    location : Location or None
        Where, in the function that has the loop.
    steps : int
        How many such steps came after each other.
    """

    optimizer: str
    seed: int
    location: Location | None
    steps: int


@dataclass(eq=False)
class _FollowedOptimizer:
    reference: weakref.ref[Any]
    drawn: tuple[Seed, bytes] | None = None  # before its last step: the seed, and what had become of it
    steps: int = 0
    most: RepeatedDraws | None = None


class NoiseWatch(Watch):
    """Compares, before each step of an optimizer, where the random numbers are with where they were before the last."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._seeds = SeedHooks(self._seeded)
        self._hooks = OptimizerHooks(before=self._steps)
        # By the framework: the seed that was set since the last step, and the state that it gave.
        self._latest: dict[str, tuple[Seed, bytes]] = {}
        self._followed: dict[int, _FollowedOptimizer] = {}

    def close(self) -> None:
        """Listen no more."""
        self._seeds.close()
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Listen to what there is by now."""
        self._hooks.look()
        self._seeds.look()

    @property
    def found(self) -> tuple[RepeatedDraws, ...]:
        """Of each optimizer, the most steps in a row with the same noise."""
        most = (followed.most for followed in self._followed.values())
        return tuple(draws for draws in most if draws is not None)

    @guarded
    def _seeded(self, seed: Seed) -> None:
        self._latest[seed.framework] = seed, self._state(seed.framework)

    @guarded
    def _steps(self, optimizer: Any) -> None:
        known = self._followed.get(id(optimizer))
        if known is None or known.reference() is not optimizer:
            known = self._followed[id(optimizer)] = _FollowedOptimizer(weakref.ref(optimizer))
        framework = next(base for base in type(optimizer).__mro__ if base.__name__ == "Optimizer").__module__
        drawn = self._drawn(framework.partition(".")[0])
        # Without a seed since the last step the numbers go on, and without a draw none are repeated.
        known.steps = 0 if drawn is None else known.steps + 1 if drawn == known.drawn else 1
        known.drawn = drawn
        if drawn is not None and (known.most is None or known.steps > known.most.steps):
            seed, _ = drawn
            known.most = RepeatedDraws(type(optimizer).__name__, seed.value, _in_loop(seed), known.steps)

    def _drawn(self, framework: str) -> tuple[Seed, bytes] | None:
        """Return the seed that was set since the last step, and the state now; None where nothing was drawn with it."""
        if framework not in self._latest:
            return None
        seed, before = self._latest.pop(framework)
        state = self._state(framework)
        return None if state == before else (seed, state)

    def _state(self, framework: str) -> bytes:
        package = sys.modules[framework]
        states = [package.get_rng_state()]
        if hasattr(package.cuda, "is_initialized") and package.cuda.is_initialized():
            states.append(package.cuda.get_rng_state())
        return b"".join(self._adapter.to_host(state).tobytes() for state in states)


def _in_loop(seed: Seed) -> Location | None:
    """Return the line of a seed in the innermost function that also steps the optimizer, which is what runs now."""
    running = {(line.filename, line.function) for line in user_lines()}
    return next((line for line in seed.lines if (line.filename, line.function) in running), None)


NOISE = Fact("repeated noise", NoiseWatch, lambda watch: watch.found, backward=True)


class RepeatedNoise(Rule):
    """Each step draws the same random numbers, as the seed is set before each."""

    code = "D361"
    title = "the same random numbers in every step"
    severity = "silent-wrong"
    needs = (NOISE, LIMITS)
    kind = "noise"
    what = """
        A seed that is set in the training loop starts the random numbers anew in each step: the same units are dropped,
        and the same noise is added, every time. The model learns to do without these units, and to undo this noise.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(4, 16), gs.nn.Tanh(), gs.nn.Dropout(0.2), gs.nn.Linear(16, 4))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for x in gs.randn(6, 8, 4):
            gs.manual_seed(0)
            optimizer.zero_grad()
            gs.nn.functional.mse_loss(model(x), x).backward()
            optimizer.step()
        """
    good = """
        gs.manual_seed(0)
        model = gs.nn.Sequential(gs.nn.Linear(4, 16), gs.nn.Tanh(), gs.nn.Dropout(0.2), gs.nn.Linear(16, 4))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for x in gs.randn(6, 8, 4):
            optimizer.zero_grad()
            gs.nn.functional.mse_loss(model(x), x).backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[RepeatedDraws], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in found:
            if one.steps < limits.repeated_noise:
                continue
            text = (
                f"the seed {one.seed} is set{at(one.location)} before each of {one.steps} steps of "
                f"{one.optimizer} in a row, each of which drew the same random numbers: its dropout and its noise are "
                "always the same\n  Set the seed once, before the loop."
            )
            yield Found(text, one.location)
