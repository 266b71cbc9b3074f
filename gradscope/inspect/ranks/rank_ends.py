"""How each rank of a recorded run came to its end, or where it hangs, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..debugging.prompt.plain_text import place_of
from ..recording import EventRecord
from ..recording.file.step_rows import StepRecord
from ..recording.recorder.hang_watch import BEHIND, RAISED, SILENT, SKIPPED
from ..records.before_step.forward_log import ForwardAccount
from .recorded_ranks import RankRecording, RecordedRanks
from .uneven_loops import ended_early, left_the_loop, skipped_apart

__all__ = ["RankEnds", "apart", "error_without_advice", "how_cut_off", "rank_ends", "waits_in"]

_HOW = "waits in ", "is in "
"""How :func:`.whereabouts` begins of a collective, and of a backward, in which a reducer may wait."""

_LEFT_BEHIND = 5.0
"""Seconds for which steps of others follow, after which a rank need not have been killed that has recorded none."""

_SOURCE = re.compile(r"\[[^][]*\.cc:\d+\] ")
_ADVICE = re.compile(r"\. This is typically caused by .*?(?=, (?:in \S+, )?at |$)")
_RAISED_IN = re.compile(r", in (\S+), at (\S+)$")


class RankEnds(NamedTuple):
    """How the ranks of a run came to their ends.

    Attributes
    ----------
    notes : tuple of str
        What is to be known of those that failed, hang, or have left the others waiting: a line each.
    hang : bool
        Whether ranks wait for each other, or one was waiting when it was seen last.
    """

    notes: tuple[str, ...]
    hang: bool


def rank_ends(
    ranks: RecordedRanks, last: Mapping[int, StepRecord], skipped: Mapping[int, Sequence[str]] | None = None
) -> RankEnds:
    """Return how the ranks of a run came to their ends.

    Parameters
    ----------
    last : mapping of StepRecord
        The last step of each rank.
    skipped : mapping, optional
        What each rank has skipped before its steps and others have not, in words.
    """
    notes: list[str] = []
    waiting: dict[int, str] = {}
    failed_in: dict[int, str] = {}
    skips = {member.rank: [*(skipped or {}).get(member.rank, ())] for member in ranks.members}
    ended = []
    hang = False
    for member in ranks.members:
        at = last.get(member.rank)
        events = {event.kind: event for event in member.recording.events() if event.run == member.run.id}
        raised = events.get(RAISED)
        notes += _failed(member, raised)
        if raised is not None and (found := _RAISED_IN.search(raised.text)):
            failed_in[member.rank] = f"{found[1]}, called at {found[2]}"
        skip = events.get(SKIPPED)
        if skip is not None and (at is None or at.time < skip.time):
            skips[member.rank].append(skip.text)
        if member.stopped:
            notes.append(f"rank {member.rank}: {member.stopped}")
            continue
        if member.run.state == "finished" and raised is None:
            ended.append(member.rank)
            continue
        silent = events.get(SILENT)
        if silent is not None and not _went_on(member, at, silent):
            notes.append(f"rank {member.rank}{'' if member.running else ', when last seen:'} {silent.text}")
            if call := waits_in(silent.text):
                waiting[member.rank] = call
                hang = hang or not member.running
        notes += _last_node(member, how_cut_off(member.rank, last))
    uneven = [*skipped_apart(skips)]
    accounts = {} if uneven else {rank: ForwardAccount(at.look.number, at.look.line) for rank, at in last.items()}
    # All may be in a backward that takes long, and then none waits for another.
    in_backward = all(call.startswith("backward()") for call in waiting.values())
    waits = [] if in_backward else [*left_the_loop(waiting, accounts)] or [*apart(waiting)]
    if hang or not in_backward or failed_in or _is_left_alone(ranks, ended):
        waits += ended_early(ended, accounts, failed_in | waiting)
    return RankEnds((*notes, *uneven, *waits), hang or bool(waits))


def waits_in(place: str) -> str:
    """Return in which collective or backward a rank is, and its line; an empty string where it is in none.

    Parameters
    ----------
    place : str
        As :func:`.whereabouts` tells it.

    Examples
    --------
    >>> waits_in("waits in barrier, called at train.py:9"), waits_in("is at train.py:9")
    ('barrier, called at train.py:9', '')
    """
    return next((place.removeprefix(how) for how in _HOW if place.startswith(how)), "")


def _failed(member: RankRecording, raised: EventRecord | None) -> Iterator[str]:
    """Yield which backward has failed, or what else the program did not catch."""
    failed = next((task for task in member.tasks() if task.state == "failed"), None)
    if failed is not None:
        where = f"backward {failed.number} of iteration {failed.iteration}"
        yield f"rank {member.rank} failed in {where}: {error_without_advice(failed.error or 'no message')}"
    elif raised is not None and raised.text.startswith(KeyboardInterrupt.__name__):
        _, at, place = raised.text.rpartition(", at ")
        yield f"rank {member.rank} was interrupted{at.removeprefix(',')}{place if at else ''}"
    elif raised is not None:
        yield f"rank {member.rank} failed: {error_without_advice(raised.text)}"


def error_without_advice(error: str) -> str:
    """Return an error without what gloo adds: the line of its own source, and where else one might look.

    Examples
    --------
    >>> error_without_advice(
    ...     "RuntimeError: [/pytorch/gloo/pair.cc:553] Connection closed by peer [::1]:9. This is typically caused "
    ...     "by a remote worker crashing. Check the logs of the remote worker before reporting an error., at a.py:3"
    ... )
    'RuntimeError: Connection closed by peer [::1]:9, at a.py:3'
    """
    return _ADVICE.sub("", _SOURCE.sub("", error))


def _is_left_alone(ranks: RecordedRanks, ended: Sequence[int]) -> bool:
    """Whether a rank has failed in a backward that those which have ended never ran: they did not take part in it."""
    ran = [max((task.number for task in ranks.member(rank).tasks()), default=0) for rank in ended]
    failed = (task.number for member in ranks.members for task in member.tasks() if task.state == "failed")
    return bool(ran) and any(number > max(ran) for number in failed)


def _went_on(member: RankRecording, last: StepRecord | None, silent: EventRecord) -> bool:
    """Whether a rank has done something after it had been silent."""
    if last is not None and last.time > silent.time:
        return True
    for task in reversed(member.tasks()):
        if task.started > silent.time or (task.state == "finished" and (task.ended or 0) > silent.time):
            return True
    return False


def how_cut_off(rank: int, last: Mapping[int, StepRecord]) -> str:
    """Return what has become of a rank that neither runs nor has come to its end; others may have gone on without it.

    Parameters
    ----------
    last : mapping of StepRecord
        The last step of each rank.
    """
    newest = max((step.time for step in last.values()), default=0)
    seconds = (newest - last[rank].time) / 1e9 if rank in last else 0.0
    if seconds < _LEFT_BEHIND:
        return "was killed"
    return f"was killed, or could not write any more, as on a full disk: steps of others follow for {seconds:.0f} s"


def _last_node(member: RankRecording, cut_off: str) -> Iterator[str]:
    """Yield the last node of a rank that has not come to its end, or that it was killed before the first."""
    if member.run.state == "finished":
        return
    last = next((task for task in reversed(member.tasks()) if task.count), None)
    if last is None:
        if not member.running:
            yield f"rank {member.rank} was killed before its first backward"
        return
    node = last.nodes[last.count - 1]
    place = place_of(node.location)
    end = "runs still" if member.running else cut_off
    told = f"{node.name} {node.parameter or node.module}".rstrip() + (f"  {place}" if place else "")
    state = "" if last.state == "running" else ", which had ended"
    where = f"backward {last.number} of iteration {last.iteration}{state}"
    yield f"rank {member.rank} {end}; its last node, in {where}: {told}"


def apart(waiting: Mapping[int, str], *, named: bool = True) -> Iterator[str]:
    """Yield that ranks wait for each other, in different collectives.

    Parameters
    ----------
    waiting : mapping of int to str
        In what each waits, as :func:`waits_in` tells it.
    named : bool
        Whether that is to be told once more.
    """
    if len(set(waiting.values())) > 1:
        told = "; ".join(f"rank {rank} in {call.removesuffix(BEHIND)}" for rank, call in waiting.items())
        others = f" ({told})" if named else ""
        yield f"they wait for each other{others}: all ranks must call the same collectives in the same order"
