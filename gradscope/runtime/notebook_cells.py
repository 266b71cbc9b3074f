"""The cells of a notebook as sources: their numbers, and the packages that run them."""

from __future__ import annotations

import linecache
import os
import sys
from typing import Any

__all__ = ["is_notebook_package", "source_name"]

_PACKAGES = (
    "IPython",
    "anywidget",
    "comm",
    "ipykernel",
    "ipykernel_launcher.py",
    "ipywidgets",
    "psygnal",
    "tornado",
    "traitlets",
)


def is_notebook_package(filename: str) -> bool:
    """Whether a file belongs to what is on the stack of every cell, and is no part of the user's program.

    Examples
    --------
    >>> is_notebook_package("/venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py")
    True
    """
    _, _, installed = filename.replace(os.sep, "/").rpartition("/site-packages/")
    return installed.partition("/")[0] in _PACKAGES


def source_name(filename: str) -> str:
    """Return the name under which the user knows a source: ``In[3]`` for what the third cell of a notebook ran.

    IPython compiles a cell under a name with a hash, and ipykernel under that of a temporary file, which is not there.
    :mod:`linecache` has the lines of the cell under the returned name too.

    Parameters
    ----------
    filename : str
        ``co_filename`` of code.

    Returns
    -------
    str
        `filename` itself where it is no cell's.

    Examples
    --------
    >>> source_name("train.py")
    'train.py'
    """
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return filename
    named = _named_by(getattr(ipython, "get_ipython", lambda: None)(), filename)
    if named is None:
        return filename
    if filename in linecache.cache:
        linecache.cache[named] = linecache.cache[filename]
    return named


def _named_by(shell: Any, filename: str) -> str | None:
    """Return what a shell calls a cell in its own tracebacks; None for what is no cell."""
    format_code_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if format_code_name is None else format_code_name(filename)  # ('Cell', 'In[3]')
    return None if found is None else str(found[1])
