"""Paths of the program's files as they are shown: seen from where it was started."""

from __future__ import annotations

import os

__all__ = ["relative_path", "start_directory", "started_here"]


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
