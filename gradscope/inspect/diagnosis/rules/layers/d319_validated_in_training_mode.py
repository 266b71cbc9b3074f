"""D319: A model is validated in training mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ....records.records import Location
from ...examination import named
from ...explanation import at
from ...rule_registry import Rule
from ...training.module_modes import MODES, ModuleModes

__all__ = ["ValidatedInTrainingMode"]


class ValidatedInTrainingMode(Rule):
    """A model is validated in training mode."""

    code = "D319"
    title = "a model that is validated in training mode"
    severity = "silent-wrong"
    needs = (MODES,)
    kind = "mode"
    what = """
        no_grad() does not change the mode of a module. A validation without eval() runs its dropouts, which makes its
        numbers worse than they are, and its batch norms take the validation data into their running statistics.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(2, 4), gs.nn.BatchNorm1d(4), gs.nn.Linear(4, 1))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
            with gs.no_grad():
                error = model(gs.randn(8, 2)).square().mean()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(2, 4), gs.nn.BatchNorm1d(4), gs.nn.Linear(4, 1))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            model.train()
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
            model.eval()
            with gs.no_grad():
                error = model(gs.randn(8, 2)).square().mean()
        """

    def judge(self, modules: Iterable[ModuleModes]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for module in modules:
            for line, times in module.validated.items():
                effects = [f"{named(module.norms)} took its data into the running statistics"] * bool(module.norms)
                effects += [f"{named(module.dropouts)} dropped"] * bool(module.dropouts)
                text = (
                    f"{module.name} ran {count(times, 'time')} in training mode with nothing recorded{at(line)}, "
                    f"between the steps of its optimizer, as a validation does: {', '.join(effects)}\n"
                    "  Call eval() before it, and train() after it."
                )
                yield text, line
