"""``gradscope check SCRIPT [args]``: run a script and report each in-place write that spoils a gradient."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["add_parser", "run"]

NOTHING_FOUND, FOUND, FAILED = 0, 1, 2

_DESCRIPTION = """\
Run a script as `python SCRIPT args` would, and report where tensors that backward needs are written in place:
where each was saved, where it was written, where it was needed. The script computes what it computes without.

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
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text after the script's own output (default), or JSON on stdout with the script's output on stderr",
    )
    parser.add_argument("--explain", action=_Explain, metavar="CODE", help="print what a code such as GS101 means")
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
        ``script``, ``args`` and ``format``.

    Returns
    -------
    int
    """
    if args.format == "json":
        with _stdout_on_stderr() as stream:
            status, report = _check(args.script, args.args, args.format)
        print(report, end="", file=stream, flush=True)
        return status
    stream = sys.stdout
    status, report = _check(args.script, args.args, args.format)
    print(report, end="", file=stream, flush=True)
    return status


def _check(script: str, arguments: Sequence[str], form: str) -> tuple[int, str]:
    """Run the script; return the exit status and the report."""
    from ..check import as_json, as_text, check_script
    from ..check.runner import print_error

    try:
        sanitizer, result = check_script(script, arguments)
    except OSError as error:
        print(f"gradscope check: cannot read {script}: {error.strerror}", file=sys.stderr)
        return FAILED, ""
    sys.stdout.flush()
    status = FOUND if sanitizer.findings else FAILED if result.exit_code else NOTHING_FOUND
    if result.error is not None and not sanitizer.explains(result.error):
        print_error(result.error)
        sys.stderr.flush()
    elif status == FAILED:
        print(f"gradscope check: {script} ended with exit status {result.exit_code}", file=sys.stderr)
    report = as_json(sanitizer, result, status) if form == "json" else as_text(sanitizer, result)
    return status, report


@contextlib.contextmanager
def _stdout_on_stderr() -> Iterator[Any]:
    """Send all that is written to standard output to standard error; yield the real standard output."""
    real = sys.stdout
    real.flush()
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        # Subprocesses and C libraries write to the file descriptor.
        standard = sys.__stdout__
        if standard is not None and real is standard and standard.fileno() == 1:
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            stack.callback(standard.flush)
            os.dup2(2, 1)
        yield real
