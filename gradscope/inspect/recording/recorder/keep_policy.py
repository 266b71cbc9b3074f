"""The policy by which a recorder keeps of each tensor nothing, numbers, or values too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...debugging.stops.breakpoints import BreakpointError, parse_spec
from .size_and_age import parse_age, parse_bytes

__all__ = ["Policy"]

_USAGE = (
    "keep= is 'none', 'summaries', 'all', or nodes whose values to keep besides all summaries, separated by commas: "
    "'param:*', 'mod:layers.3.*', 'op:Addmm', 'line:train.py:31'."
)


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
