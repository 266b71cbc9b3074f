"""The ``gradscope`` command: one file per subcommand, each with ``add_parser`` and ``run``.

Every file of the folder that has ``add_parser`` is a subcommand; ``PLACE`` says where the help lists it, the last by
default. :mod:`~.scripts` is what commands that run a script share, :mod:`~.output` where their own words go.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gradscope import __version__

from ..inspect.discovery import import_all
from ..inspect.output.terminal_text import say
from .output import give_up_output, open_missing_streams

__all__ = ["main"]

_LAST = 100
SUBCOMMANDS = tuple(
    sorted(
        (module for module in import_all(__name__) if hasattr(module, "add_parser")),
        key=lambda module: (getattr(module, "PLACE", _LAST), module.__name__),
    )
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status.

    Examples
    --------
    >>> main(["--version"])
    gradscope 0.10.0
    0
    """
    open_missing_streams()
    stderr = sys.stderr  # which a script that still runs may have
    try:
        status = _run(argv)
        stdout = sys.__stdout__  # in whose place the script may have put what is no file
        if stdout is not None and not stdout.closed:
            stdout.flush()
        return status
    except KeyboardInterrupt:
        say("gradscope: interrupted", file=stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has left
        give_up_output()
        return 141
    except OSError as error:
        give_up_output()
        what = f"{error.filename}: " if error.filename else "cannot write the output: "
        say(f"gradscope: {what}{error.strerror or error}", file=stderr)
        return 2


def _run(argv: Sequence[str] | None) -> int:
    try:
        args = _parser().parse_args(argv)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 2
    status: int = args.run(args)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gradscope",
        description="A debugger for gradients: stop a training script in its backward pass, step through it node by "
        "node, and be told which line spoiled a gradient.",
        epilog="`gradscope COMMAND --help` explains a command, its options and exit statuses. Arguments after the "
        "script go to the script, which runs as `python SCRIPT` would. In a notebook, `%load_ext gradscope` adds "
        "`%%gradscope check`, `record` and `doctor`.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in SUBCOMMANDS:
        module.add_parser(subparsers)
    return parser


class _Version(argparse.Action):
    """Prints the version."""

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        say(f"gradscope {__version__}")
        parser.exit()
