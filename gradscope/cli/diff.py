"""``gradscope diff A B``: the first node at which two recordings differ."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..inspect.output.terminal_text import say

if TYPE_CHECKING:
    from ..inspect import Difference
    from ..inspect.recording import Recording, RunRecord

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 8

SAME, DIFFERENT, FAILED = 0, 1, 2

_DESCRIPTION = """\
Compare two recordings, or two iterations of one (run.gscope:1 run.gscope:2), and show the first node at which they
differ, on both sides. Nodes are the same when module, operator, parameter, line and occurrence are.
Of two directories, with the recordings of many ranks each, every rank is compared with the same rank; whether the ranks
of one agree is what `gradscope agree` tells. Of two ranks of one job the gradients after the all-reduce are compared,
by their norms: before it each rank has those of its own batches, which --local compares.

exit status: 0 nothing differs, 1 something does, 2 a file cannot be read or the command line is wrong"""

_EXAMPLES = """\
examples:
  gradscope diff before.gscope after.gscope
  gradscope diff run/rank-0.gscope run/rank-1.gscope
  gradscope diff run.gscope:10 run.gscope:11 --rtol 0.1
  gradscope diff before/ after/"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``diff`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "diff",
        help="find the first node at which two recordings differ",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("left", metavar="A[:ITERATION]", help="a recording, or one iteration of it")
    parser.add_argument("right", metavar="B[:ITERATION]", help="another")
    parser.add_argument("--rtol", type=float, default=1e-5, metavar="R", help="relative tolerance (default 1e-5)")
    parser.add_argument("--atol", type=float, default=1e-8, metavar="A", help="absolute tolerance (default 1e-8)")
    parser.add_argument("--exact", action="store_true", help="no tolerance")
    parser.add_argument("--local", action="store_true", help="of two ranks of one job: gradients before the all-reduce")
    parser.add_argument("--left-run", type=int, metavar="N", help="a run of A (default: the last)")
    parser.add_argument("--right-run", type=int, metavar="N", help="a run of B (default: the last)")
    parser.add_argument("--table", action="store_true", help="both sides next to each other")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.rank_difference import rank_difference
    from ..inspect.ranks.recorded_ranks import ranks_of
    from ..inspect.recording import RecordingError, open_recording
    from ..inspect.recording.reports.recording_difference import difference, split_source

    left, left_iteration = split_source(args.left)
    right, right_iteration = split_source(args.right)
    compare = functools.partial(
        difference,
        left_iteration=left_iteration,
        right_iteration=right_iteration,
        rtol=args.rtol,
        atol=args.atol,
        exact=args.exact,
    )
    try:
        if os.path.isdir(left) and os.path.isdir(right):
            return _compare_ranks(left, right, compare, args.table)
        with open_recording(ranks_of(left, None)) as one, open_recording(ranks_of(right, None)) as two:
            runs = _ranks_of_one_job(one, two, args)
            if runs and not args.local:
                iterations = left_iteration, right_iteration
                tolerance = {"rtol": args.rtol, "atol": args.atol, "exact": args.exact}
                apart = rank_difference((one, runs[0]), (two, runs[1]), iterations=iterations, **tolerance)
                say(apart)
                return DIFFERENT if apart else SAME
            found = compare(one, two, left_run=args.left_run, right_run=args.right_run)
    except RecordingError as error:
        say(f"gradscope diff: {error}", file=sys.stderr)
        return FAILED
    _show(found, args.table)
    return DIFFERENT if found else SAME


def _ranks_of_one_job(one: Recording, two: Recording, args: argparse.Namespace) -> tuple[RunRecord, RunRecord] | None:
    """Return the runs to compare, where they are different ranks that were started together."""
    # The instruments load when the command runs.
    from ..inspect.ranks.rank_difference import are_ranks_of_one_job

    runs = [
        next((run for run in reversed(recording.runs) if wanted in (None, run.id)), None)
        for recording, wanted in ((one, args.left_run), (two, args.right_run))
    ]
    left, right = runs
    return (left, right) if left and right and are_ranks_of_one_job(left, right) else None


def _compare_ranks(left: str, right: str, compare: Callable[..., Difference], table: bool) -> int:
    """Compare each rank of one directory with the same rank of another; return the exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.recorded_ranks import open_ranks
    from ..inspect.recording import RecordingError

    differ = False
    with open_ranks(left) as ours, open_ranks(right) as theirs:
        for note in (*ours.notes, *theirs.notes):
            say(f"note: {note}")
        both = {member.rank for member in ours.members} & {member.rank for member in theirs.members}
        if not both:
            raise RecordingError(f"{left} and {right} have no rank in common")
        for rank in sorted(both):
            one, two = ours.member(rank), theirs.member(rank)
            say(f"rank {rank}:")
            found = compare(one.recording, two.recording, left_run=one.run.id, right_run=two.run.id)
            _show(found, table)
            differ = differ or bool(found)
    return DIFFERENT if differ else SAME


def _show(found: Difference, table: bool) -> None:
    if table:
        from rich.console import Console  # Rich loads when a table is asked for

        Console().print(found)
    else:
        say(found)
