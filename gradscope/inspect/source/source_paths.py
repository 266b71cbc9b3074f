"""Paths of the program's files as they are shown: seen from where it was started."""

from __future__ import annotations

import os
import sys

__all__ = ["program_name", "relative_path", "shown_line", "shown_path", "start_directory", "started_here"]


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # the current directory has been removed
        return ""


_started_in = _working_directory()


def started_here() -> None:
    """Note that a program is about to be started in the working directory; without it, this process is the program."""
    global _started_in
    _started_in = _working_directory()


def program_name() -> str:
    """Return the name of the file that this process runs: its script, or the notebook of its cells.

    Returns
    -------
    str
        ``'python'`` where there is none, and ``'notebook'`` where the server of the notebook does not tell.
    """
    name = os.path.basename(sys.argv[0] if sys.argv else "")
    if name != "ipykernel_launcher.py":
        return name or "python"
    return os.path.basename(os.environ.get("JPY_SESSION_NAME", "")) or "notebook"


def start_directory() -> str:
    """Return the directory in which the program was started: names of files stay the same when it goes elsewhere.

    Returns
    -------
    str
        Empty where that had been removed.
    """
    return _started_in


def relative_path(filename: str) -> str:
    """Return a path as seen from the directory in which the program was started.

    Returns
    -------
    str
        `filename` itself where there is no way from there, and of what is no absolute path.

    Examples
    --------
    >>> relative_path("<stdin>")
    '<stdin>'
    """
    if not _started_in or not os.path.isabs(filename):
        return filename
    try:
        return os.path.relpath(filename, _started_in)
    except ValueError:  # the file is on another drive
        return filename


def shown_path(filename: str) -> str:
    """Return a path as it is shown: from where the program was started, of what is below; else as it is."""
    relative = relative_path(filename)
    return filename if relative.startswith(os.pardir) else relative


def shown_line(place: str) -> str:
    """Return a line, as ``'file:line'``, with its path as :func:`shown_path` has it.

    Examples
    --------
    >>> shown_line("train.py:9")
    'train.py:9'
    """
    file, colon, line = place.rpartition(":")
    return f"{shown_path(file)}{colon}{line}"
