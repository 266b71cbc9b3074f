"""The files of a program by their names: which are its own, which a library's, and what a notebook's cells are called.

What reads sources and runs nothing asks here too, so this needs no runtime.
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
from typing import Any

__all__ = ["COMPUTING", "add_library", "is_installed_file", "is_library_file", "is_notebook_package", "source_name"]

COMPUTING = r"gradscope\.(amp|nn|optim|runtime)(\..*)?"
"""The modules in which NumPy warns of overflow and invalid values where PyTorch computes inf and nan in silence."""

_GRADSCOPE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_COMMANDS = tuple(os.path.join(top, name, "") for top in (sys.prefix, sys.base_prefix) for name in ("bin", "Scripts"))
_library_prefixes: tuple[str, ...] = (_GRADSCOPE, "<gradscope ", "<frozen ")

_OF_NOTEBOOKS = (
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


@functools.lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Whether a file belongs to gradscope, the standard library or another library that counts as such.

    What is typed in (``<stdin>``) is the user's, and so is what is installed from elsewhere, but for what runs a
    notebook's cells.
    """
    if filename.startswith(_library_prefixes):
        return True
    if "site-packages" in filename:
        return is_notebook_package(filename)
    return filename.startswith(_STANDARD_LIBRARY)


@functools.lru_cache(maxsize=4096)
def is_installed_file(filename: str) -> bool:
    """Whether a file has been installed from elsewhere: a package that is no framework, or a command.

    So is what lies beside the records of an installation, as ``pip install --target`` leaves them in a folder.

    Examples
    --------
    >>> is_installed_file("/venv/lib/python3.11/site-packages/timm/layers/drop.py"), is_installed_file("train.py")
    (True, False)
    """
    if "site-packages" in filename or "dist-packages" in filename or filename.startswith(_COMMANDS):
        return True
    return any(entry and filename.startswith(entry + os.sep) and _holds_packages(entry) for entry in sys.path)


@functools.cache
def _holds_packages(folder: str) -> bool:
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def add_library(directory: str) -> None:
    """Count the files of a directory as a library's (PyTorch's own Python files).

    Parameters
    ----------
    directory : str
        Or what the names of code that it makes begin with: ``<...>``.
    """
    global _library_prefixes
    prefix = directory if directory.startswith("<") else os.path.join(os.path.abspath(directory), "")
    if prefix not in _library_prefixes:
        _library_prefixes = (*_library_prefixes, prefix)
        is_library_file.cache_clear()


def is_notebook_package(filename: str) -> bool:
    """Whether a file belongs to what is on the stack of every cell, and is no part of the user's program.

    Examples
    --------
    >>> is_notebook_package("/venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py")
    True
    """
    _, _, installed = filename.replace(os.sep, "/").rpartition("/site-packages/")
    return installed.partition("/")[0] in _OF_NOTEBOOKS


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
