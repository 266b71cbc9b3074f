"""``gradscope view FILE``: what a recording holds, in the terminal UI, as text, at a prompt, or exported."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..inspect.output.terminal_text import say
from .output import shows_screens

if TYPE_CHECKING:
    from ..inspect import NodeRecord, Recording

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 7

_DESCRIPTION = """\
Open a recording in the terminal UI: step through its nodes forwards and back as in the debugger.
With the options below, or without a terminal, print: an overview and its iterations, nodes and what is known of them.
FILE may be of a program that still runs, or that was killed. A directory of recordings, one for each rank of a
torch.distributed program, is shown as one run: ranks and iterations side by side; --rank chooses one of them.

exit status: 0; 1 if what was asked for is not there, 2 if FILE cannot be read or the command line is wrong"""

_EXAMPLES = """\
examples:
  gradscope view run.gscope
  gradscope view run.gscope --text
  gradscope view run.gscope --iteration 3 --filter 'param:*'
  gradscope view run.gscope --iteration 3 --node 12
  gradscope view run.gscope --series
  gradscope view run.gscope --series 'layers.3.*'
  gradscope view run.gscope -c 'iteration 3; nodes mod:fc1; node 4; value'
  gradscope view run.gscope --export trace.json
  gradscope view run/
  gradscope view run/ --iteration 3
  gradscope view run/ --restart 0
  gradscope view run/ --rank 1 --iteration 3
  gradscope view run/ --export trace.json"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``view`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "view",
        help="show a recording",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the recording, or a directory with those of many ranks")
    parser.add_argument("--rank", type=int, metavar="N", help="the recording of this rank, in a directory")
    parser.add_argument(
        "--restart",
        type=int,
        metavar="N",
        help="of a directory whose ranks torchrun has started anew: that start, 0 the first (default: the last)",
    )
    parser.add_argument("--text", action="store_true", help="print the overview even on a terminal")
    parser.add_argument("--run", type=int, metavar="N", dest="number", help="only this run")
    parser.add_argument("--iteration", type=int, metavar="N", help="the backwards and nodes of this iteration")
    parser.add_argument("--backward", type=int, metavar="N", help="the nodes of this backward")
    parser.add_argument("--node", type=int, metavar="N", help="all about node N of that iteration or backward")
    parser.add_argument("--filter", metavar="SPEC", help="only nodes such as param:*, mod:layers.3.*, op:Addmm")
    parser.add_argument("--bad", action="store_true", help="only nodes with a NaN or Inf among their gradients")
    parser.add_argument(
        "--series",
        nargs="?",
        const="",
        metavar="NAME",
        help="the loss and the norms of parameters' gradients over the whole run, also where iterations have been left"
        " out, and since when they have died away; of NAME (which may have * in it) alone, one in full",
    )
    parser.add_argument("--violations", action="store_true", help="saved tensors that had been modified")
    parser.add_argument("--events", action="store_true", help="marks and errors")
    parser.add_argument(
        "--limit",
        type=int,
        default=40,
        metavar="N",
        help="so many nodes, or iterations of many ranks, at most (default 40; 0: all)",
    )
    parser.add_argument("--line", action="store_true", help="a prompt; `help` lists its verbs")
    parser.add_argument("-c", dest="commands", metavar="COMMANDS", help="verbs of the prompt, separated by semicolons")
    parser.add_argument(
        "--export",
        metavar="PATH",
        help="write nodes to PATH: .json for Perfetto (ui.perfetto.dev) and chrome://tracing, .parquet for a table",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect import BreakpointError, open_recording
    from ..inspect.ranks.recorded_ranks import ranks_of
    from ..inspect.recording import RecordingError

    try:
        if os.path.isdir(args.file) and args.rank is None and not _asks_for_one(args):
            return _ranks(args)
        if args.restart is not None:
            raise RecordingError("--restart is of a directory, for all ranks side by side\nOf one recording, --run N.")
        with open_recording(ranks_of(args.file, args.rank)) as recording:
            return _view(recording, args)
    except (RecordingError, BreakpointError, ImportError) as error:
        say(f"gradscope view: {error}", file=sys.stderr)
        return 2


def _asks_for_one(args: argparse.Namespace) -> bool:
    """Whether what is asked for is to be had of one recording alone."""
    if args.export is not None:
        return not args.export.endswith(".json")
    named = (args.number, args.backward, args.node, args.filter, args.commands)
    return any(value is not None for value in named) or args.bad or args.violations or args.events or args.line


def _ranks(args: argparse.Namespace) -> int:
    # The instruments load when the command runs.
    from ..inspect.ranks.rank_trace import write_rank_trace
    from ..inspect.ranks.recorded_ranks import open_ranks
    from ..inspect.ranks.run_view import iteration_text, ranks_text
    from ..inspect.recording.reports.series_view import chosen_series, matching_series, series_text

    with open_ranks(args.file, restart=args.restart) as ranks:
        if args.export is not None:
            say(f"wrote {write_rank_trace(ranks, args.export)} events to {args.export}")
        elif args.series is not None:
            found = [(str(m.rank), m.recording.series(m.run.id)) for m in ranks.members]
            chosen_series([one for _, series in found for one in series], args.series)
            groups = [(rank, matching_series(series, args.series)) for rank, series in found]
            say(series_text(groups, limit=max(args.limit, 0)))
        elif args.iteration is not None:
            say(iteration_text(ranks, args.iteration))
        else:
            say(ranks_text(ranks, limit=max(args.limit, 0)))
    return 0


def _view(recording: Recording, args: argparse.Namespace) -> int:
    if args.export is not None:
        return _export(recording, args.export)
    if args.line or args.commands is not None:
        return _browse(recording, args.commands)
    # The instruments load when the command runs.
    from ..inspect.recording.reports import text_view

    if args.violations or args.events:
        say(text_view.violations_text(recording) if args.violations else text_view.events_text(recording))
        return 0
    if args.series is not None:
        # The instruments load when the command runs.
        from ..inspect.recording.reports.series_view import chosen_series, series_text

        say(series_text([("", chosen_series(recording.series(args.number), args.series))], limit=max(args.limit, 0)))
        return 0
    chosen = args.iteration is not None or args.backward is not None
    if not (chosen or args.filter or args.bad or args.node is not None):
        if not args.text and args.number is None and shows_screens():
            return _open(recording)
        say(text_view.overview_text(recording))
        say(text_view.iterations_text(recording, run=args.number))
        return 0
    return _nodes(recording, args)


def _open(recording: Recording) -> int:
    try:
        from gradscope_tui.app import view_recording  # it loads Textual, an optional dependency
    except ImportError as error:
        say(f"gradscope view: the terminal UI cannot be loaded ({error}); use --text or --line", file=sys.stderr)
        return 2
    return view_recording(recording)


def _nodes(recording: Recording, args: argparse.Namespace) -> int:
    # The instruments load when the command runs.
    from ..inspect.recording.reports import text_view

    tasks = recording.tasks(run=args.number, iteration=args.iteration)
    if args.backward is not None:
        tasks = [task for task in tasks if task.id == args.backward]
    if not tasks:
        asked = args.iteration is not None or args.backward is not None
        return _missing("no such iteration or backward" if asked else "nothing has been recorded yet")
    if args.node is not None:
        holders = [task for task in tasks if 0 <= args.node < task.count]
        if not holders:
            return _missing(f"no node {args.node}; the backward has {tasks[0].count}")
        say(text_view.node_page(holders[0], args.node))
        return 0
    wanted = _wanted(args)
    found = ((task.id, node) for task in tasks for node in task.nodes if wanted(node))
    say(text_view.nodes_text(tasks, found, limit=max(args.limit, 0)))
    return 0


def _wanted(args: argparse.Namespace) -> Callable[[NodeRecord], bool]:
    """Return the test that ``--filter`` and ``--bad`` stand for."""
    # The instruments load when the command runs.
    from ..inspect.debugging.stops.breakpoints import parse_spec

    named = parse_spec(args.filter) if args.filter is not None else lambda node: True
    return lambda node: named(node) and (not args.bad or _has_bad(node))


def _has_bad(node: NodeRecord) -> bool:
    summaries = (*(node.grad_outputs or ()), *(node.grad_inputs or ()))
    return any(summary is not None and (summary.nans or summary.infs) for summary in summaries)


def _missing(text: str) -> int:
    say(f"gradscope view: {text}", file=sys.stderr)
    return 1


def _browse(recording: Recording, commands: str | None) -> int:
    # The instruments load when the command runs.
    from ..inspect.recording.reports.recording_prompt import RecordingPrompt

    prompt = RecordingPrompt(recording)
    if commands is None:
        prompt.run()
        return 0
    prompt.run_commands(part.strip() for part in commands.split(";") if part.strip())
    return int(prompt.failures > 0)


def _export(recording: Recording, path: str) -> int:
    if not path.endswith((".json", ".parquet")):
        say(f"gradscope view: --export writes .json or .parquet files, not {path!r}", file=sys.stderr)
        return 2
    try:
        if path.endswith(".json"):
            # The instruments load when the command runs.
            from ..inspect.recording.reports.perfetto import write_trace

            done = f"{write_trace(recording, path)} events"
        else:
            # The instruments load when the command runs.
            from ..inspect.recording.reports.parquet import write_parquet

            done = f"{write_parquet(recording, path)} nodes"
    except OSError as error:
        say(f"gradscope view: cannot write {path}: {error.strerror or error}", file=sys.stderr)
        return 2
    say(f"wrote {done} to {path}")
    return 0
