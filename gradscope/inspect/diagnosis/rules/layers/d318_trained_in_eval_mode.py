"""D318: A model trains in eval mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ....records.records import Location
from ...examination import named
from ...explanation import at
from ...rule_registry import Rule
from ...training.module_modes import MODES, ModuleModes

__all__ = ["TrainedInEvalMode"]


class TrainedInEvalMode(Rule):
    """A model trains in eval mode."""

    code = "D318"
    title = "a model that trains in eval mode"
    severity = "silent-wrong"
    needs = (MODES,)
    kind = "mode"
    what = """
        In eval mode a dropout hands on what it is given, and a batch norm normalises with statistics that it no longer
        updates. A validation calls eval(); without train() after it, the rest of the training goes on so. A model that
        was loaded may be in eval mode from the start.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(2, 4), gs.nn.Dropout(0.5), gs.nn.Linear(4, 1)).eval()
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(2, 4), gs.nn.Dropout(0.5), gs.nn.Linear(4, 1)).train()
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, modules: Iterable[ModuleModes]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for module in modules:
            if not module.steps_in_eval:
                continue
            effects = [f"{named(module.dropouts)} drops nothing"] * bool(module.dropouts)
            effects += [f"{named(module.norms)} keeps its statistics as they are"] * bool(module.norms)
            often = f"{module.steps_in_eval} of the {count(module.steps, 'step')} of its optimizer"
            before = module.steps_in_eval < module.steps
            left = " It trained in training mode before: a validation has left it in eval mode." * before
            text = (
                f"{module.name} was in eval mode in {often}{at(module.eval_line)}: {', '.join(effects)}.{left}\n"
                "  Call train() before the training, and again after each eval()."
            )
            yield text, module.eval_line
