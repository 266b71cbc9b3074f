"""Whether the ranks of a run agree: the first gradient or parameter that is not the same on all of them.

Ranks that train one model together hold the same parameters, and after the all-reduce the same gradients, bit for bit:
each gets the sums that one of them has computed. What is compared are the checksums that each rank has recorded when
its optimizer was about to step.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy

from ..output.number_format import several
from ..recording import RecordingError
from ..recording.file.step_rows import StepRecord
from ..records.before_step.step_looks import BROADCAST, BUFFER, IGNORED, REDUCED, TRAINED, HeldTensor, StepLook
from ..source.source_paths import shown_line
from .rank_ends import how_cut_off, rank_ends
from .recorded_ranks import RecordedRanks
from .replicas import Group, groups_of, model_differences, replicas, replicas_text

__all__ = ["Agreement", "Comparison", "Disagreement", "Held", "Steps", "agreement", "held_at", "whole_norm"]

_COMPARED = ("values", "gradients", "present")

_AHEAD = 64
"""Steps that one rank may take alone (others have no batch left) before it is said that they part."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a rank holds of a tensor.

    Attributes
    ----------
    checksum : int or None
        None for a gradient that is not there.
    norm : float or None
        Of a gradient.
    """

    checksum: int | None
    norm: float | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first tensor that is not the same on all ranks that hold it.

    Attributes
    ----------
    what : str
        ``'gradient'``, ``'parameter'``, ``'buffer'``, or ``'steps'``: a rank has stopped to step.
    tensor : HeldTensor or None
        None of ``'steps'``.
    held : dict of Held
        By rank.
    others : tuple of str
        The names of further tensors of which the same is true in this step.
    steps : dict of StepRecord
        By rank: the step before which they were compared, of those that hold the same stage of the model.
    before : dict of StepRecord
        The step before that, in which they agreed; empty at the first.
    taken : dict of int
        By rank, how many steps it has taken, of ``'steps'``.
    """

    what: str
    tensor: HeldTensor | None
    held: Mapping[int, Held]
    others: tuple[str, ...]
    steps: Mapping[int, StepRecord]
    before: Mapping[int, StepRecord]
    taken: Mapping[int, int] = field(default_factory=dict)

    @property
    def iteration(self) -> int | None:
        """The number of the iteration, on the first rank."""
        return self.steps[min(self.steps)].iteration

    @property
    def name(self) -> str:
        """What the tensor is called."""
        return "" if self.tensor is None else self.tensor.name


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a comparison of ranks has found.

    Attributes
    ----------
    ranks : tuple of int
        Those that were compared.
    steps, tensors : int
        How many steps, and different tensors in them, were the same on all ranks.
    parted : Disagreement or None
        None where they agree.
    notes : tuple of str
        What else is to be known: ranks that are missing, or took fewer steps; a line each.
    hang : bool
        Whether ranks wait for each other after that, or one was waiting when it was seen last.
    """

    ranks: tuple[int, ...]
    steps: int
    tensors: int
    parted: Disagreement | None
    notes: tuple[str, ...] = ()
    hang: bool = False

    def __bool__(self) -> bool:
        return self.parted is None


def agreement(ranks: RecordedRanks) -> Agreement:
    """Compare what the ranks of a recorded run held before each step, and find the first disagreement.

    Parameters with the same name, shape and part of the whole are compared. Where the program uses
    DistributedDataParallel that is all of them but those that it was told to ignore, and the buffers that it does not
    copy from rank 0; where it does not, they must have been equal at the first step. Ranks that hold different stages
    of a pipeline are compared with those that hold the same stage.

    Parameters
    ----------
    ranks : RecordedRanks
        From :func:`open_ranks`.

    Returns
    -------
    Agreement
        True where they agree; otherwise its attribute ``parted`` says where they part.

    Raises
    ------
    RecordingError
        If there are fewer than two ranks, or no steps of them, or they hold different models.

    See Also
    --------
    open_ranks

    Examples
    --------
    Here one process is both ranks, one after the other, as ``torchrun`` would start them, and the second has another
    learning rate:

    >>> import os, tempfile
    >>> from unittest import mock
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> folder = tempfile.mkdtemp()
    >>> def train(lr):
    ...     w = gs.ones(3, requires_grad=True)
    ...     optimizer = gs.optim.SGD([w], lr=lr)
    ...     for _ in range(2):
    ...         optimizer.zero_grad()
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    >>> for rank in range(2):
    ...     with mock.patch.dict(os.environ, {"RANK": str(rank), "WORLD_SIZE": "2"}), gi.record(folder):
    ...         train(lr=0.1 + rank)
    >>> with gi.open_ranks(folder) as ranks:
    ...     found = gi.agreement(ranks)
    >>> bool(found), found.steps, found.parted.what, found.parted.name
    (False, 1, 'parameter', 'parameter 0')
    """
    if len(ranks.members) < 2:
        raise RecordingError(f"{ranks.path} has the recording of one rank: there is nothing to compare it with")
    streams = {m.rank: Steps(m.recording.steps(m.run.id)) for m in ranks.members}
    comparison = Comparison(streams)
    parted = comparison.run()
    notes = [*ranks.notes, *_other_code(ranks), *comparison.differences, *comparison.notes]
    if parted is None:
        taken = {rank: stream.exhaust() for rank, stream in streams.items()}
        notes += _left_out(streams)
        if not any(taken.values()):
            told = [*ranks.notes, *rank_ends(ranks, {}).notes] or [
                "Steps are recorded of ranks that torchrun has started, unless with --keep none."
            ]
            raise RecordingError("\n".join([f"{ranks.path}: no rank has recorded a step of an optimizer", *told]))
        parted = _stopped_stepping(ranks, taken, _last_steps(streams))
        if parted is None:
            notes += _shorter(ranks, taken, _last_steps(streams))
            # One that runs, or is no longer recorded, may be a step ahead.
            if not any(member.running or member.stopped for member in ranks.members):
                notes += _waited_for(taken, _last_steps(streams))
    ends = rank_ends(ranks, _last_steps(streams), comparison.skipped)
    return Agreement(tuple(streams), comparison.steps, len(comparison.seen), parted, (*notes, *ends.notes), ends.hang)


def _last_steps(streams: Mapping[int, Steps]) -> dict[int, StepRecord]:
    """Return the last step of each rank that was read."""
    return {rank: stream.last for rank, stream in streams.items() if stream.last is not None}


def whole_norm(norms: Sequence[float]) -> float:
    """Return the norm of a gradient from those of its parts."""
    return math.nan if any(map(math.isnan, norms)) else math.hypot(*norms)


class Steps:
    """The steps of one rank, in order, with a look ahead.

    Parameters
    ----------
    steps : iterator of StepRecord
        Asked again after it has ended: there may be more by then.

    Attributes
    ----------
    last : StepRecord or None
        The one that was taken last.
    left_out : int
        How many, of those that were looked at, a recording has let go to stay small.
    aside : set of int
        The optimizers that this rank has alone, as one that trains a probe there.
    """

    def __init__(self, steps: Iterator[StepRecord]) -> None:
        self._steps = steps
        self._ahead: deque[StepRecord] = deque()
        self._numbers: dict[int, int] = {}  # the last number of each optimizer
        self._alone: dict[int, int] = {}
        self._label = ""
        self._relabelled: dict[int, tuple[Any, tuple[HeldTensor, ...]]] = {}
        self.last: StepRecord | None = None
        self.left_out = 0
        self.aside: set[int] = set()

    def drop_label(self, label: str) -> None:
        """Leave out, from here on, what the names of tensors begin with."""
        self._label = label
        self._ahead = deque(map(self._without_label, self._ahead))

    def _without_label(self, step: StepRecord) -> StepRecord:
        if not self._label:
            return step
        tensors = step.look.tensors
        if id(tensors) not in self._relabelled:
            called = tuple(held._replace(name=held.name.removeprefix(self._label)) for held in tensors)
            self._relabelled[id(tensors)] = tensors, called
        return replace(step, look=replace(step.look, tensors=self._relabelled[id(tensors)][1]))

    def peek(self, ahead: int = 0) -> StepRecord | None:
        """Return one of the next steps; None where there are not so many."""
        while len(self._ahead) <= ahead:
            step = next(self._steps, None)
            if step is None:
                return None
            which, number = step.look.optimizer, step.look.number
            self.left_out += max(0, number - self._numbers.get(which, 0) - 1)
            self._numbers[which] = number
            self._ahead.append(self._without_label(step))
        return self._ahead[ahead]

    def take(self) -> None:
        """Go on."""
        self.peek()
        self.last = self._ahead.popleft()

    def take_alone(self, count: int) -> None:
        """Go on by steps that others do not take."""
        for _ in range(count):
            self.take()
            assert self.last is not None
            which = self.last.look.optimizer
            self._alone[which] = self._alone.get(which, 0) + 1

    def number(self) -> int:
        """Return which of its optimizer's steps the next one is, of those that all take."""
        step = self.peek()
        assert step is not None
        return step.look.number - self._alone.get(step.look.optimizer, 0)

    def pass_aside(self) -> None:
        """Go on to the next step of an optimizer that others have too."""
        while (step := self.peek()) is not None and step.look.optimizer in self.aside:
            self.take()

    def exhaust(self) -> int:
        """Go to the end; return how many steps the rank has taken, those that were left out too, but none aside."""
        while self.peek() is not None:
            self.take()
        return sum(number for which, number in self._numbers.items() if which not in self.aside)


class Comparison:
    """Goes through the steps of all ranks side by side.

    Attributes
    ----------
    steps : int
        How many were the same.
    differences : list of str
        Which ranks hold other parameters than others, which cannot be compared.
    """

    def __init__(self, streams: Mapping[int, Steps]) -> None:
        self._streams = streams
        self._parts: list[tuple[int, ...]] = []
        self.steps = 0
        self.seen: set[tuple[str, str, int]] = set()
        self.notes: list[str] = []
        self.differences: list[str] = []
        self.skipped: dict[int, list[str]] = defaultdict(list)
        # Steps that went together, by their layouts.
        self._paired: dict[tuple[tuple[int, int], ...], list[StepRecord]] = {}
        self._layouts: dict[tuple[int, ...], Any] = {}
        self._noted: set[tuple[int, ...]] = set()  # the layouts of which all is in `seen`

    def run(self) -> Disagreement | None:
        """Return the first disagreement of the steps that there are; may be called again when there are more.

        Raises
        ------
        RecordingError
            If the ranks hold different models.
        """
        while True:
            for stream in self._streams.values():
                stream.pass_aside()
            steps = {rank: step for rank, s in self._streams.items() if (step := s.peek()) is not None}
            if len(steps) < 2:
                return None
            if not self._pairs(steps):
                if self._note_aside(steps):
                    continue
                if _is_reduced_on_all(steps):  # what they share is yet to come
                    return None
            if not self._parts:
                for rank, label in _labels_apart(steps).items():
                    self._streams[rank].drop_label(label)
                    steps[rank] = self._streams[rank].peek() or steps[rank]
                self._begin(steps)
            behind = self._behind(steps)
            for rank in behind:
                self._streams[rank].take()
            if behind:
                continue
            found = self._compare(steps)
            if found is not None:
                if not self._skip(found.steps):
                    return found
                continue
            self._note_skipped(steps)
            for rank in steps:
                self._streams[rank].take()
            self.steps += 1

    def _begin(self, steps: Mapping[int, StepRecord]) -> None:
        """Find out which ranks are replicas: with DistributedDataParallel they are meant to be."""
        self._parts = replicas(steps)
        if len(self._parts) > 1:
            self.notes.append(replicas_text(self._parts))
        self.differences = [told for part in self._of_parts(steps) for told in model_differences(part)]
        wraps = any(held.kind == REDUCED for step in steps.values() for held in step.look.tensors)
        if not wraps and not any(len(group) > 1 for part in self._of_parts(steps) for group in _trained(part)):
            self.notes.append("all parameters are spread over the ranks, each part on one alone: nothing can disagree")

    def _pairs(self, steps: Mapping[int, StepRecord]) -> bool:
        """Whether each rank's next step changes some tensor that another rank's does."""
        key = tuple((rank, id(step.look.tensors)) for rank, step in steps.items())
        if key not in self._paired:
            if not all(self._is_shared(rank, steps, {}) for rank in steps):
                return False
            self._paired[key] = list(steps.values())
        return True

    def _is_shared(
        self, rank: int, steps: Mapping[int, StepRecord], coming: Mapping[int, Sequence[StepRecord]]
    ) -> bool:
        """Whether the next step of a rank changes what another changes next, or in steps that are coming."""
        others = (one for other, step in steps.items() if other != rank for one in (step, *coming.get(other, ())))
        return any(_share(steps[rank], one) for one in others)

    def _note_aside(self, steps: Mapping[int, StepRecord]) -> bool:
        """Note the optimizers that a rank alone has, of next steps, where that can be told; return whether it could."""
        coming = {rank: _coming(self._streams[rank]) for rank in steps}
        met = [one for paired in self._paired.values() for one in paired]
        found = False
        for rank, step in steps.items():
            if self._is_shared(rank, steps, coming) or any(_share(step, one) for one in met):
                continue
            # A rank that takes part has other steps that are shared; one that has not holds a model of its own.
            ahead = (self._is_shared(rank, {**steps, rank: later}, coming) for later in coming[rank])
            if self._took_part(rank) or any(ahead):
                self._streams[rank].aside.add(step.look.optimizer)
                found = True
        return found

    def _took_part(self, rank: int) -> bool:
        return any(rank == one for key in self._paired for one, _ in key)

    def _behind(self, steps: Mapping[int, StepRecord]) -> list[int]:
        """Return the ranks whose next steps others have left out of their recordings: there is nothing to compare."""
        if not any(self._streams[rank].left_out for rank in steps):
            return []
        if len({step.look.optimizer for step in steps.values()}) == 1:
            places = {rank: self._streams[rank].number() for rank in steps}
        else:  # what is left out are whole iterations
            places = {rank: step.iteration or 0 for rank, step in steps.items()}
        newest = max(places.values())
        return [rank for rank, place in places.items() if place < newest]

    def _of_parts(self, steps: Mapping[int, StepRecord]) -> Iterator[dict[int, StepRecord]]:
        """Yield the steps of ranks that are compared with each other."""
        for part in self._parts:
            yield {rank: steps[rank] for rank in part if rank in steps}

    def _compare(self, steps: Mapping[int, StepRecord]) -> Disagreement | None:
        """Return the first disagreement in a step, the same kind of it on all ranks before the next."""
        parts = [part for part in self._of_parts(steps) if len(part) > 1 and not self._same(part)]
        for what, kinds, array in (
            ("parameter", TRAINED, "values"),
            ("buffer", (BUFFER,), "values"),
            ("gradient", TRAINED, "gradients"),
        ):
            for part in parts:
                groups = groups_of(part, *kinds)
                bad = [group for group in groups.values() if _differ(group, part, array)]
                if bad:
                    before = {rank: last for rank in part if (last := self._streams[rank].last) is not None}
                    return _disagreement(what, array, bad, part, before)
                found = ((_tensor(group, part), len(group)) for group in groups.values())
                self._note_seen(part, (held for held, count in found if count > 1))
        return None

    def _same(self, steps: Mapping[int, StepRecord]) -> bool:
        """Whether all ranks have the same tensors, and those hold the same: nearly always, and quick to see."""
        looks = [step.look for step in steps.values()]
        first, *others = looks
        key = tuple(id(look.tensors) for look in looks)  # each layout is one object in a recording
        if key not in self._layouts:
            alike = all(look.tensors == first.tensors for look in others)
            compared = numpy.array([held.kind not in (IGNORED, BROADCAST) for held in first.tensors], numpy.bool_)
            self._layouts[key] = looks, compared if alike else None
        compared = self._layouts[key][1]
        if compared is None or not all(_equal(first, look, compared) for look in others):
            return False
        if key not in self._noted:
            self._noted.add(key)
            self._note_seen(steps, (held for held, wanted in zip(first.tensors, compared) if wanted))
        return True

    def _note_skipped(self, steps: Mapping[int, StepRecord]) -> None:
        """Note which ranks have skipped more iterations since the step before than others that hold the same."""
        for part in self._of_parts(steps):
            skipped = {rank: step.look.skipped for rank, step in part.items()}
            least = min(map(len, skipped.values()), default=0)
            for rank, skips in skipped.items():
                self.skipped[rank] += (skip.text() for skip in skips[least:])

    def _note_seen(self, part: Mapping[int, StepRecord], tensors: Iterable[HeldTensor]) -> None:
        """Note what was the same on all ranks of a part; those of stages may have one name."""
        some = min(part)  # the first of the stage may have ended before the others
        first = next((ranks[0] for ranks in self._parts if some in ranks), some)
        self.seen.update((held.kind, held.name, first) for held in tensors)

    def _skip(self, steps: Mapping[int, StepRecord]) -> bool:
        """Let ranks go on alone to the step at which all hold the same parameters again; return whether there is one.

        So it is after `join()`: who has no batch left takes no steps, and is given the others' parameters.
        """
        ways = {rank: _values_ahead(self._streams[rank]) for rank in steps}
        common = set.intersection(*(set(way) for way in ways.values()))
        skips = min(({rank: way[key] for rank, way in ways.items()} for key in common), key=_length, default=None)
        if skips is None or not any(skips.values()):
            return False
        for rank, count in skips.items():
            if count:
                numbers = steps[rank].look.number, steps[rank].look.number + count - 1
                told = f"step {numbers[0]}" if count == 1 else f"steps {numbers[0]} to {numbers[1]}"
                self.notes.append(f"rank {rank} took {told} without the others, who were given its parameters (join)")
                self._streams[rank].take_alone(count)
        return True


def _coming(stream: Steps) -> list[StepRecord]:
    """Return the steps after the next one that have come already, one of each optimizer."""
    found: dict[int, StepRecord] = {}
    for ahead in range(1, _AHEAD):
        step = stream.peek(ahead)
        if step is None:
            break
        found.setdefault(step.look.optimizer, step)
    return list(found.values())


def _share(one: StepRecord, other: StepRecord) -> bool:
    """Whether the optimizers of two steps, of different ranks, change some tensor of the same name."""
    names = [{held.name for held in step.look.tensors if held.stepped} for step in (one, other)]
    return not names[0].isdisjoint(names[1]) or bool(_labels_apart({0: one, 1: other}))


def _is_reduced_on_all(steps: Mapping[int, StepRecord]) -> bool:
    """Whether DistributedDataParallel keeps something equal on all ranks."""
    return any(held.kind == REDUCED and not held.group for step in steps.values() for held in step.look.tensors)


def _labels_apart(steps: Mapping[int, StepRecord]) -> dict[int, str]:
    """Return by rank what the names of all its tensors begin with, and those of others do not.

    A module is called after its variable where the program holds another one: on the rank alone that keeps an EMA.
    """
    every = {rank: [held.name for held in step.look.tensors] for rank, step in steps.items()}
    # Of the ranks' first optimizers alone the buffers are looked at: it may be another one of which this is a step.
    stepped = {rank: [held.name for held in step.look.tensors if held.stepped] for rank, step in steps.items()}
    return _labels(every) or _labels(stepped)


def _labels(names: Mapping[int, list[str]]) -> dict[int, str]:
    short = min(names.values(), key=lambda called: sum(map(len, called)))
    labels = {rank: called[0].removesuffix(short[0]) for rank, called in names.items() if called and short}
    return {
        rank: label
        for rank, label in labels.items()
        if label.endswith(".") and names[rank] == [f"{label}{name}" for name in short]
    }


def _length(skips: Mapping[int, int]) -> int:
    return sum(skips.values())


def _values_ahead(stream: Steps) -> dict[bytes, int]:
    """Return how many steps away the coming states of the parameters are."""
    found: dict[bytes, int] = {}
    for ahead in range(_AHEAD):
        step = stream.peek(ahead)
        if step is None:
            break
        trained = [held.kind == REDUCED for held in step.look.tensors]
        found.setdefault(step.look.values[trained].tobytes(), ahead)
    found.pop(b"", None)
    return found


def _equal(one: StepLook, other: StepLook, compared: Any) -> bool:
    """Whether two ranks hold the same of the tensors that are compared; nearly always they do of all."""
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in _COMPARED) or all(
        bool(((getattr(one, name) == getattr(other, name)) | ~compared).all()) for name in _COMPARED
    )


def _trained(steps: Mapping[int, StepRecord]) -> Iterable[Group]:
    return groups_of(steps, *TRAINED).values()


def _differ(group: Group, steps: Mapping[int, StepRecord], array: str) -> bool:
    return len({held_at(steps[rank], place, array).checksum for rank, place in group.items()}) > 1


def held_at(step: StepRecord, place: int, array: str) -> Held:
    """Return what a rank holds of a tensor before a step: of its ``'values'`` or ``'gradients'``."""
    if array == "values":
        return Held(int(step.look.values[place]))
    if not step.look.present[place]:
        return Held(None)
    return Held(int(step.look.gradients[place]), float(step.look.norms[place]))


def _disagreement(
    what: str, array: str, bad: Sequence[Group], steps: Mapping[int, StepRecord], before: Mapping[int, StepRecord]
) -> Disagreement:
    first = bad[0]
    held = {rank: held_at(steps[rank], place, array) for rank, place in first.items()}
    names = [_tensor(group, steps).name for group in bad[1:]]
    return Disagreement(what, _tensor(first, steps), held, tuple(dict.fromkeys(names)), dict(steps), before)


def _tensor(group: Group, steps: Mapping[int, StepRecord]) -> HeldTensor:
    rank, place = next(iter(group.items()))
    return steps[rank].look.tensors[place]


def _stopped_stepping(
    ranks: RecordedRanks, taken: Mapping[int, int], last: Mapping[int, StepRecord]
) -> Disagreement | None:
    """Return that a rank has run backwards as often as the others, to its end, and has stepped less often."""
    # A backward that failed, or never ended, has no step after it.
    ended = {m.rank: [task.number for task in m.tasks() if task.state == "finished"] for m in ranks.members}
    backwards = {rank: max(numbers, default=0) for rank, numbers in ended.items()}
    whole = all(member.run.state == "finished" and not member.stopped for member in ranks.members)
    if not whole or len(set(taken.values())) == 1 or len(set(backwards.values())) > 1:
        return None
    return Disagreement("steps", None, {}, (), last, {}, taken)


def _waited_for(taken: Mapping[int, int], last: Mapping[int, StepRecord]) -> Iterator[str]:
    """Yield which parameters a rank has not used before a step that others have not come to: they wait for those."""
    for rank, step in last.items():
        backward = next(reversed(step.look.passes), None)
        if taken[rank] == min(taken.values()) or backward is None:
            continue
        tensors = [step.look.tensors[place] for place in backward.unreached]
        names = [held.name for held in tensors if held.kind == REDUCED]
        if names:
            place = f", called at {shown_line(backward.forward)}," if backward.forward else ""
            yield (
                f"rank {rank} did not use {several(names)} in the forward{place} before step {step.look.number}: "
                "without find_unused_parameters=True DistributedDataParallel waits for their gradients on the others"
            )


def _other_code(ranks: RecordedRanks) -> Iterator[str]:
    """Yield which ranks run other lines of code than the first."""
    first, *others = ranks.members
    ours = first.recording.source_lines()
    for member in others:
        theirs = member.recording.source_lines()
        differ = [place for place in ours.keys() & theirs.keys() if ours[place] != theirs[place]]
        if differ:
            file, line = place = min(differ)
            yield (
                f"rank {member.rank} runs other code than rank {first.rank}: {os.path.basename(file)}:{line} is "
                f"`{theirs[place]}` there, and here `{ours[place]}`"
            )


def _left_out(streams: Mapping[int, Steps]) -> Iterator[str]:
    """Yield how much of a run is not there to be compared."""
    most = max(stream.left_out for stream in streams.values())
    if most:
        yield f"{most} steps have been left out of the recordings, which are to stay small: they are not compared"


def _shorter(ranks: RecordedRanks, taken: Mapping[int, int], last: Mapping[int, StepRecord]) -> Iterator[str]:
    """Yield which ranks have taken fewer steps than others, and whether they were cut off."""
    most = max(taken.values())
    for member in ranks.members:
        count = taken[member.rank]
        if count < most:
            cut_off = f"it {how_cut_off(member.rank, last)}"
            end = "it ended earlier, or has joined" if member.run.state == "finished" else cut_off
            end = "it failed" if any(task.state == "failed" for task in member.tasks()) else end
            end = "it runs still" if member.running else end
            end = "its recording has stopped" if member.stopped else end
            yield f"rank {member.rank} took {count} of {most} steps: {end}; compared as far as it came"
