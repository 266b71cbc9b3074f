"""D339: An optimizer is given constants with which it does not work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from ....records.optimizer_steps import OptimizerHooks
from ....records.records import Location
from ....source.call_sites import caller
from ...explanation import at
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...watch import Watch, guarded

__all__ = ["OptimizerConstants"]

# Optimizers that divide a running mean of gradients by the root of a running mean of their squares.
_ADAM = {"Adam", "AdamW", "NAdam", "RAdam", "SparseAdam"}


class ConstantsWatch(Watch):
    """Looks at the groups of each optimizer at its first step."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._hooks = OptimizerHooks(before=self._steps)
        self._looked_at: set[int] = set()
        self.found: dict[str, tuple[Location | None, Sighting]] = {}

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Listen to the optimizers of frameworks that are there by now."""
        self._hooks.look()

    @guarded
    def _steps(self, optimizer: Any) -> None:
        if id(optimizer) in self._looked_at:
            return
        self._looked_at.add(id(optimizer))
        line = caller()
        for group in optimizer.param_groups:
            name = type(optimizer).__name__
            for text in (_betas(name, group), self._eps(name, group)):
                if text and text not in self.found:
                    self.found[text] = line, self._program.sighting(group["params"])

    def _eps(self, name: str, group: dict[str, Any]) -> str:
        eps = group.get("eps")
        if not isinstance(eps, float) or group.get("fused"):  # a fused step computes in float32
            return ""
        half = any(self._adapter.to_host(leaf).dtype == numpy.float16 for leaf in group["params"] if leaf.is_leaf)
        if not half or not eps or numpy.float16(eps):
            return ""
        return (
            f"eps={eps:g} of {name}%s is 0 in float16, the dtype of its parameters: where a gradient is 0, or "
            "becomes 0 when it is squared, the step divides by 0\n"
            "  Keep the parameters in float32, and compute under autocast(); or pass eps=1e-4."
        )


def _betas(name: str, group: dict[str, Any]) -> str:
    betas = group.get("betas")
    if name not in _ADAM or betas is None or float(betas[0]) ** 2 < math.sqrt(float(betas[1])):
        return ""
    swapped = " They look swapped." if betas[0] > betas[1] else ""
    return (
        f"betas={tuple(map(float, betas))} of {name}%s average gradients over {_steps_of(betas[0])} steps and their "
        f"squares over {_steps_of(betas[1])}: Adam needs beta1 ** 2 < sqrt(beta2) to converge\n"
        f"  Pass betas=(0.9, 0.999).{swapped}"
    )


def _steps_of(beta: Any) -> str:
    return f"{1 / (1 - float(beta)):.0f}" if float(beta) < 1 else "all"


CONSTANTS = Fact("optimizer constants", ConstantsWatch, lambda watch: tuple(watch.found.items()), backward=True)


class OptimizerConstants(Rule):
    """An optimizer is given constants with which it does not work."""

    code = "D339"
    title = "constants with which an optimizer does not work"
    severity = "silent-wrong"
    needs = (CONSTANTS,)
    kind = "updates"
    explains = ("D302",)
    what = """
        Adam divides a running mean of gradients by the root of one of their squares, and adds eps to that. With betas
        in the wrong order the divisor forgets sooner than the mean: steps no longer fit the gradients they are made of.
        In float16 an eps of 1e-8 is 0, and so are squares of small gradients: 0 / 0 makes the weights NaN.

        Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, theorem 4.1.
        """
    bad = """
        model = gs.nn.Linear(4, 1)
        optimizer = gs.optim.Adam(model.parameters(), lr=1e-3, betas=(0.999, 0.9))
        (model(gs.randn(8, 4)) - 1).square().mean().backward()
        optimizer.step()
        """
    good = """
        model = gs.nn.Linear(4, 1)
        optimizer = gs.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.999))
        (model(gs.randn(8, 4)) - 1).square().mean().backward()
        optimizer.step()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[tuple[str, tuple[Location | None, Sighting]]]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for text, (location, sighting) in found:
            yield Found(text % at(location), location, *sighting)
