"""The numbers beyond which the doctor speaks: what each limits, its value, and where that comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Limits", "limits_table"]


def _limit(value: float, what: str, source: str) -> Any:
    return field(default=value, metadata={"what": what, "source": source})


@dataclass(frozen=True)
class Limits:
    """The numbers beyond which the doctor speaks.

    Each is compared with what the run itself shows; `docs/explanations.md` has the table of them.

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> from gradscope.inspect.diagnosis.limits import Limits
    >>> doctor = gi.Doctor(limits=Limits(large_update=0.1))
    """

    large_update: float = _limit(
        1.0,
        "each of the first steps moves half of the matrices by more than this times the norm that they had at first",
        "then nothing of the weights before is left; 1e-3 is usual (Karpathy, CS231n notes, 2015)",
    )
    small_update: float = _limit(
        1e-6,
        "every step moves half of the matrices by less than this times their own norm",
        "a thousandth of the usual 1e-3 (the same); float32 resolves 1.2e-7",
    )
    watched_steps: int = _limit(
        6, "how many steps must have been looked at before an update is called too small", "a warm-up starts small"
    )
    faded_rate: float = _limit(
        1e-3,
        "a learning rate, as a share of the run's own largest, that is below this in half of the steps or more",
        "cosine and linear schedules are below it in the last 2 % of the steps alone",
    )
    decay: float = _limit(
        0.05,
        "learning rate times weight decay: what a step takes from every weight",
        "0.01 * 1e-3 is AdamW's default (Loshchilov and Hutter, 2019); at 0.05 a weight is halved in 14 steps",
    )
    layer_gain: float = _limit(
        3.0,
        "by how much a layer makes the signal larger in the first forward pass, to be counted as one that grows it",
        "He and Glorot initialisation keep the size: 1 to sqrt(2) (He et al., 2015; Glorot and Bengio, 2010)",
    )
    forward_gain: float = _limit(
        1e3, "by how much all layers that grow the signal do so together", "seven layers at the limit of one"
    )
    saturated: float = _limit(
        0.9,
        "the share of the results of a tanh or sigmoid that are at the ends of its range in both first backwards",
        "unit variance puts under 1 % of a tanh's results there",
    )
    large_input: float = _limit(
        10.0, "the largest number that a model is given, to be blamed for saturation", "ten deviations of scaled data"
    )
    underflow: float = _limit(
        0.25,
        "the share of the gradients in float16 that become zero at one node, all others being below 6e-5",
        "6e-5 is the smallest normal number of float16 (IEEE 754)",
    )


def limits_table() -> str:
    """Return the limits as a table in Markdown."""
    lines = ["| limit | value | what is compared with it | source |", "|---|--:|---|---|"]
    for entry in fields(Limits):
        what, source = entry.metadata["what"], entry.metadata["source"]
        lines.append(f"| `{entry.name}` | {entry.default:g} | {what} | {source} |")
    return "\n".join(lines)
