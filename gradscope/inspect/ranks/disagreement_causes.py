"""Why ranks came to disagree: the likely causes of a disagreement, the surest first, with their lines and remedies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..output.number_format import numbered
from ..recording.file.step_rows import StepRecord
from ..records.before_step.step_looks import FROZEN, OUTSIDE, REDUCED
from .agreement import Disagreement
from .replicas import order_difference

__all__ = ["LikelyCause", "Site", "likely_cause"]

_ROUNDING = 1e-5
"""How far norms are apart, relatively, where sums were only added up in another order."""


class Site(NamedTuple):
    """A line that has to do with a disagreement.

    Attributes
    ----------
    place : str
        ``'file:line'``, as the program was started there.
    what : str
        What it does: ``'backward()'``.
    ranks : tuple of int
        On which ranks.
    """

    place: str
    what: str
    ranks: tuple[int, ...]


class LikelyCause(NamedTuple):
    """Why ranks disagree, as far as can be told.

    Attributes
    ----------
    text, remedy : str
        A sentence each; empty where nothing is known.
    sites : tuple of Site
        The lines to look at, the first before others.
    """

    text: str = ""
    remedy: str = ""
    sites: tuple[Site, ...] = ()


def likely_cause(found: Disagreement) -> LikelyCause:
    """Return the likely cause of a disagreement, where it is, and what to do.

    Parameters
    ----------
    found : Disagreement
        What :func:`.agreement` has found.
    """
    for cause in _CAUSES[found.what]:
        told = next(cause(found), None)
        if told is not None:
            return told
    return LikelyCause()


Cause = Callable[[Disagreement], Iterator[LikelyCause]]
Line = Callable[[StepRecord], str]


# --- lines ---


def _sites(
    what: str, steps: Mapping[int, StepRecord], line: Line, ranks: Iterable[int] | None = None
) -> tuple[Site, ...]:
    """Return where ranks do something: one site for those that do it on one line; none where it is not known."""
    places: dict[str, list[int]] = defaultdict(list)
    for rank in steps if ranks is None else ranks:
        if rank in steps and line(steps[rank]):
            places[line(steps[rank])].append(rank)
    return tuple(Site(place, what, tuple(held)) for place, held in places.items())


def _step(step: StepRecord) -> str:
    return step.look.line


def _last_forward(step: StepRecord) -> str:
    return step.look.passes[-1].forward if step.look.passes else ""


def _first_forward(step: StepRecord) -> str:
    return step.look.passes[0].forward if step.look.passes else ""


def _last_backward(step: StepRecord) -> str:
    return step.look.passes[-1].called if step.look.passes else ""


def _call_of(name: str) -> Line:
    """Return what tells the line that calls the module with a tensor; else the forward before the step."""

    def line(step: StepRecord) -> str:
        called = next((held.called for held in step.look.tensors if held.name == name), "")
        return called or _last_forward(step)

    return line


# --- parameters ---


def _began_apart(found: Disagreement) -> Iterator[LikelyCause]:
    if found.before or found.tensor is None:
        return
    order = order_difference(found.steps)
    if found.tensor.kind == REDUCED and order:
        yield LikelyCause(
            f"{order}, and DistributedDataParallel makes equal, and reduces, what stands at one place",
            "Define modules, and add parameters, in one order on all ranks.",
            _sites("first forward", found.steps, _first_forward),
        )
    elif found.tensor.kind in (REDUCED, FROZEN):
        often = _written_more_often(found)
        told = f": {found.name} was written more often on {numbered('rank', often)}" if often else ""
        yield LikelyCause(
            f"the parameters were changed on some ranks after DistributedDataParallel had made them equal{told}",
            "Initialise and load weights before the model is wrapped, or on all ranks alike.",
            _sites("first forward, before which it was changed", found.steps, _first_forward, often or None),
        )
    else:
        seeds = _seeds(found)
        differ = f", and the seeds are {seeds}" if seeds else ""
        yield LikelyCause(
            f"{found.name} is outside of DistributedDataParallel, which would have made it equal{differ}",
            "Wrap the module that holds it as well, or the whole model at once.",
            _sites("calls its module", found.steps, _call_of(found.name)),
        )


def _written_more_often(found: Disagreement) -> list[int]:
    """Return the ranks that had written a parameter more often than others before their first step."""
    versions = {rank: step.look.version(found.name) for rank, step in found.steps.items()}
    known = {rank: version for rank, version in versions.items() if version is not None}
    if len(known) < len(versions) or len(set(known.values())) == 1:
        return []
    return [rank for rank, version in known.items() if version > min(known.values())]


def _seeds(found: Disagreement) -> str:
    """Return the seeds of the ranks, where they differ."""
    seeds = sorted({str(step.look.facts.get("seed")) for step in found.steps.values()})
    return " and ".join(seeds) if len(seeds) > 1 else ""


def _stepped_apart(found: Disagreement) -> Iterator[LikelyCause]:
    steps = found.before or found.steps
    rates = {rank: step.look.facts.get("lr") for rank, step in steps.items()}
    if len(set(map(str, rates.values()))) > 1:
        told = ", ".join(f"{_rate(rate)} on rank {rank}" for rank, rate in rates.items())
        yield LikelyCause(
            f"the optimizers step differently: the learning rate is {told}",
            "Give all ranks the same learning rate; a scheduler that follows a loss must be given the same loss.",
            _sites("step()", steps, _step),
        )
    for option in sorted({option for step in steps.values() for option in step.look.options}):
        held = {rank: step.look.options.get(option) for rank, step in steps.items()}
        if len(set(held.values())) > 1:
            told = ", ".join(f"{value} on rank {rank}" for rank, value in held.items())
            yield LikelyCause(
                f"the optimizers step differently: {option} is {told}",
                "Give the optimizers of all ranks the same options.",
                _sites("step()", steps, _step),
            )


def _rate(rates: object) -> str:
    return ", ".join(f"{rate:g}" for rate in rates) if isinstance(rates, list) else "unknown"


def _left_out_of_an_optimizer(found: Disagreement) -> Iterator[LikelyCause]:
    without = [
        rank
        for rank, step in found.steps.items()
        if not any(held.stepped for held in step.look.tensors if held.name == found.name)
    ]
    if without and len(without) < len(found.steps):
        yield LikelyCause(
            f"the optimizer of {numbered('rank', without)} does not hold {found.name}",
            "Make the optimizer of the same parameters on all ranks.",
            _sites("step() without it", found.steps, _step, without),
        )


def _skipped(found: Disagreement) -> Iterator[LikelyCause]:
    skips = {rank: step.look.skipped for rank, step in found.steps.items()}
    least = min(map(len, skips.values()))
    ranks = [rank for rank, skipped in skips.items() if len(skipped) > least]
    if ranks:
        loss = skips[ranks[0]][-1].loss
        told = f", whose loss was {loss}" if loss else ""
        yield LikelyCause(
            f"{numbered('rank', ranks)} skipped an iteration that others ran: no backward followed its forward{told}",
            "Skip on all ranks or on none: all_reduce the condition first.",
            (
                *_sites(
                    "forward that no backward follows", found.steps, lambda step: step.look.skipped[-1].forward, ranks
                ),
                *_sites("backward()", found.steps, _last_backward, [rank for rank in skips if rank not in ranks]),
            ),
        )


def _left_out_a_step(found: Disagreement) -> Iterator[LikelyCause]:
    backwards = {rank: step.look.facts.get("backwards", 0) for rank, step in found.steps.items()}
    if len(set(backwards.values())) > 1:
        most = max(backwards, key=backwards.__getitem__)
        least = min(backwards.values())
        yield LikelyCause(
            f"rank {most} has left out a step that others took: before its step {found.steps[most].look.number} it ran "
            f"{backwards[most]} backwards, others {least}",
            "Let all ranks step, or none: what they decide by must be reduced first.",
            (
                *_sites("backward() that no step follows", found.steps, _unused_backward(found, least), [most]),
                *_sites("step()", found.steps, _step, [rank for rank, count in backwards.items() if count == least]),
            ),
        )


def _unused_backward(found: Disagreement, least: int) -> Line:
    """Return what tells the last backward of a rank that was to be followed by a step as others' was."""
    usual = next(step for step in found.steps.values() if step.look.facts.get("backwards", 0) == least)
    behind = max(len(usual.look.passes), 1) + 1

    def line(step: StepRecord) -> str:
        return step.look.passes[-behind].called if len(step.look.passes) >= behind else ""

    return line


def _in_a_gap(found: Disagreement) -> Iterator[LikelyCause]:
    """Tell that the steps in which ranks came to disagree are not in the recordings."""
    before = {rank: step.look.number for rank, step in found.before.items()}
    rank = max(before, key=lambda rank: found.steps[rank].look.number - before[rank], default=None)
    if rank is not None and found.steps[rank].look.number - before[rank] > 1:
        yield LikelyCause(
            f"they parted after step {before[rank]} and before step {found.steps[rank].look.number}; the steps between "
            "have been left out of the recordings",
            "Give the recordings more room (--budget, --rows, --age), or run `gradscope check --ranks`, which compares "
            "every step.",
        )


def _written_alone(found: Disagreement) -> Iterator[LikelyCause]:
    """Tell that some ranks have written a parameter after a step, and others have not."""
    for which, what in ((0, "between step() and the next forward"), (1, "between the forward and step()")):
        wrote = [
            rank
            for rank, step in found.steps.items()
            if any(step.look.tensors[place].name == found.name for place in step.look.written[which])
        ]
        if wrote and len(wrote) < len(found.steps):
            before = _sites("step() after which it was written", found.before, _step, wrote)
            forward = _sites("forward before which it was written", found.steps, _first_forward, wrote)
            after = _sites("forward after which it was written", found.steps, _first_forward, wrote)
            step = _sites("step() before which it was written", found.steps, _step, wrote)
            yield LikelyCause(
                f"{numbered('rank', wrote)} wrote into {found.name} {what}, and others did not",
                "Write on all ranks alike, or on one and broadcast it.",
                after + step if which else before + forward,
            )
            return


def _written_apart(found: Disagreement) -> Iterator[LikelyCause]:
    yield LikelyCause(
        "the gradients agreed in the step before: the optimizers hold different state, or one rank has written into "
        "the parameter",
        "Look for what one rank alone does between two steps: `if rank == 0:` around a load, a clamp or a decay.",
        _sites("step()", found.before or found.steps, _step),
    )


# --- gradients ---


def _missing(found: Disagreement) -> Iterator[LikelyCause]:
    without = [rank for rank, held in found.held.items() if held.checksum is None]
    if without and len(without) < len(found.held):
        yield LikelyCause(
            f"{found.name} has no gradient on {numbered('rank', without)}: it was not used there",
            "Use it on all ranks, or reduce a zero for it where it was not used "
            "(DistributedDataParallel does with find_unused_parameters=True).",
            (
                *_sites("forward without it", found.steps, _last_forward, without),
                *_sites(
                    "calls its module",
                    found.steps,
                    _call_of(found.name),
                    [rank for rank in found.held if rank not in without],
                ),
            ),
        )


def _outside(found: Disagreement) -> Iterator[LikelyCause]:
    if found.tensor is None or found.tensor.kind != OUTSIDE:
        return
    if any(held.kind == REDUCED for step in found.steps.values() for held in step.look.tensors):
        yield LikelyCause(
            f"{found.name} is outside of DistributedDataParallel: nothing reduces its gradient",
            "Wrap the module that holds it as well; what is added to a model after it was wrapped is not known there.",
            _sites("calls its module", found.steps, _call_of(found.name)),
        )
        return
    first = next(iter(found.steps.values()))
    whole = len(found.others) + 1 == sum(bool(there) for there in first.look.present)
    seeds = _seeds(found)
    together = _equal_ranks(found)
    if whole and together:
        told = "; ".join(numbered("rank", ranks) for ranks in together)
        yield LikelyCause(
            f"the gradients are reduced in parts of the job: {told}",
            "Reduce in a process group that has all ranks which train the model, such as the default one.",
            (
                *_sites("backward() after which they are reduced", found.steps, _last_backward),
                *_sites("step()", found.steps, _step),
            ),
        )
    elif whole:
        told = f"; the seeds are {seeds}, so that dropout differs too" if seeds else ""
        yield LikelyCause(
            f"nothing reduces the gradients, neither DistributedDataParallel nor an all-reduce of all of them{told}",
            "Wrap the model in DistributedDataParallel; seed alike where ranks should draw alike.",
            _sites("backward()", found.steps, _last_backward),
        )
    else:
        yield LikelyCause(
            f"the all-reduce of the program leaves out {found.name}: other gradients agree",
            "Reduce the gradients of all parameters, or wrap the model in DistributedDataParallel.",
            (
                *_sites("backward() after which it is to be reduced", found.steps, _last_backward),
                *_sites("step()", found.steps, _step),
            ),
        )


def _equal_ranks(found: Disagreement) -> list[list[int]]:
    """Return the ranks by what they hold, where there are several in each part; else nothing."""
    parts: dict[int | None, list[int]] = defaultdict(list)
    for rank, held in found.held.items():
        parts[held.checksum].append(rank)
    return list(parts.values()) if min(map(len, parts.values())) > 1 else []


def _unfrozen(found: Disagreement) -> Iterator[LikelyCause]:
    if found.tensor is not None and found.tensor.kind == FROZEN:
        yield LikelyCause(
            f"{found.name} required no grad when DistributedDataParallel wrapped the model: nothing reduces its "
            "gradient",
            "Unfreeze it before the model is wrapped, or wrap the model again.",
            _sites("calls its module", found.steps, _call_of(found.name)),
        )


def _from_an_earlier_backward(found: Disagreement) -> Iterator[LikelyCause]:
    def earlier(step: StepRecord) -> str | None:
        """Return the line of the earlier backward; None where the last one reached the parameter, or none did."""
        passes, reaches = step.look.passes, step.look.reaches
        if not passes or reaches(passes[-1], found.name):
            return None
        return next((one.called for one in reversed(passes[:-1]) if reaches(one, found.name)), None)

    ranks = [rank for rank, step in found.steps.items() if earlier(step) is not None]
    if ranks:
        yield LikelyCause(
            f"the gradient of {found.name} on {numbered('rank', ranks)} came in an earlier backward of the iteration, "
            "under no_sync(); the last one, which is reduced, did not use it",
            "Use all parameters in the last backward before a step, or reduce in every one of them.",
            (
                *_sites("the earlier backward()", found.steps, lambda step: earlier(step) or "", ranks),
                *_sites("the last one", found.steps, _last_backward, ranks),
            ),
        )


def _waiting_bucket(found: Disagreement) -> Iterator[LikelyCause]:
    waited = {rank: name for rank, step in found.steps.items() if (name := _waited_for(step))}
    if not waited:
        return
    name = next(iter(waited.values()))
    ranks = [rank for rank, other in waited.items() if other == name]
    told = f"the backward on {numbered('rank', ranks)} did not reach {name}, which DistributedDataParallel waits for: "
    told += f"it has not reduced the bucket with {found.name}"
    remedy = "Use all parameters in each forward, or pass find_unused_parameters=True."
    if any(found.steps[rank].look.is_checkpointed(name) for rank in ranks):
        told += (
            "; a re-entrant checkpoint calls its module, and hands no gradient on where no input of it requires grad"
        )
        remedy = "Pass use_reentrant=False to checkpoint(), or let an input of it require grad."
    yield LikelyCause(told, remedy, _sites(f"forward without {name}", found.steps, _last_forward, ranks))


def _waited_for(step: StepRecord) -> str:
    """Return the first parameter that the reducer waits for, since the last backward did not reach it."""
    if not step.look.passes or not step.look.facts.get("synchronised"):
        return ""
    unreached = (step.look.tensors[place] for place in step.look.passes[-1].unreached)
    return next((held.name for held in unreached if held.kind == REDUCED), "")


def _not_synchronised(found: Disagreement) -> Iterator[LikelyCause]:
    without = [rank for rank, step in found.steps.items() if step.look.facts.get("synchronised") is False]
    if without:
        yield LikelyCause(
            f"the last forward before the step ran under no_sync() on {numbered('rank', without)}: nothing reduced its "
            "gradients",
            "Leave no_sync() before the forward of the last micro-batch.",
            _sites("forward under no_sync()", found.steps, _last_forward, without),
        )


def _checkpointed(found: Disagreement) -> Iterator[LikelyCause]:
    with_one = [rank for rank, step in found.steps.items() if any(one.checkpointed for one in step.look.passes)]
    if with_one:
        yield LikelyCause(
            "a re-entrant checkpoint runs a backward of its own, by which the reducer is fooled",
            "Pass use_reentrant=False to checkpoint().",
            _sites("forward with a checkpoint", found.steps, _last_forward, with_one),
        )


def _rounded(found: Disagreement) -> Iterator[LikelyCause]:
    norms = [held.norm for held in found.held.values() if held.norm is not None]
    if len(norms) == len(found.held) and max(norms) - min(norms) <= _ROUNDING * max(norms):
        yield LikelyCause(
            "the gradients differ by rounding: each rank has added up in its own order, or changed its own copy",
            "Let one rank compute a sum and the others receive it, as all_reduce() does.",
            _between_backward_and_step(found),
        )


def _changed_after(found: Disagreement) -> Iterator[LikelyCause]:
    yield LikelyCause(
        "the gradient was reduced and then changed on each rank for itself, between backward() and step()",
        "Clip and scale by what is the same on all ranks.",
        _between_backward_and_step(found),
    )


def _between_backward_and_step(found: Disagreement) -> tuple[Site, ...]:
    after = _sites("backward() after which it was changed", found.steps, _last_backward)
    return after + _sites("step() before which it was changed", found.steps, _step)


# --- others ---


def _unsynchronised_buffer(found: Disagreement) -> Iterator[LikelyCause]:
    yield LikelyCause(
        f"{found.name} follows each rank's own batches: nothing synchronises it",
        "Convert the model with SyncBatchNorm.convert_sync_batchnorm(), or leave DistributedDataParallel to broadcast "
        "buffers.",
        _sites("calls its module", found.steps, _call_of(found.name)),
    )


def _stopped(found: Disagreement) -> Iterator[LikelyCause]:
    fewest = [rank for rank, count in found.taken.items() if count == min(found.taken.values())]
    others = [rank for rank in found.taken if rank not in fewest]
    yield LikelyCause(
        f"{numbered('rank', fewest)} ran as many backwards as the others and took fewer steps",
        "Call optimizer.step() on all ranks: DistributedDataParallel reduces gradients, it copies no parameters.",
        _sites("step() that others do not reach", found.steps, _step, others),
    )


_CAUSES: dict[str, tuple[Cause, ...]] = {
    "parameter": (
        _began_apart, _left_out_of_an_optimizer, _stepped_apart, _skipped, _left_out_a_step, _in_a_gap, _written_alone,
        _written_apart,
    ),
    "gradient": (
        _missing, _outside, _unfrozen, _skipped, _left_out_a_step, _from_an_earlier_backward, _not_synchronised,
        _waiting_bucket, _checkpointed, _rounded, _changed_after,
    ),
    "buffer": (_unsynchronised_buffer,),
    "steps": (_stopped,),
}  # fmt: skip
