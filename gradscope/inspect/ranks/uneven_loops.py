"""Ranks whose training loops run unlike: one skips an iteration that others run, or leaves its loop before them.

Each backward of a rank waits for one of every other rank. Who runs fewer of them leaves the others waiting in the end.
"""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ..output.number_format import count, numbered
from ..records.before_step.forward_log import ForwardAccount
from ..source.source_paths import shown_line
from ..source.source_syntax import syntax_tree

__all__ = ["ended_early", "left_the_loop", "skipped_apart"]

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


def ended_early(ended: Sequence[int], accounts: Mapping[int, ForwardAccount]) -> Iterator[str]:
    """Yield which ranks have come to their ends while others wait for them."""
    alike: dict[str, list[int]] = defaultdict(list)
    for rank in ended:
        alike[_after(accounts.get(rank, ForwardAccount()))].append(rank)
    for after, ranks in alike.items():
        told = f"{numbered('rank', ranks)} came to the end of the program{after} while others wait in a collective"
        yield f"{told}: {_FEWER}" if after else told


def left_the_loop(waiting: Mapping[int, str], accounts: Mapping[int, ForwardAccount]) -> Iterator[str]:
    """Yield which ranks wait behind the loop in which they stepped, while others wait inside of it.

    Parameters
    ----------
    waiting : mapping of int to str
        In what each waits, as :func:`.waits_in` tells it.
    """
    left = [rank for rank, call in waiting.items() if _is_inside(call, accounts.get(rank)) is False]
    if any(_is_inside(call, accounts.get(rank)) for rank, call in waiting.items()):
        for rank in left:
            yield f"rank {rank} left its training loop{_after(accounts[rank])}, and others are in it still: {_FEWER}"


def _after(account: ForwardAccount) -> str:
    """Return after which step, and where; empty before the first."""
    if not account.step:
        return ""
    line = f" ({shown_line(account.stepped)})" if account.stepped else ""
    return f" after step {account.step}{line}"


def _is_inside(call: str, account: ForwardAccount | None) -> bool | None:
    """Whether a line is in the innermost loop of the line that stepped; None where that cannot be told.

    A function of its own may be called from inside of the loop, or from behind it.
    """
    file, _, stepped = ("", "", "") if account is None else account.stepped.rpartition(":")
    name, _, line = call.rpartition(" called at ")[2].rpartition(":")
    if not (stepped.isdecimal() and line.isdecimal() and os.path.basename(file) == name):
        return None
    tree = syntax_tree(file)
    nodes = [] if tree is None else [*ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if any(_holds(function, int(stepped)) != _holds(function, int(line)) for function in functions):
        return None
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While)]
    around = [loop for loop in loops if _holds(loop, int(stepped))]
    return _holds(max(around, key=lambda loop: loop.lineno), int(line)) if around else None


def _holds(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or 0)
