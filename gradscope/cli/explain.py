"""``gradscope explain CODE|TOPIC|MESSAGE``: what a finding or an error means, or how gradients work."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..inspect.output.terminal_text import say

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 5

_DESCRIPTION = """\
Print what a finding code such as GS101 means, or a short text about a topic such as nan or leaf, with a program that
has the problem and one that does not. Of the message of an error about gradients, PyTorch's or gradscope's, print the
topic. Without an argument, list codes and topics.

exit status: 0, or 2 if there is no such code or topic"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``explain`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "explain",
        help="print what a finding code, an error message or a topic is about",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="CODE|TOPIC|MESSAGE", nargs="*", help="such as GS101, nan, second-backward")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``what``.
    """
    # The instruments load when the command runs.
    from ..check.findings.finding_codes import all_codes, explain, find_code
    from ..inspect.diagnosis.explain_topics import find_topic, suggest, topic_text

    word = " ".join(args.what)
    if not word:
        say(_listing())
        return 0
    if find_code(word) is not None:
        say(explain(word))
        return 0
    topic = find_topic(word)
    if topic is None:
        close = suggest(word, all_codes())
        hint = f"did you mean {' or '.join(close)}?" if close else "`gradscope explain` lists what there is"
        say(f"gradscope explain: no code or topic {word!r}; {hint}", file=sys.stderr)
        return 2
    say(topic_text(topic))
    return 0


def _listing() -> str:
    # The instruments load when the command runs.
    from ..check.findings.finding_codes import all_codes
    from ..inspect.diagnosis.explain_topics import TOPICS

    rows = [("codes", "")]
    rows += [(f"  {code.code}", code.title) for code in all_codes().values()]
    rows += [("", ""), ("topics", "")]
    rows += [(f"  {topic.name}", topic.title) for topic in TOPICS.values()]
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(f"{name:<{width}}{title}".rstrip() for name, title in rows)
