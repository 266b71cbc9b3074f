"""Processes that train together, which are not there: programs that ask first run alone.

Examples
--------
>>> import gradscope as gs
>>> gs.distributed.is_available(), gs.distributed.is_initialized(), gs.distributed.get_world_size()
(False, False, 1)
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    *("barrier", "destroy_process_group", "get_rank", "get_world_size", "init_process_group", "is_available"),
    "is_initialized",
]


def is_available() -> bool:
    """Return whether processes can train together: False."""
    return False


def is_initialized() -> bool:
    """Return whether a group of processes has been made: False."""
    return False


def get_rank(group: Any = None) -> int:
    """Return the number of this process, which is alone: 0."""
    return 0


def get_world_size(group: Any = None) -> int:
    """Return how many processes train together: 1."""
    return 1


def barrier(*args: Any, **kwargs: Any) -> None:
    """Wait for the other processes, of which there are none."""


def destroy_process_group(group: Any = None) -> None:
    """Take down the group of processes: there is none."""


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise RuntimeError: processes cannot train together."""
    raise RuntimeError(
        "gradscope has no distributed package: a program runs in one process\n"
        "Leave init_process_group() away, e.g. by starting the script without torchrun."
    )
