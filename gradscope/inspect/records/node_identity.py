"""The identity of a node, which it shares with the same node of another run, process or version of the program."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from .records import Location

__all__ = ["Identity", "node_identities"]


class Identity(NamedTuple):
    """The facts by which two nodes of different graphs count as the same one.

    The place is the function and the text of the line, not its number, so that an edit elsewhere in the file changes no
    node.

    Attributes
    ----------
    occurrence : int
        How many nodes of this kind came before in the engine's order.
    """

    module: str
    parameter: str
    name: str
    place: str
    occurrence: int

    @property
    def counted(self) -> str:
        """The name, with a number where it is not the first of its kind."""
        return f"{self.name} #{self.occurrence + 1}" if self.occurrence else self.name

    def __str__(self) -> str:
        owner = self.parameter or self.module
        where = f"  [{self.place}]" if self.place else ""
        return f"{self.counted}{' of ' + owner if owner else ''}{where}"


def node_identities(nodes: Iterable[tuple[str, str, str, Location | None]]) -> list[Identity]:
    """Return the stable identity of each node of a graph.

    Parameters
    ----------
    nodes : iterable of tuple
        Module, parameter, name and location of each, in the engine's order.

    Examples
    --------
    >>> line = Location("train.py", 3, "main", "y = x.exp().exp()")
    >>> for identity in node_identities([("", "", "ExpBackward0", line), ("", "", "ExpBackward0", line)]):
    ...     print(identity)
    ExpBackward0  [train.py, main: y = x.exp().exp()]
    ExpBackward0 #2  [train.py, main: y = x.exp().exp()]
    """
    seen: Counter[tuple[str, str, str, str]] = Counter()
    found = []
    for module, parameter, name, location in nodes:
        kind = (module, parameter, name, _place(location))
        found.append(Identity(*kind, seen[kind]))
        seen[kind] += 1
    return found


def _place(location: Location | None) -> str:
    if location is None:
        return ""
    return f"{os.path.basename(location.filename)}, {location.function}: {location.source or location.lineno}"
