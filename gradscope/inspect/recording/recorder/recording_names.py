"""Which file a recorder writes: names that no two ranks of a job share."""

from __future__ import annotations

import os
import re
import time

from ...records.own_rank import OwnRank
from ..file.schema import RecordingError

__all__ = ["ENDING", "recording_path"]

ENDING = ".gscope"
"""What the files of a directory are called that are recordings."""

_KNOWN = ("rank", "pid", "time")


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
