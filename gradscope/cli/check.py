"""``gradscope check SCRIPT [args]``: run a script and report each in-place write that spoils a gradient."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from ..inspect.output.terminal_text import say
from .output import report_stream
from .scripts import SCRIPT, add_format_argument, add_script_arguments

if TYPE_CHECKING:
    from ..check import Sanitizer, ScriptResult

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 2

NOTHING_FOUND, FOUND, FAILED = 0, 1, 2

_DESCRIPTION = f"""\
Run a script as `python SCRIPT args` would, and report where tensors that backward needs are written in place: where
each was saved, where it was written, where it was needed. Writes that no version counts, through .data or NumPy, are
found by their values. The script computes what it computes without.
{SCRIPT}

exit status: 0 nothing found, 1 findings, 2 the script could not be run, or failed for another reason, 130 after Ctrl-C,
which ends the script: what was found until then is reported"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``check`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "check",
        help="run a script and report in-place writes that spoil gradients",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope check [-h] [--format {text,json}] [--explain CODE] [-m] SCRIPT [args ...]",
        allow_abbrev=False,
    )
    add_format_argument(parser)
    parser.add_argument("--explain", action=_Explain, metavar="CODE", help="print what a code such as GS101 means")
    add_script_arguments(parser)
    parser.set_defaults(run=run)
    return parser


class _Explain(argparse.Action):
    """Prints the explanation of a code and leaves, as ``--help`` does."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        # The instruments load when the command runs.
        from ..check.finding_codes import CODES, explain

        if values.upper() not in CODES:
            parser.error(f"argument --explain: no code {values!r}; there are {', '.join(CODES)}")
        say(explain(values))
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``module``, ``args`` and ``format``.
    """
    with report_stream(args.format) as stream:
        return _check(args, stream)


def _check(args: argparse.Namespace, stream: TextIO) -> int:
    """Run the script, write the report, and return the exit status."""
    # The instruments load when the command runs.
    from ..check import Sanitizer, run_script
    from ..inspect.debuggee.program import print_uncaught
    from ..inspect.debuggee.streams import flush

    pid = os.getpid()
    try:
        with Sanitizer() as sanitizer:
            result = run_script(
                args.script,
                args.args,
                module=args.module,
                on_exit=lambda result: _report(args, sanitizer, result, stream),
            )
    except (OSError, ImportError) as error:
        say(f"gradscope check: {error}", file=sys.stderr)
        return FAILED
    flush()
    if result.error is not None and not sanitizer.explains(result.error):
        print_uncaught(result.error)
    if os.getpid() != pid:  # a child that the script has forked
        return result.exit_code
    return _report(args, sanitizer, result, stream)


def _report(args: argparse.Namespace, sanitizer: Sanitizer, result: ScriptResult, stream: TextIO) -> int:
    """Write the report, and return the exit status."""
    # The instruments load when the command runs.
    from ..check import as_json, as_text

    status = FOUND if sanitizer.findings else FAILED if result.exit_code else NOTHING_FOUND
    if isinstance(result.error, KeyboardInterrupt):
        status = result.exit_code
    if status == FAILED and result.error is None:
        say(f"gradscope check: {args.script} ended with exit status {result.exit_code}", file=sys.stderr)
    report = as_json(sanitizer, result, status) if args.format == "json" else as_text(sanitizer, result)
    say(report, end="", file=stream)
    return status
