"""Which file a recorder writes: names that no two ranks of a job share."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...records.own_rank import OwnRank
from ..file.schema import RecordingError

__all__ = ["ENDING", "one_at_a_time", "path_beside", "recording_path"]

ENDING = ".gscope"
"""What the files of a directory are called that are recordings."""

_KNOWN = ("rank", "pid", "time")
_PATIENCE = 5.0  # seconds in which another recorder must have begun
_POLL = 0.01


def recording_path(path: str, place: OwnRank) -> str:
    """Return the file that a path stands for in this process; the directory that it may name is made.

    Parameters
    ----------
    path : str
        ``{rank}``, ``{pid}`` and ``{time}`` in it stand for what they are here. One that ends in ``/``, or that is a
        directory, stands for the file of this rank in it.
    place : OwnRank
        Which rank this process is.

    Raises
    ------
    ValueError
        If other braces are in `path`, or a time in a directory that several ranks share.
    RecordingError
        If the directory cannot be made.

    Examples
    --------
    >>> recording_path("run-{rank}.gscope", OwnRank(3, 4)), recording_path("run.gscope", OwnRank(3, 4))
    ('run-3.gscope', 'run-rank3.gscope')
    >>> recording_path("run.gscope", OwnRank())
    'run.gscope'
    """
    names = _names_in(path)
    folder, name = os.path.split(path)
    several = place.world > 1
    if several and "time" in _names_in(folder):
        raise ValueError(
            f"{path!r}: ranks that start in different seconds would write to different directories\n"
            "Let the shell say the time once: -o runs/$(date +%F-%H%M%S)/"
        )
    facts = {"rank": str(place.rank or 0), "pid": str(os.getpid()), "time": time.strftime("%Y%m%d-%H%M%S")}
    filled = re.sub(r"\{(\w*)\}", lambda found: facts[found[1]], path)
    if not name or os.path.isdir(filled):
        _make(filled)
        return os.path.join(filled, f"rank-{place.rank or 0}{ENDING}")
    if several and names.isdisjoint({"rank", "pid"}):
        stem, ending = os.path.splitext(filled)
        return f"{stem}-rank{place.rank}{ending}"
    return filled


def _names_in(path: str) -> set[str]:
    """Return the names that stand in braces in a path."""
    names = set(re.findall(r"\{(\w*)\}", path))
    if not names <= set(_KNOWN):
        strange = min(names - set(_KNOWN))
        raise ValueError(
            f"{path!r} has {{{strange}}} in it\nWhat may stand in braces is {{rank}}, {{pid}} and {{time}}."
        )
    return names


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise RecordingError(
            f"the directory {folder} cannot be made: {error.strerror}\nName another, or a file that can be written."
        ) from None


def path_beside(path: str) -> str:
    """Return the name of this process's own recording beside one that another process writes.

    Examples
    --------
    >>> path_beside("run.gscope").startswith("run-")
    True
    """
    stem, ending = os.path.splitext(path)
    return f"{stem}-{os.getpid()}{ending}"


@contextmanager
def one_at_a_time(path: str) -> Iterator[None]:
    """Let one process of many begin to record in a directory at a time, so that each finds the files of the others.

    Ranks that a person starts with one line of the shell begin at once, and do not know yet which they are.
    """
    descriptor = _locked(os.path.dirname(path) or ".")
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(folder: str) -> int | None:
    """Return a descriptor that holds the lock of a directory; None where that cannot be had, or takes too long."""
    try:
        import fcntl  # Windows has none

        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):
        return None
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(_POLL)
                continue
        except OSError:  # this file system has no locks
            pass
        os.close(descriptor)
        return None
