"""D341: A dropout drops nearly everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....records.records import Location
from ....source.call_sites import caller
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS, Fact, WatchedProgram
from ...rule_registry import Rule
from ...training.module_modes import drop_probability, tensors_in
from ...watch import Watch

__all__ = ["ExcessiveDropout"]


class DropoutWatch(Watch):
    """Notes with which probability dropouts drop while a model trains."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self.found: dict[tuple[str, float], Location | None] = {}

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note a dropout in training mode whose result is learned from."""
        probability = drop_probability(module)
        if not module.training or not probability:
            return
        if any(tensor.requires_grad for tensor in tensors_in(output, self._adapter.tensor_classes())):
            named = f"{type(module).__name__} `{self._recorder.path_of(module)}`"
            self.found.setdefault((named, probability), caller())


DROPOUTS = Fact("dropouts", DropoutWatch, lambda watch: tuple(watch.found.items()), forward=True)


class ExcessiveDropout(Rule):
    """A dropout drops nearly everything."""

    code = "D341"
    title = "a dropout that drops nearly everything"
    severity = "warning"
    needs = (DROPOUTS, LIMITS)
    kind = "dropout"
    what = """
        The argument of a dropout is the probability with which a number is dropped. In other frameworks, and in the
        article, it is the one with which it is kept: handed over as it was, it leaves a few units in a hundred.

        Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR, 2014.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(4, 64), gs.nn.Dropout(0.9), gs.nn.Linear(64, 1))
        (model(gs.randn(8, 4)) - 1).square().mean().backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(4, 64), gs.nn.Dropout(0.1), gs.nn.Linear(64, 1))
        (model(gs.randn(8, 4)) - 1).square().mean().backward()
        """
    topic = "not-learning"

    def judge(
        self, found: Iterable[tuple[tuple[str, float], Location | None]], limits: Limits
    ) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for (named, p), location in found:
            if limits.dropped < p < 1:
                text = (
                    f"{named}{at(location)} drops {p:.0%} of what it is given: p is the probability to drop, not to "
                    f"keep\n  Write Dropout({1 - p:.2g}), if {p:.0%} were to be kept."
                )
                yield text, location
