"""What no gradient reaches: the modules of parameters that are cut off, for the graph and the diagram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import BackwardFinding
    from gradscope_tui.widgets.graph_rows import Outline

__all__ = ["CutFollowed", "CutRow", "by_joint", "cut_rows"]

_MOST = 8
"""Rows of the modules of one branch."""


class CutFollowed(Message):
    """The line is to be shown that cuts a branch off."""

    def __init__(self, finding: BackwardFinding) -> None:
        super().__init__()
        self.finding = finding


@dataclass(frozen=True, slots=True)
class CutRow:
    """A module whose parameters get no gradient.

    Parameters
    ----------
    finding : BackwardFinding
        What is known of the branch.
    module : str
        Its path; empty where parameters belong to none, and where a row counts those that are not shown.
    name : str
        How it is called below the rows before it.
    names : tuple of str
        Its own parameters, as it calls them.
    first : bool
        Whether the branch begins here.
    """

    finding: BackwardFinding
    module: str
    name: str
    names: tuple[str, ...] = ()
    first: bool = False


def cut_rows(findings: Iterable[BackwardFinding]) -> tuple[CutRow, ...]:
    """Return the rows of all branches that findings tell to be cut off, a module each.

    Examples
    --------
    >>> from gradscope.inspect.debugging.session.session_records import BackwardFinding
    >>> lost = BackwardFinding("unreached", "warning", "", parameters=("text.0.weight", "text.0.bias", "text.2.weight"))
    >>> [(row.module, row.name, row.names) for row in cut_rows([lost])]
    [('text', 'text', ()), ('text.0', '0', ('weight', 'bias')), ('text.2', '2', ('weight',))]
    """
    return tuple(row for finding in findings if finding.kind == "unreached" for row in _branch(finding))


def _branch(finding: BackwardFinding) -> list[CutRow]:
    """Return the module that is around all parameters, where there is one, and those that have some."""
    owned: dict[str, list[str]] = {}
    for path in finding.parameters:
        module, _, name = path.rpartition(".")
        owned.setdefault(module, []).append(name)
    columns = zip(*(module.split(".") for module in owned))
    around = ".".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))
    rows = [
        CutRow(finding, module, module.removeprefix(f"{around}."), tuple(names))
        for module, names in owned.items()
        if module != around
    ]
    if len(rows) > _MOST:
        rows[_MOST - 1 :] = [CutRow(finding, "", f"… and {len(rows) - _MOST + 1} more modules")]
    return [CutRow(finding, around, around, tuple(owned.get(around, ())), True), *rows]


def by_joint(rows: Sequence[CutRow], outline: Outline) -> list[tuple[int, list[CutRow]]]:
    """Return the rows of branches, with the node that joins these to the others; -1 where it is not known.

    A branch that no line is known to cut has none, for the program may not use it; nor has any where several nodes join
    branches.
    """
    joint = next(iter(outline.joins)) if len(outline.joins) == 1 else -1
    cut = [row for row in rows if row.finding.location is not None]
    unused = [row for row in rows if row.finding.location is None]
    return [(joint, cut), (-1, unused)]
