"""Why ranks came to disagree: the likely causes of a disagreement, the surest first, and what to do about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..records.step_looks import OUTSIDE, REDUCED
from .agreement import Disagreement

__all__ = ["likely_cause"]

_ROUNDING = 1e-5
"""How far norms are apart, relatively, where sums were only added up in another order."""


def likely_cause(found: Disagreement) -> tuple[str, str]:
    """Return the likely cause of a disagreement, and what to do.

    Parameters
    ----------
    found : Disagreement
        What :func:`.agreement` has found.
    """
    for cause in _CAUSES[found.what]:
        told = next(cause(found), None)
        if told is not None:
            return told
    return "", ""


Cause = Callable[[Disagreement], Iterator[tuple[str, str]]]


# --- parameters ---


def _began_apart(found: Disagreement) -> Iterator[tuple[str, str]]:
    if found.before or found.tensor is None:
        return
    if found.tensor.kind == REDUCED:
        yield (
            "the parameters were changed on some ranks after DistributedDataParallel had made them equal",
            "Initialise and load weights before the model is wrapped, or on all ranks alike.",
        )
    else:
        seeds = _seeds(found)
        differ = f", and the seeds are {seeds}" if seeds else ""
        yield (
            f"{found.name} is outside of DistributedDataParallel, which would have made it equal{differ}",
            "Wrap the module that holds it as well, or the whole model at once.",
        )


def _seeds(found: Disagreement) -> str:
    """Return the seeds of the ranks, where they differ."""
    seeds = sorted({str(step.look.facts.get("seed")) for step in found.steps.values()})
    return " and ".join(seeds) if len(seeds) > 1 else ""


def _stepped_apart(found: Disagreement) -> Iterator[tuple[str, str]]:
    rates = {rank: step.look.facts.get("lr") for rank, step in (found.before or found.steps).items()}
    if len(set(map(str, rates.values()))) > 1:
        told = ", ".join(f"{_rate(rate)} on rank {rank}" for rank, rate in rates.items())
        yield (
            f"the optimizers step differently: the learning rate is {told}",
            "Give all ranks the same learning rate; a scheduler that follows a loss must be given the same loss.",
        )


def _rate(rates: object) -> str:
    return ", ".join(f"{rate:g}" for rate in rates) if isinstance(rates, list) else "unknown"


def _left_out_of_an_optimizer(found: Disagreement) -> Iterator[tuple[str, str]]:
    without = [
        rank
        for rank, step in found.steps.items()
        if not any(held.stepped for held in step.look.tensors if held.name == found.name)
    ]
    if without and len(without) < len(found.steps):
        yield (
            f"the optimizer of {_ranks(without)} does not hold {found.name}",
            "Make the optimizer of the same parameters on all ranks.",
        )


def _left_out_a_step(found: Disagreement) -> Iterator[tuple[str, str]]:
    backwards = {rank: step.look.facts.get("backwards", 0) for rank, step in found.steps.items()}
    if len(set(backwards.values())) > 1:
        most = max(backwards, key=backwards.__getitem__)
        least = min(backwards.values())
        yield (
            f"rank {most} has left out a step that others took: before its step {found.steps[most].look.number} it ran "
            f"{backwards[most]} backwards, others {least}",
            "Let all ranks step, or none: what they decide by must be reduced first.",
        )


def _written_apart(found: Disagreement) -> Iterator[tuple[str, str]]:
    yield (
        "the gradients agreed in the step before: the optimizers hold different state, or one rank has written into "
        "the parameter",
        "Look for what one rank alone does between two steps: `if rank == 0:` around a load, a clamp or a decay.",
    )


# --- gradients ---


def _missing(found: Disagreement) -> Iterator[tuple[str, str]]:
    without = [rank for rank, held in found.held.items() if held.checksum is None]
    if without and len(without) < len(found.held):
        yield (
            f"{found.name} has no gradient on {_ranks(without)}: it was not used there",
            "Use it on all ranks, or reduce a zero for it where it was not used "
            "(DistributedDataParallel does with find_unused_parameters=True).",
        )


def _outside(found: Disagreement) -> Iterator[tuple[str, str]]:
    if found.tensor is None or found.tensor.kind != OUTSIDE:
        return
    if any(held.kind == REDUCED for step in found.steps.values() for held in step.look.tensors):
        yield (
            f"{found.name} is outside of DistributedDataParallel: nothing reduces its gradient",
            "Wrap the module that holds it as well; what is added to a model after it was wrapped is not known there.",
        )
        return
    first = next(iter(found.steps.values()))
    whole = len(found.others) + 1 == sum(bool(there) for there in first.look.present)
    seeds = _seeds(found)
    if whole:
        told = f"; the seeds are {seeds}, so that dropout differs too" if seeds else ""
        yield (
            f"nothing reduces the gradients, neither DistributedDataParallel nor an all-reduce of all of them{told}",
            "Wrap the model in DistributedDataParallel; seed alike where ranks should draw alike.",
        )
    else:
        yield (
            f"the all-reduce of the program leaves out {found.name}: other gradients agree",
            "Reduce the gradients of all parameters, or wrap the model in DistributedDataParallel.",
        )


def _from_an_earlier_backward(found: Disagreement) -> Iterator[tuple[str, str]]:
    for rank, step in found.steps.items():
        passes = step.look.passes
        if not passes or step.look.reaches(passes[-1], found.name):
            continue
        if any(step.look.reaches(backward, found.name) for backward in passes[:-1]):
            yield (
                f"the gradient of {found.name} on rank {rank} came in an earlier backward of the iteration, under "
                "no_sync(); the last one, which is reduced, did not use it",
                "Use all parameters in the last backward before a step, or reduce in every one of them.",
            )
            return


def _waiting_bucket(found: Disagreement) -> Iterator[tuple[str, str]]:
    for rank, step in found.steps.items():
        if not step.look.passes or not step.look.facts.get("synchronised"):
            continue
        unreached = [step.look.tensors[place] for place in step.look.passes[-1].unreached]
        waiting = [held.name for held in unreached if held.kind == REDUCED]
        if waiting:
            yield (
                f"the backward on rank {rank} did not reach {waiting[0]}, which DistributedDataParallel waits for: it "
                f"has not reduced the bucket with {found.name}",
                "Use all parameters in each forward, or pass find_unused_parameters=True.",
            )
            return


def _not_synchronised(found: Disagreement) -> Iterator[tuple[str, str]]:
    without = [rank for rank, step in found.steps.items() if step.look.facts.get("synchronised") is False]
    if without:
        yield (
            f"the last forward before the step ran under no_sync() on {_ranks(without)}: nothing reduced its gradients",
            "Leave no_sync() before the forward of the last micro-batch.",
        )


def _checkpointed(found: Disagreement) -> Iterator[tuple[str, str]]:
    if any(backward.checkpointed for step in found.steps.values() for backward in step.look.passes):
        yield (
            "a re-entrant checkpoint runs a backward of its own, by which the reducer is fooled",
            "Pass use_reentrant=False to checkpoint().",
        )


def _rounded(found: Disagreement) -> Iterator[tuple[str, str]]:
    norms = [held.norm for held in found.held.values() if held.norm is not None]
    if len(norms) == len(found.held) and max(norms) - min(norms) <= _ROUNDING * max(norms):
        yield (
            "the gradients differ by rounding: each rank has added up in its own order, or changed its own copy",
            "Let one rank compute a sum and the others receive it, as all_reduce() does.",
        )


def _changed_after(found: Disagreement) -> Iterator[tuple[str, str]]:
    yield (
        "the gradient was reduced and then changed on each rank for itself, between backward() and step(), or the "
        "parameter began to require grad after the model was wrapped",
        "Clip and scale by what is the same on all ranks; unfreeze before the model is wrapped.",
    )


# --- others ---


def _unsynchronised_buffer(found: Disagreement) -> Iterator[tuple[str, str]]:
    yield (
        f"{found.name} follows each rank's own batches: nothing synchronises it",
        "Convert the model with SyncBatchNorm.convert_sync_batchnorm(), or leave DistributedDataParallel to broadcast "
        "buffers.",
    )


def _stopped(found: Disagreement) -> Iterator[tuple[str, str]]:
    fewest = [rank for rank, count in found.taken.items() if count == min(found.taken.values())]
    yield (
        f"{_ranks(fewest)} ran as many backwards as the others and took fewer steps",
        "Call optimizer.step() on all ranks: DistributedDataParallel reduces gradients, it copies no parameters.",
    )


_CAUSES: dict[str, tuple[Cause, ...]] = {
    "parameter": (_began_apart, _left_out_of_an_optimizer, _stepped_apart, _left_out_a_step, _written_apart),
    "gradient": (
        _missing, _outside, _left_out_a_step, _from_an_earlier_backward, _not_synchronised, _waiting_bucket,
        _checkpointed, _rounded, _changed_after,
    ),
    "buffer": (_unsynchronised_buffer,),
    "steps": (_stopped,),
}  # fmt: skip


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
