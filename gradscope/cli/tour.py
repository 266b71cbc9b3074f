"""``gradscope tour``: a walk over a program with three mistakes, on the real screen."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..inspect.output.terminal_text import say
from .output import shows_screens

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 0

_DESCRIPTION = """\
Learn the terminal UI in five minutes, on a built-in program whose gradient vanishes, then becomes NaN, and whose saved
tensor is written at last. A strip at the top says what there is to see, and waits for the key that it names; all other
keys work too.

exit status: 0; 2 without a terminal, or without Textual"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``tour`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "tour",
        help="learn the terminal UI on a program with three mistakes",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  gradscope tour",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.wire.channel import ChannelError
    from ..inspect.wire.program_process import ProgramProcess

    if not shows_screens():
        return _refuse("the tour needs a terminal that moves its cursor")
    try:
        from gradscope_tui.tour.guided_app import PROGRAM, run_tour  # it loads Textual, an optional dependency
    except ImportError as error:
        return _refuse(f"the terminal UI cannot be loaded ({error})")
    process = ProgramProcess([str(PROGRAM)], terminal=True)
    try:
        status = run_tour(process.debugger)
    except ChannelError as error:
        return _refuse(f"its program could not be started: {error}")
    process.conclude()
    return status


def _refuse(text: str) -> int:
    say(f"gradscope tour: {text}", file=sys.stderr)
    return 2
