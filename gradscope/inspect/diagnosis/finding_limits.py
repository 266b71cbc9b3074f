"""The numbers beyond which doctor and debugger speak: what each limits, its value, and where that comes from."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

__all__ = ["DEBUGGER", "DOCTOR", "Limits", "limit_text", "limits_from", "limits_of", "limits_table"]

DOCTOR, DEBUGGER = "doctor", "debugger"
"""Whose findings a limit is of."""


def _limit(value: float, what: str, source: str, *users: str) -> Any:
    return field(default=value, metadata={"what": what, "source": source, "users": users or (DOCTOR,)})


@dataclass(frozen=True)
class Limits:
    """The numbers beyond which doctor and debugger speak.

    Each is compared with what the run itself shows; `docs/explanations.md` has the table of them.

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> from gradscope.inspect.diagnosis.finding_limits import Limits
    >>> doctor = gi.Doctor(limits=Limits(large_update=0.1))
    """

    large_update: float = _limit(
        1.0,
        "each of the first steps moves half of the matrices by more than this times the norm that they had at first",
        "then nothing of the weights before is left; 1e-3 is usual (Karpathy, CS231n notes, 2015)",
    )
    first_steps: int = _limit(4, "how many steps are the first", "later ones follow from these")
    finite_steps: int = _limit(
        3, "how many of the first steps must be finite", "the fewest that show whether steps become smaller"
    )
    settling: float = _limit(
        0.25,
        "the last of the first steps, as a share of the first: below it, weights come from far away and arrive",
        "a rate that is too large makes steps that stay as large or grow",
    )
    small_update: float = _limit(
        1e-6,
        "every step moves half of the matrices by less than this times their own norm",
        "a thousandth of the usual 1e-3 (the same); float32 resolves 1.2e-7",
    )
    watched_steps: int = _limit(
        6, "how many steps must have been looked at before an update is called too small", "a warm-up starts small"
    )
    clipped: float = _limit(
        0.1,
        "the share that clipping leaves of the gradients' norm, below which it is blamed for small updates",
        "clipping is meant for the few gradients that are far larger than most (Pascanu et al., 2013)",
    )
    small_clipped_update: float = _limit(
        1e-5,
        "every step moves half of the matrices by less than this times their own norm, and clipping is blamed for it",
        "a hundredth of the usual 1e-3: clipping alone may make the largest steps smaller, and none so small",
    )
    few_weights: int = _limit(
        16, "how many weights a matrix has, for its steps to be measured", "the norm of fewer is chance"
    )
    usual_rate: float = _limit(
        1e-3,
        "a learning rate from which on it is not blamed for small updates",
        "Adam's default (Kingma and Ba, 2015); SGD's are larger",
    )
    dropped: float = _limit(
        0.8,
        "the probability with which a dropout drops a number",
        "0.5 for hidden units and 0.2 for inputs are usual (Srivastava et al., 2014), which keeps 0.8 of the inputs",
    )
    dead: float = _limit(
        0.5,
        "the share of a rectifier's units that are zero for a whole batch",
        "weights around zero leave half of the units active for each example: hardly one is at rest for all",
    )
    dead_beyond_chance: float = _limit(
        2.0,
        "by how many standard deviations of as many tossed coins more than that share of the units are zero",
        "where all examples are alike each unit is at rest for all or for none, as chance has it",
    )
    dead_batches: int = _limit(
        2, "of how many of the latest batches that are looked at no example activates a dead unit", "one may be unusual"
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
    near_end: float = _limit(
        0.01,
        "how near to an end of its range, as a share of half of it, a result of a tanh or sigmoid is at that end",
        "its derivative there is a fiftieth of the largest, or less",
    )
    large_input: float = _limit(
        10.0, "the largest number that a model is given, to be blamed for saturation", "ten deviations of scaled data"
    )
    underflow: float = _limit(
        0.25,
        "the share of the gradients in float16 that become zero at one node, all others being below 6e-5",
        "6e-5 is the smallest normal number of float16 (IEEE 754)",
    )
    wild_gradient: float = _limit(
        1e4,
        "by how many times the norm of a gradient is that of its matrix, to be called exploding",
        "a step of SGD at a learning rate of 1e-3 is ten times what the matrix was",
    )
    flow_ratio: float = _limit(
        1e3,
        "by how many times the gradients per element at the two ends of a model differ, to vanish or explode",
        "five sigmoids, each of which divides by four at least, make 1024",
    )
    norm_spread: float = _limit(
        1e4,
        "by how many times the norms of two parameters' gradients differ, for the debugger to call them unlike",
        "ten times the ratio of gradients per element, as norms also grow with the size of the parameter",
        DEBUGGER,
    )
    vanishing_norm: float = _limit(
        1e-7,
        "a norm of a parameter's gradient, unlike another's, below which the debugger calls it vanishing",
        "a float32 weight of 1 cannot change by less than 2^-23, about 1e-7",
        DEBUGGER,
    )
    exploding_norm: float = _limit(
        1e3,
        "a norm of a parameter's gradient, unlike another's, above which the debugger calls it exploding",
        "a step of SGD at a learning rate of 1e-3 is as long as the weight is, at a norm of 1",
        DEBUGGER,
    )
    cancelled: float = _limit(
        1e-5,
        "a bias's gradient as a share of what comes to its operator, below which the sum that makes it has cancelled",
        "some of float32's 2^-23 are left of it, as of a bias before a batch norm or of attention's keys",
        DEBUGGER,
    )
    bounded_chain: float = _limit(
        1e-4,
        "what a chain of sigmoids leaves of a gradient at most, to be called vanishing before it has run",
        "each has a slope of a quarter at most: seven leave 6.1e-5",
        DEBUGGER,
    )
    faded_signal: float = _limit(
        1e-4,
        "the root mean square of a layer's input, and its share of the largest on the way to it, that has faded",
        "a layer keeps the size of what it is given, or half of it; a tenth four times in a row leaves 1e-4",
        DEBUGGER,
    )
    sampled_backwards: int = _limit(
        4,
        "how many of the first backward passes from each line are looked into; of later ones every 2^k-th is",
        "training repeats itself: four show what the first two do, twice",
    )
    sampled_steps: int = _limit(
        8,
        "how many of the first steps of an optimizer are looked at; of later ones every 2^k-th is",
        "as `watched_steps`",
    )
    first_backwards: int = _limit(
        2,
        "in how many of the first backward passes units are alike, or saturated, to be so from the start",
        "one may be an unusual batch",
    )
    alike_units: int = _limit(
        4, "how many units a layer has, to be asked whether they are alike", "two may be meant to be"
    )
    alike_rounding: float = _limit(
        1e-5,
        "by how much rows may differ, as a share of their largest number, and be the same",
        "sums of a hundred products in float32 are rounded by about as much (100 * 2^-24)",
    )
    cleared: int = _limit(
        2,
        "how often gradients are cleared before an optimizer that never steps is one that was forgotten",
        "once may be a check before the training",
    )
    smooth: float = _limit(
        0.05,
        "by how much two difference quotients may differ, of which the step of one is eight times the other's",
        "where a derivative exists they differ by its change over the step; at a kink by a share of the slope",
    )
    derivative_error: float = _limit(
        1e-4,
        "by what share of itself a custom Function's derivative may differ from a difference quotient in float64",
        "the quotient's own error: its step, 1e-6, and 2^-53 over that",
    )
    derivative_error_as_given: float = _limit(
        2e-2,
        "the same, of a Function that takes the dtype it was given alone",
        "a step of 1e-2, and 2^-24 over that",
    )
    growing_graphs: int = _limit(
        4,
        "in how many backward passes of one line in a row a graph, or what is kept of graphs, has grown",
        "two or three may be a warm-up",
    )
    byte_rounding: float = _limit(
        1e-3, "by what share a divisor may differ from 255 or 256", "between those two there are four times as much"
    )
    shuffled_rows: int = _limit(
        8, "how many rows a permutation has, for two of them to be compared", "of fewer, two are often alike by chance"
    )
    compared_embeddings: int = _limit(
        3, "how many embeddings, and features, are compared by a product", "of two, columns have the norm 1 by chance"
    )
    unit_norm: float = _limit(1e-2, "how far from one the norm of a normalised embedding may be", "as `sum_to_one`")
    wide_heads: int = _limit(
        16,
        "over how many features the scores of an attention sum, for their scale to matter",
        "sqrt(16) makes scores four times as large, of unit variance one-hot",
    )
    sum_to_one: float = _limit(
        0.01,
        "how far from one the sum of probabilities may be",
        "probabilities that were rounded to bfloat16, of eight binary digits, sum to one within 2^-8",
    )
    out_of_reach: float = _limit(
        0.25,
        "which share of a batch's targets lie beyond an end of the last function, by more than half of its range",
        "noisy labels lie about its ends; of targets of mean 0 and variance 1 more than a third do so to a sigmoid",
    )
    one_hot: float = _limit(
        0.95,
        "the largest weight of a query, on average over the first batches, of an attention that nothing scales",
        "normal scores of unit variance put 0.2 on one of 16 keys; of trained heads few are one-hot for every query",
    )
    repeated_noise: int = _limit(
        4,
        "before how many steps of an optimizer in a row the same seed is set and the same random numbers are drawn",
        "the first steps of as many runs, which start alike, are steps of different optimizers",
    )
    mask_length: int = _limit(
        3, "how many positions an attention has, to be asked whether its mask is inverted", "of two, one row is judged"
    )
    recurrent_calls: int = _limit(
        3,
        "how often a module is called on its own result before a backward, to be one that goes over time",
        "two calls are also a target and a prediction, or two views of an example",
        DOCTOR,
        DEBUGGER,
    )


def limits_of(user: str, limits: Limits | None = None) -> dict[str, float]:
    """Return by name the limits of one's findings.

    Parameters
    ----------
    user : str
        :data:`DOCTOR` or :data:`DEBUGGER`.
    limits : Limits, optional
        The usual ones, if omitted.

    Examples
    --------
    >>> from gradscope.inspect.diagnosis.finding_limits import DEBUGGER, limits_of
    >>> limits_of(DEBUGGER)["faded_signal"]
    0.0001
    """
    values = limits or Limits()
    return {entry.name: getattr(values, entry.name) for entry in fields(Limits) if user in entry.metadata["users"]}


def limits_from(settings: Iterable[str], user: str = DOCTOR, limits: Limits | None = None) -> Limits:
    """Return limits of which some are set by ``NAME=VALUE``.

    Parameters
    ----------
    user : str
        :data:`DOCTOR` or :data:`DEBUGGER`, in whose findings they are to matter.
    limits : Limits, optional
        Those before; the usual ones, if omitted.

    Raises
    ------
    ValueError
        If one has no such form, no limit has that name, or its value is no number of its kind.

    Examples
    --------
    >>> from gradscope.inspect.diagnosis.finding_limits import limits_from
    >>> limits_from(["large_update=0.1", "watched_steps=4"]).large_update
    0.1
    """
    known = {entry.name: type(entry.default) for entry in fields(Limits)}
    mine = limits_of(user)
    values = {}
    for setting in settings:
        name, _, text = (part.strip() for part in setting.partition("="))
        if name not in known:
            near = difflib.get_close_matches(name, mine)
            raise ValueError(f"there is no limit {name!r}\nDid you mean one of {', '.join(near or mine)}?")
        if name not in mine:
            other = DEBUGGER if user == DOCTOR else DOCTOR
            command = "debug" if other == DEBUGGER else "doctor"
            raise ValueError(
                f"no finding of the {user}'s has the limit {name}\n"
                f"The {other}'s have: gradscope {command} --limit {name}={text or 'VALUE'}."
            )
        values[name] = _number(name, text, known[name])
    return replace(limits or Limits(), **values)


def _number(name: str, text: str, kind: type) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name} wants {wanted} above 0, got {text!r}\nWrite {name}=VALUE.")
    return value


def limit_text(name: str, value: float) -> str:
    """Return in a line what a limit is, and what is compared with it.

    Examples
    --------
    >>> from gradscope.inspect.diagnosis.finding_limits import limit_text
    >>> limit_text("first_steps", 5)
    'first_steps=5 (usually 4): how many steps are the first'
    """
    entry = next(entry for entry in fields(Limits) if entry.name == name)
    usual = "" if value == entry.default else f" (usually {entry.default:g})"
    return f"{name}={value:g}{usual}: {entry.metadata['what']}"


def limits_table() -> str:
    """Return the limits as a table in Markdown."""
    lines = ["| limit | value | of | what is compared with it | source |", "|---|--:|---|---|---|"]
    for entry in fields(Limits):
        what, source, users = (entry.metadata[key] for key in ("what", "source", "users"))
        lines.append(f"| `{entry.name}` | {entry.default:g} | {', '.join(users)} | {what} | {source} |")
    return "\n".join(lines)
