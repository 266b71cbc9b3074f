"""Where two ranks of one job part, by tolerance: what they should have in common, not what is each rank's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..recording import Recording, RecordingError, RunRecord
from ..recording.file.step_rows import StepRecord
from ..records.before_step.step_looks import BUFFER, TRAINED
from .agreement import Held, held_at
from .agreement_report import held_text
from .replicas import groups_of

__all__ = ["RankDifference", "are_ranks_of_one_job", "rank_difference"]

_NOTE = (
    "these are ranks of one job: what each one's backward brings before the all-reduce is not compared (--local does)"
)


@dataclass(frozen=True, slots=True)
class RankDifference:
    """The result of comparing what two ranks held before the steps of their optimizers.

    Attributes
    ----------
    compared, steps : int
        Reduced gradients that were found equal, before the first that differs or in all, and the steps they are of.
    first : tuple of str
        Lines that say what differs first; empty where nothing does.
    """

    compared: int
    steps: int
    first: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.first)

    def __str__(self) -> str:
        of = f"{_count(self.compared, 'reduced gradient')} of {_count(self.steps, 'step')}"
        same = f"no difference in {of}" if self.compared else f"no parameter is on both ranks, in {self.steps} steps"
        head, *lines = self.first or (same,)
        return "\n".join([f"first difference after {of}: {head}" if self.first else head, *lines, f"note: {_NOTE}"])


def are_ranks_of_one_job(left: RunRecord, right: RunRecord) -> bool:
    """Whether two runs are different ranks that were started together."""
    same = (left.job, left.world, left.restart) == (right.job, right.world, right.restart)
    return same and bool(left.job) and left.rank != right.rank


def rank_difference(
    left: tuple[Recording, RunRecord],
    right: tuple[Recording, RunRecord],
    *,
    iterations: tuple[int | None, int | None] = (None, None),
    rtol: float = 1e-5,
    atol: float = 1e-8,
    exact: bool = False,
) -> RankDifference:
    """Find the first step of an optimizer before which two ranks of a job held other reduced gradients.

    Gradients are compared by their norms, and with `exact` by the checksums of their bits, and so are the parameters
    then, of which no norm is recorded.

    Parameters
    ----------
    left, right : (Recording, RunRecord)
        The ranks.
    iterations : (int or None, int or None)
        Compare these iterations alone.

    Raises
    ------
    RecordingError
        If they have no step in common.
    """
    compared = steps = 0
    for pair in _pairs(left, right, iterations):
        steps += 1
        ranks = dict(enumerate(pair))
        for array, kinds in (("values", (*TRAINED, BUFFER)), ("gradients", TRAINED)):
            if array == "values" and not exact:
                continue
            for (name, *_), places in groups_of(ranks, *kinds).items():
                if len(places) < 2:  # it is on one of them alone
                    continue
                one, other = (held_at(ranks[side], place, array) for side, place in places.items())
                if one.checksum != other.checksum and (exact or not _near(one, other, rtol, atol)):
                    what = name if array == "values" else f"gradient {name}"
                    where = "" if pair[0].iteration is None else f"iteration {pair[0].iteration}, "
                    head = f"{where}before step {pair[0].look.number}, {what}"
                    sides = (f"  A {left[0].path}: {held_text(one)}", f"  B {right[0].path}: {held_text(other)}")
                    return RankDifference(compared, steps, (head, *sides))
                compared += array == "gradients"
    if not steps:
        raise RecordingError(
            f"{left[0].path} and {right[0].path} are ranks of one job, and have no step of an optimizer in common\n"
            "--local compares what each rank's own backward brought."
        )
    return RankDifference(compared, steps)


def _pairs(
    left: tuple[Recording, RunRecord], right: tuple[Recording, RunRecord], iterations: tuple[int | None, int | None]
) -> Iterator[tuple[StepRecord, StepRecord]]:
    """Yield the steps that both have: those of the same number, or of two iterations in their order."""
    ours, theirs = (recording.steps(run.id) for recording, run in (left, right))
    first, second = iterations
    if first is not None or second is not None:
        wanted = (second if first is None else first, first if second is None else second)
        yield from zip(*([step for step in steps if step.iteration == at] for steps, at in zip((ours, theirs), wanted)))
        return
    one, other = next(ours, None), next(theirs, None)
    while one is not None and other is not None:
        if (one.look.optimizer, one.look.number) == (other.look.optimizer, other.look.number):
            yield one, other
            one, other = next(ours, None), next(theirs, None)
        elif _comes_before(one, other):  # the other has left it out, to stay small
            one = next(ours, None)
        else:
            other = next(theirs, None)


def _comes_before(one: StepRecord, other: StepRecord) -> bool:
    if one.look.optimizer == other.look.optimizer:
        return one.look.number < other.look.number
    return (one.iteration or 0) <= (other.iteration or 0)


def _near(one: Held, other: Held, rtol: float, atol: float) -> bool:
    """Whether two gradients have the same norm, within the tolerance; NaN equals NaN."""
    if one.norm is None or other.norm is None:
        return False
    if math.isfinite(one.norm):
        return abs(one.norm - other.norm) <= atol + rtol * abs(other.norm)
    return str(one.norm) == str(other.norm)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
