"""The current node of one rank on all others: the norm there, where they stand, and whose graph differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..debugging.prompt.plain_text import number, title_of
from ..records.node_identity import Identity, node_identities
from ..records.records import NodeRecord
from ..wire.client import RemoteDebugger
from .rank_group import RankGroup

__all__ = ["RankComparison", "RankRow", "compare_ranks", "comparison_lines", "matched_identities"]


class RankRow(NamedTuple):
    """A rank beside the others.

    Attributes
    ----------
    norm : float or None
        The 2-norm of what the compared node was given there; None where nobody knows it.
    text : str
        Where the rank is: its node, the collective that it waits in, how it has died.
    stack : str
        Of a rank that runs, the functions that its main thread is in, as a traceback has them.
    """

    rank: int
    norm: float | None
    text: str
    stack: str = ""


class RankComparison(NamedTuple):
    """The node of the chosen rank on all ranks.

    Attributes
    ----------
    title : str
        The node; empty where the chosen rank is at none.
    chosen : int
        The chosen rank.
    rows : tuple of RankRow
        By rank.
    differences : tuple of str
        In what graphs differ from the chosen rank's.
    """

    title: str
    chosen: int
    rows: tuple[RankRow, ...]
    differences: tuple[str, ...]


def compare_ranks(group: RankGroup) -> RankComparison:
    """Return the node of the chosen rank, a row for each rank, and how graphs differ from the chosen rank's.

    Nodes are matched as :func:`matched_identities` does, so the ranks need not have the same numbers of nodes.
    """
    chosen = group.chosen
    if not _at_a_node(chosen):
        rows = [RankRow(rank, None, group.describe(rank), group.stack(rank)) for rank in range(len(group.members))]
        return RankComparison("", group.rank, tuple(rows), ())
    nodes = _nodes(chosen)
    rows, differences = [], []
    for rank, member in enumerate(group.members):
        norm, place = None, group.describe(rank)
        if _comparable(member, chosen):
            ours, theirs = matched_identities(nodes, nodes if member is chosen else _nodes(member))
            norm, remark = _at_node(member, theirs, ours[chosen.current])
            place += remark
            differences += [f"rank {rank}: {text}" for text in _difference(ours, theirs, group.rank)]
        elif _at_a_node(member):
            place += ", another than here"
        rows.append(RankRow(rank, norm, place, group.stack(rank)))
    title = f"{title_of(chosen.nodes[chosen.current], len(nodes))}, on {len(group.members)} ranks"
    return RankComparison(title, group.rank, tuple(rows), tuple(differences))


def matched_identities(
    ours: Sequence[NodeRecord], theirs: Sequence[NodeRecord]
) -> tuple[list[Identity], list[Identity]]:
    """Return what nodes of two ranks are matched by: module, parameter, operator, line and occurrence.

    A front that attaches in the middle of an iteration sees the backward of a forward that was not followed. Where the
    nodes of one rank have no lines for that, nodes are matched without lines and modules.

    Examples
    --------
    >>> from gradscope.inspect.records.records import EdgeRecord, Location
    >>> node, line = (0, 1, "ExpBackward0", "Exp", 5), Location("train.py", 3, "main", "y = x.exp()")
    >>> ours = [NodeRecord(*node, "body", "", line, (EdgeRecord(2, 0),))]
    >>> theirs = [NodeRecord(*node, "", "", None, (EdgeRecord(2, 0),))]
    >>> mine, others = matched_identities(ours, theirs)
    >>> mine == others, str(mine[0])
    (True, 'ExpBackward0')
    """
    if ours is theirs:
        found = _identities(ours, followed=True)
        return found, found
    followed = _count_without_lines(ours) == _count_without_lines(theirs)
    return _identities(ours, followed=followed), _identities(theirs, followed=followed)


def comparison_lines(group: RankGroup) -> Iterator[str]:
    """Yield the node of the chosen rank, a line for each rank, and how graphs differ from the chosen rank's."""
    found = compare_ranks(group)
    yield found.title or "the rank that is looked at is at no node; `rank N` chooses another"
    for row in found.rows:
        norm = f"norm {'-' if row.norm is None else number(row.norm):<10} " if found.title else ""
        yield f"{'>' if row.rank == found.chosen else ' '} {norm}{row.text}"
    yield from found.differences


def _at_a_node(member: RemoteDebugger) -> bool:
    return member.state.paused and member.current >= 0


def _comparable(member: RemoteDebugger, chosen: RemoteDebugger) -> bool:
    return member is chosen or (_at_a_node(member) and member.task_index == chosen.task_index)


def _nodes(member: RemoteDebugger) -> list[NodeRecord]:
    return list(member.nodes.bare())  # type: ignore[attr-defined] # they are RemoteNodes


def _identities(nodes: Sequence[NodeRecord], *, followed: bool) -> list[Identity]:
    return node_identities(
        (node.module if followed else "", node.parameter, node.name, node.location if followed else None)
        for node in nodes
    )


def _count_without_lines(nodes: Sequence[NodeRecord]) -> int:
    return sum(node.location is None and bool(node.edges) for node in nodes)


def _at_node(member: RemoteDebugger, theirs: list[Identity], sought: Identity) -> tuple[float | None, str]:
    """Return the norm of the incoming gradient of a node on a rank, and what is to be said of it."""
    if sought not in theirs:
        return None, "; it has no such node"
    record = member.inspect(theirs.index(sought))
    if record.norm is None:
        return None, "; it has not come to this node" if record.state == "pending" else "; no gradient was kept there"
    return record.norm, ""


def _difference(ours: list[Identity], theirs: list[Identity], rank: int) -> Iterator[str]:
    """Yield in what another rank's graph differs from the chosen one's."""
    for alone, others, text in (
        (theirs, frozenset(ours), "nodes of its own"),
        (ours, frozenset(theirs), f"nodes of rank {rank} that it lacks"),
    ):
        found = [identity for identity in alone if identity not in others]
        if found:
            yield f"its graph differs; {text}: {len(found)}, first {found[0]}"
