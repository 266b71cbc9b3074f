"""``python -m gradscope.runtime.ops show NAME ...``: print the source that is generated for operators."""

from __future__ import annotations

import argparse
import os
import sys

from .generated_source import UnknownOperatorError, legend, listing


def main() -> int:
    """Run the command; return its exit status: 2 where a name is unknown, 141 where nobody reads on."""
    parser = argparse.ArgumentParser(prog="python -m gradscope.runtime.ops", description="Look into the operators.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser(
        "show",
        help="print the source of an operator's function and of its node",
        description="Print the source that is generated for operators: the function, the derivative on bare arrays, "
        "and what the names in them stand for. What is printed is Python.",
    )
    show.add_argument("names", nargs="+", metavar="NAME", help="mul, the in-place mul_, or a full name such as sum.dim")
    shown, unknown = [], []
    for name in parser.parse_args().names:
        try:
            shown.append(listing(name))
        except UnknownOperatorError as error:
            unknown.append(str(error))
    if unknown:
        print("\n".join(unknown), file=sys.stderr)
        return 2
    source = "\n".join(shown)
    try:
        print(f"{source}\n# What the names stand for:\n{legend(source)}", flush=True)
    except BrokenPipeError:
        # The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
