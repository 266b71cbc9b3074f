"""``gradscope query LAKE SQL``: a question to a dataset of recordings."""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
import time
from typing import TYPE_CHECKING, Any

from ..inspect.output.terminal_text import json_text, say

if TYPE_CHECKING:
    from ..inspect.ranks.lake.lake_query import Answer

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 12

_PATIENCE = 2.0  # seconds before it is said how far a question is

_DESCRIPTION = """\
Ask a dataset that `gradscope export` has written, in SQL, which DuckDB answers. Tables: nodes (a row for each node of
each backward, with the statistics of its gradients), steps (of one of many ranks: a row for each parameter before each
step of an optimizer), series (loss and norms over the whole run) and runs. The question reads LAKE and nothing else,
and writes nothing. Ctrl-C ends it.

exit status: 0; 2 if there is no such dataset, the SQL is wrong, or there is no answer in time; 130 after Ctrl-C"""

_EXAMPLES = """\
examples:
  gradscope query lake/ "select parameter, min(iteration) from nodes where grad_outputs_norm < 1e-8 group by parameter"
  gradscope query lake/ "select * from runs" --format json
  gradscope query lake/ "select iteration, norm from steps where name = 'head.weight'" --format csv > norms.csv"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``query`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "query",
        help="ask a dataset of recordings in SQL",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lake", metavar="LAKE", help="the directory of the dataset")
    parser.add_argument("sql", metavar="SQL", help="the question")
    parser.add_argument(
        "--format", choices=("text", "json", "csv"), default="text", help="a table (default), JSON or CSV"
    )
    parser.add_argument("--limit", type=int, default=40, metavar="N", help="rows of the table (default 40; 0: all)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="give it up after so long")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.lake.lake_query import QueryError, ask
    from ..inspect.recording import RecordingError

    limit = args.limit if args.format == "text" and args.limit > 0 else None
    progress = _Progress()
    try:
        answer = ask(args.lake, args.sql, limit=limit, timeout=args.timeout, progress=progress.told)
    except (RecordingError, QueryError) as error:
        progress.close()
        say(f"gradscope query: {error}", file=sys.stderr)
        return 2
    finally:
        progress.close()
    _show(answer, args.format)
    return 0


def _show(answer: Answer, form: str) -> None:
    # The instruments load when the command runs.
    from ..inspect.output.terminal_text import table_text

    if form == "json":
        say(json_text([dict(zip(answer.columns, map(_plain, row))) for row in answer.rows]))
    elif form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([answer.columns, *answer.rows])
        say(text.getvalue().rstrip("\n"))
    else:
        say(table_text([answer.columns, *(tuple(map(_cell, row)) for row in answer.rows)]))
        if answer.more:
            say(f"... the first {len(answer.rows)}; --limit 0 shows all")


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: dates, NaN and what else it does not know as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class _Progress:
    """Says on a terminal how far a question is that takes long."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._told = False

    def told(self, share: float) -> None:
        """Be told how much is done."""
        if sys.stderr.isatty() and time.monotonic() - self._since > _PATIENCE:
            sys.stderr.write(f"\r{share:4.0%} ")
            sys.stderr.flush()
            self._told = True

    def close(self) -> None:
        """Leave the line as it was."""
        if self._told:
            sys.stderr.write("\r      \r")
            self._told = False
