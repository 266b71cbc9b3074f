"""Ranks whose training loops run unlike: one skips an iteration that others run, or leaves its loop before them.

Each backward of a rank waits for one of every other rank. Who runs fewer of them leaves the others waiting in the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ..output.number_format import count, numbered
from ..recording.recorder.hang_watch import BEHIND
from ..records.before_step.forward_log import ForwardAccount
from ..source.source_paths import shown_line

__all__ = ["ended_early", "left_the_loop", "skipped_apart", "waiting_text"]

_FEWER = (
    "fewer batches, or a break? Give all ranks as many batches, as DistributedSampler does, or train in a "
    "`with Join([model]):` block"
)


def skipped_apart(skipped: Mapping[int, Sequence[str]], counts: Mapping[int, int] | None = None) -> Iterator[str]:
    """Yield which ranks have skipped more iterations than others.

    Parameters
    ----------
    skipped : mapping
        Of each rank what it has skipped, as :meth:`.SkippedForward.text` says it.
    counts : mapping of int, optional
        How many that were, where not all are known any more.
    """
    counted = {rank: len(skips) for rank, skips in skipped.items()} if counts is None else counts
    least = min(counted.values(), default=0)
    for rank, skips in skipped.items():
        more = counted[rank] - least
        if more and skips:
            last = f", the last of {more}" if more > 1 else ""
            yield (
                f"rank {rank} {skips[-1]}{last}; the others ran theirs. Since then it is {count(more, 'backward')} "
                "behind, and unless they skip as often they wait for it in the end: skip on all ranks or on none "
                "(all_reduce the condition first)"
            )


def ended_early(
    ended: Sequence[int], accounts: Mapping[int, ForwardAccount], waiting: Mapping[int, str]
) -> Iterator[str]:
    """Yield which ranks have come to their ends while others wait for them.

    Parameters
    ----------
    waiting : mapping of int to str
        In what each other waits, as :func:`.waits_in` tells it, of those of which it is known.
    """
    alike: dict[str, list[int]] = defaultdict(list)
    for rank in ended:
        alike[_after(accounts.get(rank, ForwardAccount()))].append(rank)
    others = waiting_text(waiting) or "others wait in a collective"
    for after, ranks in alike.items():
        told = f"{numbered('rank', ranks)} came to the end of the program{after} while {others}"
        yield f"{told}: {_FEWER}" if after else told


def left_the_loop(waiting: Mapping[int, str], accounts: Mapping[int, ForwardAccount]) -> Iterator[str]:
    """Yield which ranks wait behind the loop in which they trained, while others wait inside of it.

    Parameters
    ----------
    waiting : mapping of int to str
        In what each waits, as :func:`.waits_in` tells it.
    """
    inside = {rank: call for rank, call in waiting.items() if not call.endswith(BEHIND)}
    for rank, call in waiting.items():
        if inside and rank not in inside:
            after = _after(accounts.get(rank, ForwardAccount()))
            left = f"rank {rank} left its training loop{after} and waits in {call.removesuffix(BEHIND)}"
            yield f"{left}, while {waiting_text(inside)}, in the loop still: {_FEWER}"


def waiting_text(waiting: Mapping[int, str]) -> str:
    """Return which ranks wait in what.

    Examples
    --------
    >>> waiting_text({0: "backward(), called at a.py:3", 2: "backward(), called at a.py:3"})
    'ranks 0, 2 wait in backward(), called at a.py:3'
    """
    alike: dict[str, list[int]] = defaultdict(list)
    for rank, call in waiting.items():
        alike[call.removesuffix(BEHIND)].append(rank)
    told = (
        f"{numbered('rank', ranks)} {'wait' if len(ranks) > 1 else 'waits'} in {call}" for call, ranks in alike.items()
    )
    return ", and ".join(told)


def _after(account: ForwardAccount) -> str:
    """Return after which step, and where; empty before the first."""
    if not account.step:
        return ""
    line = f" ({shown_line(account.stepped)})" if account.stepped else ""
    return f" after step {account.step}{line}"
