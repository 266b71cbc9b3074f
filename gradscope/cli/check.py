"""``gradscope check SCRIPT [args]``: run a script and report each in-place write that spoils a gradient."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .output import report_stream

__all__ = ["add_parser", "run"]

NOTHING_FOUND, FOUND, FAILED = 0, 1, 2

_DESCRIPTION = """\
Run a script as `python SCRIPT args` would, and report where tensors that backward needs are written in place:
where each was saved, where it was written, where it was needed. The script computes what it computes without.
SCRIPT is a file, a directory or zip file with a __main__.py, or a module (with -m, as `python -m` runs it).

exit status: 0 nothing found, 1 findings, 2 the script could not be run, or failed for another reason"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``check`` to the command's subparsers.

    Parameters
    ----------
    subparsers : argparse._SubParsersAction

    Returns
    -------
    argparse.ArgumentParser
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "check",
        help="run a script and report in-place writes that spoil gradients",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope check [-h] [--format {text,json}] [--explain CODE] [-m] SCRIPT [args ...]",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text after the script's own output (default), or JSON on stdout with the script's output on stderr",
    )
    parser.add_argument("--explain", action=_Explain, metavar="CODE", help="print what a code such as GS101 means")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module or package")
    parser.add_argument("script", metavar="SCRIPT", help="the script to run")
    rest = parser.add_argument("args", nargs=argparse.REMAINDER, metavar="args", help="the script's own arguments")
    # Otherwise argparse lists it among what is missing when SCRIPT is.
    rest.required = False
    parser.set_defaults(run=run)
    return parser


class _Explain(argparse.Action):
    """Prints the explanation of a code and leaves, as ``--help`` does."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        from ..check.codes import CODES, explain

        if values.upper() not in CODES:
            parser.error(f"argument --explain: no code {values!r}; there are {', '.join(CODES)}")
        print(explain(values))
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``module``, ``args`` and ``format``.

    Returns
    -------
    int
    """
    with report_stream(args.format) as stream:
        status, report = _check(args)
        print(report, end="", file=stream, flush=True)
    return status


def _check(args: argparse.Namespace) -> tuple[int, str]:
    """Run the script; return the exit status and the report."""
    from ..check import as_json, as_text, check_script
    from ..inspect.programs.program import print_uncaught
    from ..inspect.programs.streams import flush

    pid = os.getpid()
    try:
        sanitizer, result = check_script(args.script, args.args, module=args.module)
    except (OSError, ImportError) as error:
        print(f"gradscope check: {error}", file=sys.stderr)
        return FAILED, ""
    flush()
    if result.error is not None and not sanitizer.explains(result.error):
        print_uncaught(result.error)
    if os.getpid() != pid:  # a child that the script has forked
        return result.exit_code, ""
    status = FOUND if sanitizer.findings else FAILED if result.exit_code else NOTHING_FOUND
    if status == FAILED and result.error is None:
        print(f"gradscope check: {args.script} ended with exit status {result.exit_code}", file=sys.stderr)
    report = as_json(sanitizer, result, status) if args.format == "json" else as_text(sanitizer, result)
    return status, report
