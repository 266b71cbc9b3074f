"""``gradscope serve SCRIPT|FILE``: the terminal UI in a browser on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..inspect.output.terminal_text import say
from .scripts import SCRIPT, add_script_arguments

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 13

_DESCRIPTION = f"""\
Show the terminal UI in a browser on this machine: of a script under the debugger, or of a recording.
{SCRIPT}
A recording is a file that ends in .gscope.

The address that is printed holds a token, works once, and on this machine alone (127.0.0.1). The script starts when the
page is opened, and ends when it is closed. From another machine: ssh -L 8321:127.0.0.1:8321 HOST.

exit status: 0 once it is ended (Ctrl-C); 2 if the command line is wrong, the port is taken or textual-serve missing"""

_EXAMPLES = """\
examples:
  gradscope serve train.py --epochs 1
  gradscope serve --port 8321 run.gscope"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``serve`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "serve",
        help="show the terminal UI in a browser",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope serve [-h] [--port N] [-m] SCRIPT|FILE [args ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="where to listen (default: a free port)")
    add_script_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def _port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, got {text!r}")
    return number


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.debuggee.script_targets import find_target
    from ..inspect.debugging.prompt.prompt_verbs import UsageError

    recorded = not args.module and args.script.endswith(".gscope")
    try:
        if recorded:
            _open_once(args.script)
        else:
            find_target(args.script, module=args.module)  # what is wrong with it is said before a page is opened
    except (UsageError, OSError, ImportError) as error:
        return _refuse(str(error))
    try:
        from gradscope_tui.browser.page_server import PageServer  # it loads textual-serve, an optional dependency
    except ImportError as error:
        return _refuse(f"this needs textual-serve ({error}): pip install 'gradscope-debugger[serve]'")
    title = os.path.basename(args.script)
    try:
        server = PageServer(_command(args, recorded), title=title, port=args.port)
    except OSError as error:
        return _refuse(f"cannot listen on port {args.port}: {error.strerror or error}")
    say(f"gradscope serve: {title} is at {server.address}\nIt works once, on this machine. Ctrl-C ends it.")
    sys.stdout.flush()
    server.run()
    return 0


def _open_once(path: str) -> None:
    """Raise what is wrong with a recording."""
    # The instruments load when the command runs.
    from ..inspect import open_recording
    from ..inspect.recording import RecordingError

    try:
        open_recording(path).close()
    except RecordingError as error:
        raise OSError(str(error)) from None


def _command(args: argparse.Namespace, recorded: bool) -> list[str]:
    """Return the command that shows the screen."""
    gradscope = [sys.executable, "-m", "gradscope"]
    if recorded:
        return [*gradscope, "view", args.script]
    return [*gradscope, "debug", *(["-m"] if args.module else []), args.script, *args.args]


def _refuse(text: str) -> int:
    say(f"gradscope serve: {text}", file=sys.stderr)
    return 2
