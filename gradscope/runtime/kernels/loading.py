"""Loads compiled kernels, where Numba is installed; says why there are none where NumPy's forms run.

``GRADSCOPE_KERNELS=numpy`` in the environment leaves the compiled forms out.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["compiled", "compiler"]

_FAMILIES = "gradscope.runtime.kernels.compiled."


class _Loading:
    lock = threading.RLock()  # while kernels are loaded, Numba's folder is another one for the whole process


@cache
def compiled(family: str) -> Any:
    """Return a module of compiled kernels, or None: then their NumPy forms run."""
    return _load(family)[0]


def compiler() -> str:
    """Return what compiles kernels, in a sentence for people: with which Numba, or why none does.

    Examples
    --------
    >>> compiler().startswith("Numba") or compiler().startswith("NumPy")
    True
    """
    found, reason = _load("error_function_loops")
    return reason if found is None else f"Numba {importlib.import_module('numba').__version__}"


@cache
def _load(family: str) -> tuple[ModuleType | None, str]:
    """Return a module of compiled kernels, or None and why there is none."""
    wanted = os.environ.get("GRADSCOPE_KERNELS", "auto")
    if wanted == "numpy":
        return None, "NumPy: GRADSCOPE_KERNELS=numpy"
    try:
        if _is_disabled():
            return None, "NumPy: NUMBA_DISABLE_JIT=1"
        with _Loading.lock, _kept_on_disk():
            return importlib.import_module(_FAMILIES + family), ""
    except ImportError as error:
        return None, f"NumPy: Numba cannot be imported ({error})"
    except Exception as error:  # a compiler raises errors of every class; NumPy's form is as right
        kernel = f".{error.kernel}" if hasattr(error, "kernel") else ""
        return None, f"NumPy: Numba cannot compile {family}{kernel} ({_complaint(error.__cause__ or error)})"


def _is_disabled() -> bool:
    """Whether Numba is told to leave functions as they are in Python."""
    from numba import config  # 0.2 s of CPU time, once an array is large

    return bool(config.DISABLE_JIT)


_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def _complaint(error: BaseException) -> str:
    """Return what an error is and how it begins: of Numba's own the first line names the step, the second the fault."""
    text = _COLOURS.sub("", str(error))  # where a terminal would show them
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = 2 if type(error).__module__.startswith("numba") else 1
    return f"{type(error).__name__}: {': '.join(lines[:told])}"


@contextmanager
def _kept_on_disk() -> Iterator[None]:
    """Have what is compiled kept for the next process, in a folder of this version of the kernels.

    Numba looks at the file of a kernel alone, and would not see that what it inlines has changed.
    """
    from numba import config  # 0.2 s of CPU time, once an array is large

    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    before = config.CACHE_DIR
    config.CACHE_DIR = os.path.join(before or os.path.join(cache_home, "gradscope"), digest.hexdigest()[:16])
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _after_fork() -> None:
    """Have a lock that no thread has, for the one that had it is not in the process that a fork makes."""
    _Loading.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
