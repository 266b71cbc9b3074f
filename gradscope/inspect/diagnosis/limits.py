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


def limits_table() -> str:
    """Return the limits as a table in Markdown."""
    lines = ["| limit | value | what is compared with it | source |", "|---|--:|---|---|"]
    for entry in fields(Limits):
        what, source = entry.metadata["what"], entry.metadata["source"]
        lines.append(f"| `{entry.name}` | {entry.default:g} | {what} | {source} |")
    return "\n".join(lines)
