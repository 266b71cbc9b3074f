"""D349: A function drops in a module that is in eval mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from ....records.records import Location
from ...explanation import at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch

__all__ = ["DropoutInEval"]


# With nothing recorded, that of gradscope's own runtime is a product with the mask.
_DROPPING = {"dropout", "mul"}


class FunctionalDropoutWatch(Watch):
    """Looks for dropouts that drop while the module which calls them is in eval mode."""

    operators_heard = frozenset(_DROPPING)
    operators_of_steps = False

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._running: list[Any] = []
        self.found: dict[Location, str] = {}

    def module_entered(self, module: Any) -> None:
        """Note who calls."""
        self._running.append(module)

    def module_left(self, module: Any) -> None:
        """Note who calls no more; one that has raised has left before."""
        while self._running and self._running.pop() is not module:
            pass

    def operator_ran(self, call: Any) -> None:
        """Look at a dropout."""
        if not self._running or self._running[-1].training:
            return
        where = call.location
        # Who writes training= has thought of it, as for the uncertainty of a prediction.
        if where is None or where in self.found or "dropout(" not in where.source or "training" in where.source:
            return
        if self._drops(call):
            self.found[where] = type(self._running[-1]).__name__

    def _drops(self, call: Any) -> bool:
        if not call.inputs or not call.outputs:
            return False
        before, after = self._adapter.to_host(call.inputs[0]), self._adapter.to_host(call.outputs[0])
        return before.shape == after.shape and bool(numpy.any((after == 0) & (before != 0)))


DROPPED = Fact(
    "functional dropouts",
    FunctionalDropoutWatch,
    lambda watch: tuple(watch.found.items()),
    forward=True,
    operators=True,
)


class DropoutInEval(Rule):
    """A function drops in a module that is in eval mode."""

    code = "D349"
    title = "a functional dropout that eval() does not stop"
    severity = "silent-wrong"
    certainty = "likely"
    needs = (DROPPED,)
    kind = "mode"
    what = """
        nn.Dropout follows the mode of its module. The function dropout() follows its argument, which is True where
        nothing is said: a model that calls it drops in validation, and in use, as it does in training.
        """
    bad = """
        class Net(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = gs.nn.Linear(8, 8)
            def forward(self, x):
                return gs.nn.functional.dropout(self.layer(x), 0.5)
        with gs.no_grad():
            Net().eval()(gs.randn(8, 8))
        """
    good = """
        class Net(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = gs.nn.Linear(8, 8)
            def forward(self, x):
                return gs.nn.functional.dropout(self.layer(x), 0.5, training=self.training)
        with gs.no_grad():
            Net().eval()(gs.randn(8, 8))
        """

    def judge(self, found: Iterable[tuple[Location, str]]) -> Iterator[tuple[str, Location]]:
        """Yield what is found, and where."""
        for line, module in found:
            text = (
                f"dropout(){at(line)} drops while {module}, which calls it, is in eval mode: the function is not told "
                "of that\n  Pass training=self.training, or use nn.Dropout."
            )
            yield text, line
