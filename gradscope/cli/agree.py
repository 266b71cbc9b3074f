"""``gradscope agree DIR``: whether the ranks of a recorded run hold the same gradients and parameters."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..inspect.output.terminal_text import json_text, say

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 10

AGREE, DISAGREE, FAILED = 0, 1, 2

_DESCRIPTION = """\
Tell whether all ranks of a recorded torch.distributed program held the same parameters, and after the all-reduce the
same gradients, before each step of an optimizer. Where they part: the first parameter, the iteration, what each rank
holds, and the likely cause.
DIR is what `torchrun --nproc-per-node N -m gradscope record -o DIR/ SCRIPT` has written; the recordings may also be
named one by one. It may be asked while the program runs.

exit status: 0 the ranks agree, as far as each has come, 1 they do not, or agree and then hang: they wait for each
other, or waited when they were seen last; 2 the recordings cannot be read or compared, or the command line is wrong"""

_EXAMPLES = """\
examples:
  gradscope agree run/
  gradscope agree run/ --format json
  gradscope agree run/ --restart 0
  gradscope agree run-rank0.gscope run-rank1.gscope"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``agree`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "agree",
        help="tell whether all ranks hold the same gradients and parameters",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="DIR", nargs="+", help="the recordings of all ranks")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or JSON")
    parser.add_argument(
        "--restart", type=int, metavar="N", help="where torchrun has started the ranks anew: that start, 0 the first"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.agreement import agreement
    from ..inspect.ranks.agreement_report import agreement_json, agreement_text
    from ..inspect.ranks.recorded_ranks import open_ranks
    from ..inspect.recording import RecordingError

    try:
        with open_ranks(*args.paths, restart=args.restart) as ranks:
            found = agreement(ranks)
            as_json = args.format == "json"
            say(json_text(agreement_json(found)) if as_json else agreement_text(found))
    except RecordingError as error:
        say(f"gradscope agree: {error}", file=sys.stderr)
        return FAILED
    return AGREE if found and not found.hang else DISAGREE
