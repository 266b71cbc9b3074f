"""Which ranks hold the same model, or the same stage of it: those are compared with each other, and no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..output.number_format import format_shape, numbered, several
from ..recording import RecordingError
from ..recording.file.step_rows import StepRecord
from ..records.before_step.step_looks import BROADCAST, IGNORED, OUTSIDE, REDUCED, HeldTensor
from ..source.source_paths import shown_line

__all__ = [
    "Group", "differ", "first_of", "groups_of", "model_differences", "order_difference", "replicas", "replicas_text",
]  # fmt: skip

Group = dict[int, int]
"""Where the same tensor stands on each rank that has it, by rank."""

Key = tuple[str, tuple[int, ...], str, str]


def replicas(steps: Mapping[int, StepRecord]) -> list[tuple[int, ...]]:
    """Return the ranks by what they hold: all in one, or those of each stage of a pipeline.

    DistributedDataParallel says which ranks it keeps equal, and a DTensor over which it is spread. Where nothing says
    so, ranks are replicas that hold the same parameters.

    Parameters
    ----------
    steps : mapping of StepRecord
        The first of each rank.

    Raises
    ------
    RecordingError
        If they hold models of their own.
    """
    ranks = tuple(steps)
    together, wraps = _told_groups(steps)
    found = _joined(ranks, together) if together or wraps else [ranks]
    if wraps or not _any_differs(steps, found):
        return found
    alike = [] if together else _alike(steps)
    if len({len(part) for part in alike}) != 1 or len(alike[0]) < 2:
        differs = next(model_differences(steps), "") or order_difference(steps)
        raise RecordingError(
            "these ranks hold different models from their first step on, and no DistributedDataParallel"
            f"{': ' if differs else ''}{differs}\n"
            "Pipeline stages and ensembles do; ranks that should train one model need it, or the same seed."
        )
    return alike


def replicas_text(parts: Sequence[Sequence[int]]) -> str:
    """Return which ranks are compared with each other.

    Examples
    --------
    >>> replicas_text([(0, 2), (1, 3)])
    'each of these is compared for itself, as a stage of a pipeline: ranks 0, 2; ranks 1, 3'
    """
    told = "; ".join(numbered("rank", part) for part in parts)
    return f"each of these is compared for itself, as a stage of a pipeline: {told}"


def model_differences(steps: Mapping[int, StepRecord]) -> Iterator[str]:
    """Yield which ranks hold parameters that the first of them does not, or of other shapes.

    Parameters
    ----------
    steps : mapping of StepRecord
        A step of each rank.
    """
    first, *others = steps
    ours = _parameters(steps[first])
    for rank in others:
        theirs = _parameters(steps[rank])
        reshaped = [name for name in ours if name in theirs and ours[name].shape != theirs[name].shape]
        told = [
            f"{name} is {format_shape(theirs[name].shape)} there and {format_shape(ours[name].shape)} here"
            for name in reshaped[:1]
        ]
        for names, which in ((theirs.keys() - ours, "there alone"), (ours.keys() - theirs, "here alone")):
            held = [name for name in (*ours, *theirs) if name in names]
            told += [f"{several(held)} {'are' if len(held) > 1 else 'is'} {which}"] if held else []
        if told:
            place = next((theirs[name].called for name in theirs if name not in ours or name in reshaped), "")
            line = f"; see what is called at {shown_line(place)}" if place else ""
            yield f"rank {rank} holds another model than rank {first}: {', and '.join(told)}{line}"


def order_difference(steps: Mapping[int, StepRecord]) -> str:
    """Return which rank's optimizer has its parameters in another order than the first rank's; empty where none has."""
    first, *others = steps
    ours = _parameters(steps[first])
    for rank in others:
        theirs = _parameters(steps[rank])
        pairs = zip((name for name in ours if name in theirs), (name for name in theirs if name in ours))
        here, there = next(((one, other) for one, other in pairs if one != other), ("", ""))
        if here:
            return (
                f"rank {rank} has its parameters in another order than rank {first}: {there} stands there where "
                f"{here} does here"
            )
    return ""


def first_of(group: str) -> int:
    """Return the first rank of a group, as :attr:`.HeldTensor.group` names it.

    Examples
    --------
    >>> first_of("1, 3"), first_of("")
    (1, 0)
    """
    first = group.partition(",")[0]
    return int(first) if first.isdecimal() else 0


def groups_of(steps: Mapping[int, StepRecord], *kinds: str) -> dict[Key, Group]:
    """Return the tensors of some kinds, each with the ranks that have it; not those that somewhere are left alone."""
    found: dict[Key, Group] = defaultdict(dict)
    ignored = {h.name for step in steps.values() for h in step.look.tensors if h.kind in (IGNORED, BROADCAST)}
    for rank, step in steps.items():
        for place, held in enumerate(step.look.tensors):
            if held.kind in kinds and held.name not in ignored:
                found[held.name, held.shape, held.part, held.group][rank] = place
    return found


def differ(group: Group, steps: Mapping[int, StepRecord]) -> bool:
    """Whether ranks hold different values of a tensor."""
    return len({int(steps[rank].look.values[place]) for rank, place in group.items()}) > 1


def _told_groups(steps: Mapping[int, StepRecord]) -> tuple[list[tuple[int, ...]], bool]:
    """Return the ranks that are told to belong together, and whether DistributedDataParallel says so."""
    found: dict[str, dict[int, None]] = defaultdict(dict)
    wraps = False
    for rank, step in steps.items():
        told = {(held.group, held.kind == REDUCED, bool(held.part)) for held in step.look.tensors}
        wraps = wraps or any(reduced for _, reduced, _ in told)
        for group, reduced, spread in told:
            if group or reduced or spread:
                found[group][rank] = None
    whole = found.pop("", None)
    return ([tuple(steps)] if whole else []) + [tuple(members) for members in found.values()], wraps


def _joined(ranks: Sequence[int], together: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the ranks, those joined that some group joins.

    Examples
    --------
    >>> _joined(range(6), [(0, 1), (2, 3), (3, 4)])
    [(0, 1), (2, 3, 4), (5,)]
    """
    part_of = {rank: {rank} for rank in ranks}
    for members in together:
        whole = set().union(*(part_of[rank] for rank in members))
        part_of.update((rank, whole) for rank in whole)
    parts = {id(part): part for part in part_of.values()}
    return [tuple(sorted(part)) for part in parts.values()]


def _any_differs(steps: Mapping[int, StepRecord], parts: Iterable[Sequence[int]]) -> bool:
    """Whether ranks that belong together hold different parameters, or none that they could be compared by."""
    for part in parts:
        if len(part) < 2:
            continue
        inside = {rank: steps[rank] for rank in part}
        groups = [group for group in groups_of(inside, OUTSIDE).values() if len(group) > 1]
        spread = any(held.part for step in inside.values() for held in step.look.tensors)
        if any(differ(group, inside) for group in groups) or not (groups or spread):
            return True
    return False


def _alike(steps: Mapping[int, StepRecord]) -> list[tuple[int, ...]]:
    """Return the ranks by the parameters that they hold."""
    found: dict[frozenset[tuple[Key, int]], list[int]] = defaultdict(list)
    for rank, step in steps.items():
        groups = groups_of({rank: step}, OUTSIDE)
        held = frozenset((key, int(step.look.values[group[rank]])) for key, group in groups.items())
        found[held].append(rank)
    return [tuple(ranks) for ranks in found.values()]


def _parameters(step: StepRecord) -> dict[str, HeldTensor]:
    """Return what an optimizer is about to change, in its order, by name."""
    return {held.name: held for held in step.look.tensors if held.stepped}
