"""Runs the commands named in Markdown files and puts what they print below them.

A command stands in a comment, ``<!-- output: COMMAND -->``; the block that follows, up to ``<!-- /output -->``, is
replaced. What ``<!-- markdown: COMMAND -->`` prints is part of the page as it is: tables that are made of the sources.
``python docs/render.py README.md`` renders one file; without arguments, README.md and all of docs/.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"<!-- output: (?P<command>.+?) -->\n(?:\n?```text\n.*?```\n<!-- /output -->\n)?", re.DOTALL)
MARKDOWN = re.compile(r"<!-- markdown: (?P<command>.+?) -->\n(?:.*?<!-- /markdown -->\n)?", re.DOTALL)
LONGEST = 60


def output_of(command: str, longest: int = LONGEST) -> str:
    """Return what a command prints, its middle left out where it is long."""
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).rstrip().splitlines()
    if len(lines) > longest:
        lines = [*lines[: LONGEST // 2], "...", *lines[-LONGEST // 3 :]]
    return "\n".join(line.rstrip() for line in lines)


def render(path: Path) -> None:
    """Render one file in place."""

    def block(match: re.Match[str]) -> str:
        command = match["command"]
        return f"<!-- output: {command} -->\n\n```text\n{output_of(command)}\n```\n<!-- /output -->\n"

    def markdown(match: re.Match[str]) -> str:
        command = match["command"]
        return f"<!-- markdown: {command} -->\n\n{output_of(command, sys.maxsize)}\n\n<!-- /markdown -->\n"

    text = BLOCK.sub(block, path.read_text(encoding="utf-8"))
    path.write_text(MARKDOWN.sub(markdown, text), encoding="utf-8")


def main() -> None:
    """Render the files named on the command line, or all."""
    named = [Path(argument) for argument in sys.argv[1:]]
    for path in named or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        render(path)


if __name__ == "__main__":
    main()
