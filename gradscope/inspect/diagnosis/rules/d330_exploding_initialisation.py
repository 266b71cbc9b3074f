"""D330: Weights start so large or small that the signal explodes or fades from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...output.number_format import count
from ..explanation import at
from ..limits import Limits
from ..program_facts import LIMITS
from ..rule_registry import Found, Rule
from ..training.initial_weights import INITIAL_WEIGHTS, InitialWeights

__all__ = ["ExplodingInitialisation"]


class ExplodingInitialisation(Rule):
    """Weights start so large that the signal explodes from layer to layer."""

    code = "D330"
    title = "an initialisation that explodes"
    severity = "warning"
    needs = (INITIAL_WEIGHTS, LIMITS)
    kind = "initialisation"
    explains = ("D302", "D315", "D316", "D317", "D324", "D331")
    what = """
        In the first forward pass each layer makes the signal several times larger, before anything was learned: its
        weights are drawn with a variance that does not fit their number. Gradients grow by the same factors. Variance
        1 / fan_in (with ReLU 2 / fan_in) keeps the size.
        """
    bad = """
        layers = [gs.nn.Linear(64, 64) for _ in range(6)]
        for layer in layers:
            gs.nn.init.normal_(layer.weight)
        gs.nn.Sequential(*layers)(gs.randn(8, 64)).square().mean().backward()
        """
    good = """
        layers = [gs.nn.Linear(64, 64) for _ in range(6)]
        for layer in layers:
            gs.nn.init.normal_(layer.weight, std=1 / 8)
        gs.nn.Sequential(*layers)(gs.randn(8, 64)).square().mean().backward()
        """
    topic = "vanishing"

    def judge(self, weights: InitialWeights, limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        growing = [layer for layer in weights.gains if layer.gain > limits.layer_gain]
        total = math.prod(min(layer.gain, 1e12) for layer in growing)
        if len(growing) < 2 or not total > limits.forward_gain:
            return
        worst = max(growing, key=lambda layer: layer.gain)
        last = growing[-1]
        text = (
            f"the weights of {count(len(growing), 'layer')} start too large{at(worst.written)}: {worst.kind} "
            f"`{worst.name}` makes the signal {worst.gain:.3g} times as large, all of them together {total:.1e} times; "
            f"at `{last.name}` it is {last.rms:.1e}\n"
            "  Draw them with a standard deviation of 1 / sqrt(fan_in): kaiming_normal_(), xavier_normal_()."
        )
        # What comes after the first of them is given what has grown.
        behind = weights.gains[weights.gains.index(growing[0]) :]
        yield Found(text, worst.written, tuple(layer.parameter for layer in behind if layer.parameter))
