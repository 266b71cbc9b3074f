"""D328: Gradients are clipped while the scale of the loss is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ...explanation import at
from ...rule_registry import Found, Rule
from ...training.gradient_clipping import CLIPPING, ClippedGradients

__all__ = ["ClippedWhileScaled"]


class ClippedWhileScaled(Rule):
    """Gradients are clipped while the scale of the loss is in them."""

    code = "D328"
    title = "gradients clipped before they are unscaled"
    severity = "silent-wrong"
    needs = (CLIPPING,)
    kind = "updates"
    explains = ("D325",)
    what = """
        A GradScaler multiplies the loss, and divides the gradients again when its step() is called. Whoever clips
        before that clips gradients that are many thousand times as large: what is left of them is as many times too
        small.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        scaler = gs.amp.GradScaler("cpu", init_scale=1024.0)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(model(gs.randn(8, 2)).square().mean()).backward()
            gs.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        """
    good = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        scaler = gs.amp.GradScaler("cpu", init_scale=1024.0)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(model(gs.randn(8, 2)).square().mean()).backward()
            scaler.unscale_(optimizer)
            gs.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        """

    def judge(self, clips: Iterable[ClippedGradients]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for clip in clips:
            if clip.scaled:
                text = (
                    f"the gradients are clipped{at(clip.location)} while they are {clip.scale:g} times as large as "
                    f"they are, {count(clip.scaled, 'time')}: the scaler divides them later\n"
                    "  Call scaler.unscale_(optimizer) before clipping."
                )
                yield Found(text, clip.location, *clip.sighting)
