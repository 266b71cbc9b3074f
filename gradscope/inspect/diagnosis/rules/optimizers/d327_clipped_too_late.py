"""D327: Gradients are clipped when the optimizer has used them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ....records.records import Location
from ...explanation import at
from ...rule_registry import Rule
from ...training.gradient_clipping import CLIPPING, ClippedGradients

__all__ = ["ClippedTooLate"]


class ClippedTooLate(Rule):
    """Gradients are clipped when the optimizer has used them."""

    code = "D327"
    title = "gradients clipped after the step"
    severity = "silent-wrong"
    needs = (CLIPPING,)
    kind = "updates"
    what = """
        Clipping changes gradients in place. After step(), or before the next backward(), it changes gradients that the
        optimizer has used and nobody will use again: the steps are as large as without it.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 2)).square().mean().backward()
            optimizer.step()
            gs.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
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

    def judge(self, clips: Iterable[ClippedGradients]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for clip in clips:
            if clip.late < 2 or clip.in_time:
                continue
            text = (
                f"the gradients are clipped{at(clip.location)} when the optimizer has stepped with them{at(clip.step)}"
                f", {count(clip.late, 'time')}, and never before\n  Clip between backward() and step()."
            )
            yield text, clip.location
