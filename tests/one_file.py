"""What docs/architecture.md promises, that one file or one declaration adds a thing, is done in a copy of the packages.

A section "Adding a ..." shows files as code blocks with a title, which is their path, and commands with what they
print. :func:`follow` does what the section says, in a copy, and compares.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["Example", "File", "Shown", "copy_packages", "example_of", "follow", "run", "write"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"

_FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class File(NamedTuple):
    """A file that a section adds; where there is one of that path, the text is added at its end."""

    path: str
    text: str


class Shown(NamedTuple):
    """A command line, and what it prints."""

    command: str
    output: str


class Example(NamedTuple):
    """What a section shows."""

    files: tuple[File, ...]
    commands: tuple[Shown, ...]


def example_of(heading: str, page: Path = PAGE) -> Example:
    """Return the titled code blocks and the commands of the section with a heading."""
    sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [part for part in sections if part.startswith(f"{heading}\n")]
    blocks = _FENCE.findall(section)
    files = tuple(File(title, text) for _, title, text in blocks if title)
    commands = tuple(
        Shown(command, output)
        for language, _, text in blocks
        if language == "console"
        for command, output in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
    )
    return Example(files, commands)


def copy_packages(folder: Path) -> Path:
    """Copy both packages into a folder, in their places, and return the folder."""
    for package in ("gradscope", "tui/gradscope_tui"):
        # With what is compiled, which is younger than its source there as well.
        shutil.copytree(ROOT / package, folder / package)
    return folder


def write(folder: Path, files: tuple[File, ...]) -> None:
    """Write the files of a section into a copy."""
    for path, text in files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a", encoding="utf-8") as file:
            file.write(f"\n\n{text}" if file.tell() else text)


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run `python ...` or `gradscope ...` with the packages of a copy, in its folder."""
    program, *arguments = shlex.split(command)
    start = {"python": [sys.executable], "gradscope": [sys.executable, "-m", "gradscope"]}[program]
    path = os.pathsep.join([str(folder), str(folder / "tui")])
    return subprocess.run(
        [*start, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def follow(heading: str, folder: Path) -> Path:
    """Do in a copy what a section says; each command prints what is shown, and nothing else.

    Parameters
    ----------
    heading : str
        Of the section of docs/architecture.md, such as ``"Adding a finding"``.
    folder : Path
        An empty one.

    Returns
    -------
    Path
        The folder, for more that a test may ask of the copy.
    """
    example = example_of(heading)
    assert example.files, f"{heading}: no code block has a title"
    assert example.commands, f"{heading}: no command shows what comes of it"
    write(copy_packages(folder), example.files)
    for command, shown in example.commands:
        done = run(folder, command)
        assert (done.stderr, done.stdout) == ("", shown), command
    return folder
