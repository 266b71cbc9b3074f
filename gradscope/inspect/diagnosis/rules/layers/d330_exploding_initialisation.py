"""D330: Weights start so large or small that the signal explodes or fades from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....output.number_format import count
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS
from ...rule_registry import Found, Rule
from ...training.initial_weights import INITIAL_WEIGHTS, InitialWeights, LayerGain

__all__ = ["ExplodingInitialisation"]


class ExplodingInitialisation(Rule):
    """Weights start so large or small that the signal explodes or fades from layer to layer."""

    code = "D330"
    title = "an initialisation that explodes or fades"
    severity = "warning"
    needs = (INITIAL_WEIGHTS, LIMITS)
    kind = "initialisation"
    explains = ("D302", "D314", "D315", "D316", "D317", "D324", "D325", "D331")
    what = """
        In the first forward pass each layer makes the signal several times larger, or smaller, before anything was
        learned: its weights are drawn with a variance that does not fit their number. Gradients grow or vanish by the
        same factors. Variance 1 / fan_in (with ReLU 2 / fan_in) keeps the size.
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
        if len(growing) >= 2 and total > limits.forward_gain and _is_there(growing, total):
            worst = max(growing, key=lambda layer: layer.gain)
            yield _found(weights, growing, worst, f"large{at(worst.written)}", total, growing[-1])
        fading = [layer for layer in weights.gains if 0 < layer.gain < 1 / limits.layer_gain]
        total = math.prod(max(layer.gain, 1e-12) for layer in fading)
        if len(fading) < 2 or not total < 1 / limits.forward_gain:
            return
        least = min(fading, key=lambda layer: layer.rms)
        given = [layer.rms / layer.gain for layer in weights.gains if layer.gain]
        # Where a norm layer or a residual connection follows on each of them, no layer is given a faded signal.
        if min(given) <= limits.faded_signal * min(1.0, max(given)):
            worst = min(fading, key=lambda layer: layer.gain)
            yield _found(weights, fading, worst, f"small{at(worst.written)}", total, least)


def _is_there(growing: list[LayerGain], total: float) -> bool:
    """Whether at least half of the growth, in orders of magnitude, is seen in a result: norm layers take it away."""
    start = growing[0].rms / growing[0].gain
    return max(layer.rms for layer in growing) >= start * math.sqrt(total)


def _found(
    weights: InitialWeights, layers: list[LayerGain], worst: LayerGain, size: str, total: float, last: LayerGain
) -> Found:
    """Say which layers start too large or small, and what becomes of the signal."""
    text = (
        f"the weights of {count(len(layers), 'layer')} start too {size}: {worst.kind} `{worst.name}` makes the signal "
        f"{worst.gain:.3g} times as large, all of them together {total:.1e} times; "
        f"at `{last.name}` it is {last.rms:.1e}\n"
        "  Draw them with a standard deviation of 1 / sqrt(fan_in): kaiming_normal_(), xavier_normal_()."
    )
    # Layers after the first of them get a signal that has grown or faded, those before it such a gradient.
    behind = weights.gains[weights.gains.index(layers[0]) :] if worst.gain > 1 else weights.gains
    return Found(text, worst.written, tuple(layer.parameter for layer in behind if layer.parameter))
