"""``gradscope report FILE -o report.html``: a recording as one HTML page."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..inspect.output.terminal_text import say

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 9

_DESCRIPTION = """\
Write a recording as one HTML page that needs nothing else: an overview, gradient norms by parameter and iteration as
a heat map, the largest and smallest gradients, where NaN and Inf came up first, saved tensors that had been modified.

exit status: 0; 2 if FILE cannot be read, or the page cannot be written"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``report`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "report",
        help="write a recording as an HTML page",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the recording, or a directory with those of many ranks")
    parser.add_argument("--rank", type=int, metavar="N", help="the recording of this rank, in a directory")
    parser.add_argument("-o", "--output", default="report.html", metavar="PAGE", help="default: report.html")
    parser.add_argument("--title", default="", help="the script's name by default")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.recorded_ranks import ranks_of
    from ..inspect.recording import RecordingError, open_recording
    from ..inspect.recording.file.schema import for_its_owner
    from ..inspect.recording.reports.html_report import html_report

    try:
        with open_recording(ranks_of(args.file, args.rank)) as recording:
            page = html_report(recording, title=args.title)
        with open(args.output, "w", encoding="utf-8", opener=for_its_owner) as file:
            file.write(page)
    except RecordingError as error:
        say(f"gradscope report: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        say(f"gradscope report: cannot write {args.output}: {error.strerror}", file=sys.stderr)
        return 2
    say(f"wrote {args.output}")
    return 0
