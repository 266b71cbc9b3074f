"""``gradscope dap``: what an editor starts to debug a backward."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..inspect.output.terminal_text import say
from .output import give_up_output

__all__ = ["add_parser", "run"]

_DESCRIPTION = """\
Speak the Debug Adapter Protocol on stdin and stdout, for editors.
An editor's `launch` takes program or module, args, cwd, env and stopOnEntry; `attach` takes address or processId, and
the token from the environment variable GRADSCOPE_TOKEN.

exit status: 0; 2 if what came is no message of the protocol, or the port is taken"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``dap`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "dap",
        help="debug in an editor: the Debug Adapter Protocol",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--port",
        type=int,
        help="listen at 127.0.0.1:PORT (0: a free port) for editors that start no adapter; until Ctrl-C",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    if args.port is not None:
        return _serve(args.port)
    # The instruments load when the command runs.
    from ..inspect.dap.adapter import DebugAdapter
    from ..inspect.dap.framing import FramingError, Stream

    try:
        DebugAdapter(Stream(sys.stdin.buffer, sys.stdout.buffer)).run()
        sys.stdout.flush()
    except (BrokenPipeError, ConnectionResetError):  # the editor is gone, and so is what was on its way to it
        give_up_output()
    except FramingError as error:
        say(f"gradscope dap: {error}", file=sys.stderr)
        return 2
    return 0


def _serve(port: int) -> int:
    from ..inspect.dap.editor_server import EditorServer  # loads when the command runs

    try:
        server = EditorServer(port)
    except (OSError, OverflowError) as error:
        say(f"gradscope dap: cannot listen at 127.0.0.1:{port}: {error}", file=sys.stderr)
        return 2
    say(f"gradscope dap: listening at 127.0.0.1:{server.port}", file=sys.stderr)
    server.run()
    return 0
