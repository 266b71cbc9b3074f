"""``gradscope graph SCRIPT [args]``: run a script up to a backward pass, and draw or write its graph."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, TextIO

from ..inspect.output.terminal_text import say
from .output import stdout_on_stderr
from .scripts import SCRIPT, add_script_arguments, leave, positive, take_output

if TYPE_CHECKING:
    from ..inspect.debuggee.main_thread import MainThreadProgram
    from ..inspect.graphs.graph_model import BackwardGraph

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 3

FAILED, REFUSED, INTERRUPTED = 1, 2, 130

_PATIENCE = 10.0
"""Seconds that a script has to end in, once its graph has been written."""

_FOLDS = ("auto", "module", "blocks", "chains", "order", "none")

_DESCRIPTION = f"""\
Run a script as `python SCRIPT args` would, up to its first backward pass, write the graph of that, and end the script.
Without -o, print the graph in numbers and as a tree of modules. -o may also stand last: train.py -o loss.svg.
{SCRIPT}

exit status: 0; 1 if the script raised, ended before the backward, or the file could not be written; 2 if the command
line is wrong or there is no such script; 130 after Ctrl-C, which ends the script"""

_EXAMPLES = """\
examples:
  gradscope graph train.py
  gradscope graph -o loss.svg --fold blocks train.py --epochs 1
  gradscope graph -o loss.html --gradients train.py
  gradscope graph -o path.svg --to fc1.weight train.py
  gradscope graph -o - --format json --backward 2 train.py

formats, by the ending of FILE: {endings}
nodes, for --from and --to: a number in the engine's order, the path of a parameter, the name of an operator"""


class _FormatsInHelp(argparse.RawDescriptionHelpFormatter):
    """Names the formats, which are imported when somebody reads the help."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(_with_formats(text), width, indent)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return _with_formats(action.help or "")


def _with_formats(text: str) -> str:
    """Return a text of the help with ``{formats}`` and ``{endings}`` filled in."""
    if "{formats}" not in text and "{endings}" not in text:
        return text
    # The instruments load when somebody reads this help.
    from ..inspect.graphs.formats.graph_format_registry import formats

    *names, last = formats()
    endings = ", ".join(" or ".join(found.endings) for found in formats().values())
    return text.replace("{formats}", f"{', '.join(names)} or {last}").replace("{endings}", endings)


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``graph`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "graph",
        help="run a script up to its backward pass and draw the graph",
        usage="gradscope graph [-h] [-o FILE] [options] [-m] SCRIPT [args ...]",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=_FormatsInHelp,
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there; - is stdout")
    parser.add_argument("--format", metavar="F", help="{formats}")
    parser.add_argument("--backward", metavar="N", type=positive, default=1, help="the N-th backward (default 1)")
    parser.add_argument(
        "--fold", choices=_FOLDS, default="auto", help="auto (default) folds what is too large to look at"
    )
    parser.add_argument(
        "--depth", metavar="D", type=positive, help="how many parts of a module's path --fold module keeps (default 1)"
    )
    parser.add_argument("--from", dest="source", metavar="NODE", help="only what the gradients of NODE come to")
    parser.add_argument("--to", dest="target", metavar="NODE", help="only what leads to NODE, and how many paths do")
    parser.add_argument("--gradients", action="store_true", help="let the backward run, and show norms and times")
    parser.add_argument("--stats", action="store_true", help="print the graph in numbers as well")
    add_script_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``module``, ``args``, ``output``, ``format``, ``backward``, ``fold``, ``depth``, ``source``,
        ``target``, ``gradients`` and ``stats``.
    """
    # The instruments load when the command runs.
    from ..inspect.debuggee.main_thread import MainThreadProgram, deepen_stack
    from ..inspect.debuggee.script_targets import find_target
    from ..inspect.graphs.formats.graph_files import ENDINGS, format_of

    take_output(args, ENDINGS)
    if args.depth is not None and args.fold not in ("module", "auto"):
        return _refuse(f"--depth goes with --fold module, not with --fold {args.fold}", REFUSED)
    try:
        format = (
            "text" if args.output in (None, "-") and args.format is None else format_of(args.output or "", args.format)
        )
        program = MainThreadProgram(find_target(args.script, module=args.module), args.args)
    except (OSError, ImportError, ValueError) as error:
        return _refuse(str(error), REFUSED)
    trouble = _unwritable(args.output)
    if trouble:
        return _refuse(trouble, FAILED)
    deepen_stack()
    with stdout_on_stderr() as stdout:
        return _Drawing(program, args, format, stdout, sys.stderr).run()


class _Drawing:
    """The run of the script: its graph is written when it has been taken, however the script ends afterwards."""

    def __init__(
        self, program: MainThreadProgram, args: argparse.Namespace, format: str, stdout: TextIO, stderr: TextIO
    ) -> None:
        # The instruments load when the command runs.
        from ..inspect.graphs.graph_capture import GraphCapture

        self._program = program
        self._args = args
        self._output = args.output if args.output in (None, "-") else os.path.abspath(args.output)
        self._format = format
        self._stdout = stdout
        self._stderr = stderr
        self._status: int | None = None
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self._capture = GraphCapture(program, backward=args.backward, gradients=args.gradients, taken=self._take)

    def run(self) -> int:
        """Run the script without its output; return the command's exit status."""
        # The instruments load when the command runs.
        from ..inspect.debuggee.exits import before_os_exit

        program = self._program
        with (
            open(os.devnull, "w", encoding=sys.stdout.encoding) as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            before_os_exit(self._left_by_os_exit),
        ):
            self._capture.run()
        if self._failure is not None:
            raise self._failure
        if program.gate.gone:  # this is a child process that the script has forked
            return program.exit_status or 0
        if isinstance(program.error, KeyboardInterrupt):
            say("gradscope: interrupted", file=self._stderr)
            self._status = INTERRUPTED
        elif self._status is None:
            self._status = self._say(self._why_none(), FAILED)
        if program.threads.alive():
            atexit._run_exitfuncs()
            leave(self._status)
        self._ended.set()
        return self._status

    def _take(self, graph: BackwardGraph) -> None:
        self._status = FAILED
        try:
            self._status = self._deliver(graph)
        except Exception as error:  # it is none of the script's: whoever reads our output has left, for instance
            self._failure = error
        threading.Thread(target=self._leave_without_end, args=(self._status,), daemon=True).start()

    def _leave_without_end(self, status: int) -> None:
        """Leave a script that does not end: it catches everything, or waits for a thread of its own."""
        if not self._ended.wait(_PATIENCE):
            leave(status)

    def _left_by_os_exit(self, status: int) -> int:
        if self._status is not None:
            return self._status
        return self._say(f"{self._program.title} ended by os._exit({status}), {self._before()}", FAILED)

    def _deliver(self, graph: BackwardGraph) -> int:
        """Cut, fold and write the graph; return the exit status."""
        # The instruments load when the command runs.
        from ..inspect.graphs.formats.graph_files import render_graph
        from ..inspect.graphs.graph_statistics import graph_statistics
        from ..inspect.graphs.node_selection import subgraph

        args = self._args
        notes = []
        try:
            if args.source is not None or args.target is not None:
                whole, graph = graph, subgraph(graph, args.source, args.target)
                graph.graph["parameters"] = []  # of a part, nothing is missing
                notes += _about_paths(whole, args)
            shown = _folded(graph, args)
            text = render_graph(shown, self._format, fit=args.fold == "auto" and args.depth is None)
        except ValueError as error:
            return self._say(str(error), FAILED)
        if args.stats and self._format != "text":
            notes.append(str(graph_statistics(graph)))
        if self._output in (None, "-"):
            say(text, end="" if text.endswith("\n") else "\n", file=self._stdout)
        else:
            try:
                with open(self._output, "w", encoding="utf-8", newline="\n") as file:
                    file.write(text)
            except OSError as error:
                return self._say(f"cannot write {args.output}: {error.strerror}", FAILED)
            folded = "" if shown is graph else f", folded to {len(shown):,}"
            notes.insert(0, f"{args.output}: {len(graph):,} nodes{folded}")
        if notes:
            say("\n".join(notes), file=self._stderr if args.output == "-" else self._stdout)
        return 0

    def _why_none(self) -> str:
        # The instruments load when the command runs.
        from ..inspect.adapters.event_guards import own_error

        program, before = self._program, self._before()
        if self._capture.fault:
            return f"no graph: {own_error(self._capture.fault)}"
        error = program.error
        if error is not None:
            text = (str(error).strip() or "no message").splitlines()[0]
            return f"{program.title} raised {type(error).__name__}: {text} ({_raised_at(error)}{before})"
        if program.exit_status:
            return f"{program.title} ended with exit status {program.exit_status}, {before}"
        if self._capture.backwards:
            return f"{program.title} finished {before}"
        return f"{program.title} finished without calling backward(), so there is no graph{_too_old()}"

    def _before(self) -> str:
        begun = self._capture.backwards
        return f"after {begun} of {self._args.backward} backwards" if begun else "before its first backward"

    def _say(self, text: str, status: int) -> int:
        return _refuse(text, status, self._stderr)


def _folded(graph: BackwardGraph, args: argparse.Namespace) -> BackwardGraph:
    # The instruments load when the command runs.
    from ..inspect.graphs.folding import fold

    if args.fold == "none" or (args.fold == "auto" and args.depth is None):
        return graph
    return fold(graph, "module" if args.fold == "auto" else args.fold, depth=args.depth or 1)


def _about_paths(graph: BackwardGraph, args: argparse.Namespace) -> list[str]:
    """Return how many paths lead to the node that was asked for, and what lies on all of them."""
    # The instruments load when the command runs.
    from ..inspect.graphs.graph_paths import count_paths, dominators

    if args.target is None:
        return []
    count = count_paths(graph, args.target, args.source)
    number = f"{count:,}" if count < 10**15 else f"about 10^{len(str(count)) - 1}"
    names = []
    for key in dominators(graph, args.target, args.source)[:-1]:
        data = graph.nodes[key]
        names.append(f"{data['operator']} (node {data['index']})")
    if len(names) > 12:
        names = [*names[:6], f"{len(names) - 11} more", *names[-5:]]
    return [f"{number} path{'s' * (count != 1)} to {args.target}", f"all pass through {', '.join(names) or 'nothing'}"]


def _unwritable(path: str | None) -> str:
    """Return why a file cannot be written, as far as that can be told before the script has run."""
    if path in (None, "-"):
        return ""
    assert path is not None
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        return f"cannot write {path}: it is a directory"
    if not os.path.isdir(folder):
        return f"cannot write {path}: there is no directory {folder}"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return f"cannot write {path}: permission denied"
    return ""


def _too_old() -> str:
    """Return that the program's PyTorch is, if it is, as a line of its own."""
    # The instruments load when the command runs.
    from ..inspect.adapters.torch.torch_version import check_version

    try:
        check_version(getattr(sys.modules.get("torch"), "__version__", "999.0"))
    except ImportError as error:
        return f"\n{error}"
    return ""


def _raised_at(error: BaseException) -> str:
    """Return the user's innermost line of a traceback."""
    # The instruments load when the command runs.
    from ..inspect.debugging.prompt.plain_text import short_path
    from ..program_files import is_library_file

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_library_file(frame.filename)]
    return f"{short_path(frames[-1].filename)}:{frames[-1].lineno}, " if frames else ""


def _refuse(text: str, status: int, stderr: TextIO | None = None) -> int:
    say(f"gradscope graph: {text}", file=stderr or sys.stderr)
    return status
