"""The policy by which a recorder keeps of each tensor nothing, numbers, or values too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...debugging.stops.breakpoints import BreakpointError, parse_spec

__all__ = ["Policy", "parse_age", "parse_bytes"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_USAGE = (
    "keep= is 'none', 'summaries', 'all', or nodes whose values to keep besides all summaries, separated by commas: "
    "'param:*', 'mod:layers.3.*', 'op:Addmm', 'line:train.py:31'."
)


def parse_bytes(size: int | str) -> int:
    """Return a size in bytes.

    Raises
    ------
    ValueError
        If it is not a size.

    Examples
    --------
    >>> parse_bytes("200MB"), parse_bytes("1.5GiB"), parse_bytes(4096)
    (200000000, 1610612736, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?i?)b?\s*", str(size).lower())
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"{size!r} is not a size in bytes; write 4096, '200MB' or '1.5GiB'")
    return int(float(found[1]) * _UNITS[found[2]])


def parse_age(age: float | str) -> float:
    """Return an age in seconds.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> parse_age("7d"), parse_age("1.5h"), parse_age("90 s"), parse_age(60)
    (604800.0, 5400.0, 90.0, 60.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", str(age).lower())
    if found is None or not float(found[1]):
        raise ValueError(f"{age!r} is no age; write 90s, 30m, '12h' or '7d'")
    return float(found[1]) * _SECONDS[found[2]]


@dataclass(frozen=True)
class Policy:
    """How much a recorder keeps of each tensor.

    Attributes
    ----------
    keep : str
        As given.
    summaries : bool
        Statistics of every gradient.
    everything : bool
        The values of every gradient.
    last : int or None
        Keep the values of so many iterations only, the newest.
    budget : int or None
        Bytes that the file may take, 1 MiB at least; beyond, the oldest values go, then old iterations.
    rows : int or None
        Nodes that the file may have; beyond, old iterations go.
    age : float or None
        Seconds after which iterations go.
    """

    keep: str
    summaries: bool
    everything: bool
    matchers: tuple[Callable[[Any], bool], ...] = ()
    last: int | None = None
    budget: int | None = None
    rows: int | None = None
    age: float | None = None

    @property
    def values(self) -> bool:
        """Whether any value is kept."""
        return self.everything or bool(self.matchers)

    def wants(self, candidate: Any) -> bool:
        """Whether the values of a node are kept; `candidate` has the names of a node record."""
        return self.everything or any(matches(candidate) for matches in self.matchers)

    @classmethod
    def parse(
        cls,
        keep: str = "summaries",
        *,
        last: int | None = None,
        budget: int | str | None = None,
        rows: int | None = None,
        age: float | str | None = None,
    ) -> Policy:
        """Return the policy that a user's words stand for.

        Parameters
        ----------
        keep : str
            ``'none'`` (structure and times), ``'summaries'``, ``'all'``, or nodes as a breakpoint names them.

        Raises
        ------
        ValueError
            If they cannot be understood.

        Examples
        --------
        >>> policy = Policy.parse("param:*, mod:layers.*", last=5, budget="10MB")
        >>> policy.summaries, policy.everything, len(policy.matchers), policy.budget
        (True, False, 2, 10000000)
        """
        if not isinstance(keep, str):
            raise ValueError(f"keep= is a string, got {type(keep).__name__}\n{_USAGE}")
        if last is not None and last < 1:
            raise ValueError(f"last= is a number of iterations, at least 1, got {last}")
        if rows is not None and rows < 1:
            raise ValueError(f"rows= is a number of nodes, at least 1, got {rows}")
        limit = None if budget is None else parse_bytes(budget)
        seconds = None if age is None else parse_age(age)
        matchers: tuple[Callable[[Any], bool], ...] = ()
        word = keep.strip().lower()
        if word not in ("none", "summaries", "all"):
            try:
                matchers = tuple(parse_spec(part.strip()) for part in keep.split(","))
            except BreakpointError as error:
                raise ValueError(f"{str(error).splitlines()[0]}\n{_USAGE}") from None
            if re.fullmatch(r"\w+", word) and word == keep.strip() and "," not in keep:
                # A lower-case word is a mistyped policy sooner than an operator.
                raise ValueError(f"{keep!r} is nothing to keep\n{_USAGE}")
        return cls(keep, word != "none", word == "all", matchers, last, limit, rows, seconds)
