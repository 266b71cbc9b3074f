"""File names in a report: relative to where the program was started, where that is possible."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

__all__ = ["below", "shown", "uri"]


def below(filename: str, directory: str) -> str | None:
    """Return the path of a file as seen from a directory that it is below; None where it is not.

    Examples
    --------
    >>> below("/home/me/src/train.py", "/home/me"), below("/usr/lib/x.py", "/home/me")
    ('src/train.py', None)
    >>> below("train.py", "/home/me")
    'train.py'
    """
    if not os.path.isabs(filename):
        return filename
    try:
        relative = os.path.relpath(filename, directory or os.sep)
    except ValueError:  # the two paths are on different drives
        return None
    return None if relative.split(os.sep)[0] == os.pardir else relative


def shown(filename: str, directory: str) -> str:
    """Return what a file is called in a text for people; one that is installed as it is below site-packages.

    Examples
    --------
    >>> shown("/home/me/.venv/lib/python3.11/site-packages/timm/layers/drop.py", "/home/me")
    'timm/layers/drop.py'
    """
    for folder in ("site-packages", "dist-packages"):
        _, found, installed = filename.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return installed
    return below(filename, directory) or filename


def uri(filename: str, directory: str) -> tuple[str, bool]:
    """Return a file's URI, and whether it is relative to the directory.

    Examples
    --------
    >>> uri("/home/me/a b/train.py", "/home/me"), uri("/usr/lib/x.py", "/home/me")
    (('a%20b/train.py', True), ('file:///usr/lib/x.py', False))
    """
    relative = below(filename, directory)
    if relative is not None:
        return quote(Path(relative).as_posix()), True
    return Path(filename).as_uri(), False
