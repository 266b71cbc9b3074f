"""``gradscope record SCRIPT [args] -o FILE``: run a script and record every backward."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from ..inspect.output.terminal_text import say
from .scripts import SCRIPT, add_script_arguments, positive, take_output

if TYPE_CHECKING:
    from ..inspect import Recorder
    from ..inspect.debuggee.processes import StartedProcesses

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 6

_DESCRIPTION = f"""\
Run a script as `python SCRIPT args` would, on the main thread, with its own stdin, output and signals, and record
every backward in it to a file. The script computes what it computes without. After a crash or a kill the file opens
up to the last commit, a fraction of a second before; it can be looked at while the script runs.
-o FILE may also stand last, where FILE ends in .gscope.
{SCRIPT}

Each rank of a torch.distributed program writes a file of its own: with -o DIR/ one in that directory, and otherwise
FILE gets the rank into its name. {{rank}}, {{pid}} and {{time}} in FILE stand for what they are. A rank that cannot
write its file runs unrecorded, so that it does not end the job.

exit status: the script's own, 130 after Ctrl-C; 2 if the command line is wrong, there is no such script, or FILE
cannot be written by a program of one process"""

_EXAMPLES = """\
examples:
  gradscope record train.py --epochs 1
  gradscope record -o run.gscope --keep all --last 5 train.py
  gradscope record --keep 'param:*,mod:layers.3.*' --budget 200MB -m package.train
  torchrun --nproc-per-node 2 -m gradscope record -o run/ train.py"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``record`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "record",
        help="run a script and record its backward passes to a file",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope record [-h] [options] [-m] SCRIPT [args ...]",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the recording, or a directory for those of all ranks (default: the script's name with .gscope, here)",
    )
    parser.add_argument(
        "--keep",
        default="summaries",
        metavar="WHAT",
        help="none (structure and times), summaries (default: statistics of every gradient), all (values too), or "
        "nodes whose values to keep besides: param:*, mod:layers.*, op:Addmm, line:train.py:31, separated by commas",
    )
    parser.add_argument("--last", type=int, metavar="N", help="keep values of the last N iterations only")
    parser.add_argument(
        "--budget",
        metavar="SIZE",
        help="how large FILE may become, such as 200MB (1 MiB at least): old values go, then old iterations, but those "
        "around a NaN or an error last",
    )
    parser.add_argument("--rows", type=positive, metavar="N", help="how many nodes FILE may have: old iterations go")
    parser.add_argument(
        "--age",
        metavar="AGE",
        help="let iterations go that are older, such as 12h or 7d, but those around a NaN or error",
    )
    parser.add_argument("--append", action="store_true", help="add a run to FILE instead of replacing it")
    add_script_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.adapters.event_guards import fault_of, own_error
    from ..inspect.debuggee.exits import before_os_exit
    from ..inspect.debuggee.main_thread import run_on_main_thread
    from ..inspect.debuggee.processes import StartedProcesses
    from ..inspect.debuggee.script_targets import find_target
    from ..inspect.recording import RecordingError, record

    processes = StartedProcesses()
    take_output(args, (".gscope",))
    script, arguments, output = args.script, args.args, args.output
    try:
        if args.last is not None and args.keep.strip().lower() in ("none", "summaries"):
            raise ValueError(f"--last is of values, and --keep {args.keep} keeps none: name which, as --keep all does")
        target = find_target(script, module=args.module)
        path = output or _default_path(script)
        limits = {"last": args.last, "budget": args.budget, "rows": args.rows, "age": args.age}
        recorder = record(path, args.keep, append=args.append, title=target.title, **limits)
        recorder.start()
    except RecordingError as error:
        say(f"gradscope record: {_of_rank()}{error}", file=sys.stderr)
        return run_on_main_thread(target, arguments, processes)[0] if _of_rank() else 2
    except (OSError, ImportError, ValueError) as error:
        say(f"gradscope record: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        say(f"gradscope record: the script runs unrecorded: {own_error(fault_of(error))}", file=sys.stderr)
        return run_on_main_thread(target, arguments, processes)[0]

    def leave(status: int) -> int:
        recorder.stop()
        _tell(recorder, processes)
        return status

    try:
        with before_os_exit(leave):
            status, raised = run_on_main_thread(target, arguments, processes)
            recorder.stop(raised)
    finally:
        recorder.stop()
    _tell(recorder, processes)
    return status


def _of_rank() -> str:
    """Return what to say of this process before why it is not recorded; an empty string where it is not one of many."""
    # The instruments load when the command runs.
    from ..inspect.records.own_rank import own_rank

    place = own_rank()
    return f"rank {place.rank} runs unrecorded: " if place.world > 1 else ""


def _default_path(script: str) -> str:
    name = os.path.basename(os.path.normpath(script)).removesuffix(".py")
    return f"{name.rpartition('.')[2] or 'run'}.gscope"


def _tell(recorder: Recorder, processes: StartedProcesses) -> None:
    """Say on stderr what has been recorded; a child that the script forked says nothing."""
    if recorder.forked:
        return
    lost = f", {recorder.lost} lost: {recorder.failure}" if recorder.failure else ""
    if recorder.fault:
        lost = f"; what came after is not recorded: {recorder.failure}"
    nodes = f"{recorder.nodes} node{'s' if recorder.nodes != 1 else ''}"
    text = f"gradscope: recorded {nodes} in {recorder.path}{lost}"
    if not recorder.nodes and not lost:
        text += " (the script never called backward())"
    if processes.unseen:
        text += f"\ngradscope: not recorded: {processes.unseen}"
    try:
        say(text, file=sys.stderr)
    except (OSError, ValueError, AttributeError):  # the script has closed it
        return
