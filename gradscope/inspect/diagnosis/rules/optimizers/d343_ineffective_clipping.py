"""D343: Clipping changes no gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ...explanation import at
from ...rule_registry import Found, Rule
from ...training.gradient_clipping import IDLE_CLIPPING, IdleClipping

__all__ = ["IneffectiveClipping"]


class IneffectiveClipping(Rule):
    """Clipping changes no gradient."""

    code = "D343"
    title = "clipping that changes no gradient"
    severity = "silent-wrong"
    needs = (IDLE_CLIPPING,)
    kind = "updates"
    explains = ("D324",)
    what = """
        Clipping multiplies the gradients that are there. Between zero_grad() and backward() there are none; nor are
        there any in a generator, such as model.parameters(), that an optimizer has run through before. The steps are as
        large as without it.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            gs.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            gs.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        """

    def judge(self, idle: Iterable[IdleClipping]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for line in idle:
            if line.steps > 1:
                yield Found(f"the clipping{at(line.location)} {_why(line)}", line.location, *line.sighting)


def _why(line: IdleClipping) -> str:
    without = f"has changed no gradient in {count(line.steps, 'step')}"
    if line.early:
        return f"{without}: it comes before backward(), when there are none\n  Clip between backward() and step()."
    return (
        f"{without}: it was given no parameters that have one\n"
        "  Pass model.parameters() itself: a variable that holds this generator is empty when an optimizer has used it."
    )
