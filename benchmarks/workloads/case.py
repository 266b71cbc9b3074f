"""What a workload is, and the table of all of them.

A workload is a function that takes the module and returns a pair of functions: ``prepare()`` makes what one run needs
and is not timed; ``body(prepared)`` is timed. A body does its work `operations` times over, so that the clock and the
call cost nothing against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["CASES", "Case", "Work", "case", "nothing"]

Work = tuple[Callable[[], Any], Callable[[Any], Any]]
Build = Callable[[Any], Work]

CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """One line of a table.

    Parameters
    ----------
    key : str
        What ``--only`` matches.
    group : str
        The table that it stands in: ``macro``, ``micro``, ``promotion`` or ``library``.
    title : str
        What is measured, in words.
    target : float
        The ratio to PyTorch that is wanted at most, with the compiled kernels of the extra ``fast``.
    plain_target : float
        The same without them.
    operations : int
        How often a body repeats what is measured.
    build : callable
        Takes the module, returns ``prepare`` and ``body``.
    beside : callable, optional
        What it is compared with instead of the same work in PyTorch: other work in the same library.
    trains : bool
        Whether a body is a training step, whose peak memory is measured too.
    """

    key: str
    group: str
    title: str
    target: float
    plain_target: float
    operations: int
    build: Build
    beside: Build | None = None
    trains: bool = False


def case(
    group: str,
    title: str,
    *,
    target: float,
    plain_target: float | None = None,
    operations: int = 1,
    beside: Build | None = None,
    trains: bool = False,
) -> Callable[[Build], Build]:
    """Enter the decorated function in :data:`CASES` under its name."""

    def enter(build: Build) -> Build:
        key = build.__name__.replace("_", "-")
        plain = target if plain_target is None else plain_target
        CASES[key] = Case(key, group, title, target, plain, operations, build, beside, trains)
        return build

    return enter


def nothing() -> None:
    """Prepare nothing."""
