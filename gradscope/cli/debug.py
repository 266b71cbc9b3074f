"""``gradscope debug SCRIPT [args]``: run a script and stop inside its backward passes."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..inspect import Debugger

__all__ = ["add_parser", "run"]

_DESCRIPTION = """\
Run a script as `python SCRIPT args` would, and stop before the first node of its first backward pass.

exit status: the script's own; 1 if it raised or never called backward(), 2 if the command line is wrong"""

_EXAMPLES = """\
examples:
  gradscope debug train.py --epochs 1
  gradscope debug --line train.py
  gradscope debug -c 'break param:fc1.weight if isnan(grad); continue; print; quit' train.py"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``debug`` to the command's subparsers.

    Parameters
    ----------
    subparsers : argparse._SubParsersAction

    Returns
    -------
    argparse.ArgumentParser
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "debug",
        help="run a script and step through its backward passes",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--line", action="store_true", help="a prompt instead of the terminal UI")
    parser.add_argument(
        "-c",
        "--commands",
        metavar="COMMANDS",
        help="carry out debugger commands, separated by semicolons, and leave; needs no terminal",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the script to run")
    rest = parser.add_argument("args", nargs=argparse.REMAINDER, metavar="args", help="the script's own arguments")
    # Otherwise argparse lists it among what is missing when SCRIPT is.
    rest.required = False
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``args``, ``line`` and ``commands``.

    Returns
    -------
    int
    """
    from ..inspect import Debugger

    try:
        debugger = Debugger.for_script(args.script, args.args)
    except OSError as error:
        return _refuse(str(error))
    if args.commands is not None:
        return _run_commands(debugger, args.commands)
    if args.line:
        from ..inspect.line_mode import LineMode

        LineMode(debugger).run()
        return _conclude(debugger)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _refuse(
            "the terminal UI needs a terminal; use `gradscope debug --line SCRIPT` for a prompt, or -c COMMANDS"
        )
    return _run_app(debugger)


def _run_commands(debugger: Debugger, text: str) -> int:
    from ..inspect.line_mode import LineMode
    from ..inspect.verbs import UsageError, split_commands

    commands = split_commands(text)
    if not commands:
        return _refuse("-c needs at least one command, such as 'step; print; continue'")
    mode = LineMode(debugger)
    try:
        mode.run_commands(commands)
    except UsageError as error:
        return _refuse(f"-c: {error}")
    status = _conclude(debugger)
    return status or int(mode.failures > 0)


def _run_app(debugger: Debugger) -> int:
    try:
        from gradscope_tui.app import run_app
    except ImportError as error:
        return _refuse(f"the terminal UI cannot be loaded ({error}); use `gradscope debug --line SCRIPT`")
    status = run_app(debugger)
    if debugger.traceback:
        # The UI showed it on a screen that is gone.
        print(debugger.traceback, end="", file=sys.stderr)
    return _conclude(debugger) or status


def _conclude(debugger: Debugger) -> int:
    """Say how it ended; return the exit status."""
    status, text = debugger.conclusion()
    print(text, file=sys.stderr if status else sys.stdout, flush=True)
    return status


def _refuse(text: str) -> int:
    print(f"gradscope debug: {text}", file=sys.stderr)
    return 2
