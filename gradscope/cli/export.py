"""``gradscope export RUN -o LAKE``: recordings as a Parquet dataset, or as event files of TensorBoard."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..inspect.output.terminal_text import say

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 11

_DESCRIPTION = """\
Add recordings to a Parquet dataset: the directory LAKE, partitioned by run, rank and iterations, which `gradscope
query`, DuckDB, Polars, Dask and Spark read. RUN is a recording, or a directory with those of many ranks.
What is there already is not written again, so it may be called as the program goes on; with --follow it does so itself
until the program has ended. Readers see each file whole or not at all.
With --format tensorboard, LAKE is a log directory: norms of gradients as scalars by iteration, for each rank.

exit status: 0; 2 if RUN cannot be read, LAKE cannot be written or is something else, or the command line is wrong"""

_EXAMPLES = """\
examples:
  gradscope export run/ -o lake/
  gradscope export run/ -o lake/ --name baseline --follow
  gradscope export run/ -o logs/ --format tensorboard
  gradscope query lake/ "select rank, max(grad_outputs_norm) from nodes group by rank" """


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``export`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="add recordings to a Parquet dataset",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", metavar="RUN", nargs="+", help="a directory with the recordings of all ranks, or recordings"
    )
    parser.add_argument("-o", "--output", metavar="LAKE", required=True, help="the directory of the dataset")
    parser.add_argument(
        "--format", choices=("parquet", "tensorboard"), default="parquet", help="a dataset (default), or event files"
    )
    parser.add_argument("--name", default="", help="what the run is called there (default: as RUN is)")
    parser.add_argument("--follow", action="store_true", help="go on until the program has ended")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.lake.lake_export import export_run, follow_run
    from ..inspect.recording import RecordingError

    try:
        if args.format == "tensorboard":
            return _tensorboard(args)
        if args.follow:
            looks = list(follow_run(args.paths, args.output, name=args.name))
        else:
            looks = [export_run(args.paths, args.output, name=args.name)]
    except RecordingError as error:
        say(f"gradscope export: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error  # pyarrow's own words hold its parts twice
        say(
            f"gradscope export: cannot write {args.output}: {why}\n"
            "What is there already stays: export again where there is room, or name another directory with -o.",
            file=sys.stderr,
        )
        return 2
    nodes, steps = sum(look.nodes for look in looks), sum(look.steps for look in looks)
    rest = "; the program runs still" if looks[-1].running else ""
    say(f"added {nodes} nodes and {steps} tensors of steps to {args.output}, as run {looks[-1].run}{rest}")
    return 0


def _tensorboard(args: argparse.Namespace) -> int:
    # The instruments load when the command runs.
    from ..inspect.ranks.tensorboard_events import write_tensorboard
    from ..inspect.recording import RecordingError

    if args.follow or args.name:
        raise RecordingError("--follow and --name are for datasets\nLeave them out with --format tensorboard.")
    count = write_tensorboard(args.paths, args.output)
    say(f"wrote {count} scalars to {args.output}")
    return 0
