"""Finding repeated blocks: numbered modules, one after the other, of the same structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph_model import BackwardGraph

__all__ = ["Block", "BlockRun", "block_runs"]

_LONGEST_PERIOD = 8


@dataclass(slots=True)
class Block:
    """A numbered module.

    Attributes
    ----------
    parent : str
        ``'encoder.layers'`` of ``'encoder.layers.3'``.
    members : list
        Its nodes, in the engine's order.
    """

    parent: str
    number: int
    members: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Blocks with consecutive numbers that repeat one structure, or one block alone.

    Attributes
    ----------
    period : int
        How many blocks make the structure that is repeated: 2 for Linear, ReLU, Linear, ReLU.
    """

    parent: str
    blocks: tuple[Block, ...]
    period: int = 1

    @property
    def name(self) -> str:
        """``'layers.[0-11] ×12'``, or ``'layers.3'``."""
        prefix = f"{self.parent}." if self.parent else ""
        first, last = self.blocks[0].number, self.blocks[-1].number
        if first == last:
            return f"{prefix}{first}"
        return f"{prefix}[{first}-{last}] ×{len(self.blocks) // self.period}"


def block_runs(graph: BackwardGraph) -> list[BlockRun]:
    """Return the numbered modules of a graph, repeated ones together.

    Returns
    -------
    list of BlockRun
        The outermost numbers of each module path.
    """
    nodes, succ = dict(graph.nodes(data=True)), dict(graph.adjacency())
    kinds: dict[Any, int] = {}
    known: dict[int, int] = {}
    for data in nodes.values():
        outputs = data["outputs"]
        if id(outputs) not in known:  # most are shared, and to compare them takes long
            known[id(outputs)] = kinds.setdefault(outputs, len(kinds))
    rows: dict[str, dict[int, Block]] = defaultdict(dict)
    homes: dict[str, Block | None] = {}
    for key, data in nodes.items():
        path = data["module"]
        if path not in homes:
            homes[path] = _home(rows, path)
        block = homes[path]
        if block is not None:
            block.members.append(key)
    runs: list[BlockRun] = []
    for parent, found in rows.items():
        blocks = [found[number] for number in sorted(found)]
        runs += _runs(parent, blocks, [_structure(nodes, succ, known, block) for block in blocks])
    return runs


def _home(rows: dict[str, dict[int, Block]], path: str) -> Block | None:
    parts = path.split(".")
    for place, part in enumerate(parts):
        if part.isdigit():
            parent = ".".join(parts[:place])
            return rows[parent].setdefault(int(part), Block(parent, int(part)))
    return None


def _structure(
    nodes: Mapping[Any, Any], succ: Mapping[Any, Any], kinds: Mapping[int, int], block: Block
) -> tuple[Any, ...]:
    """Return what two blocks must have in common: operators, shapes, and how they are connected inside."""
    place = {key: i for i, key in enumerate(block.members)}
    start = len(f"{block.parent}.{block.number}" if block.parent else str(block.number))
    shape = []
    for key in block.members:
        data = nodes[key]
        edges = [
            (place[child], number, edge["input_nr"])
            for child, parallel in succ[key].items()
            if child in place
            for number, edge in parallel.items()
        ]
        operator = data["operator"] or tuple(data["operators"].items())
        shape.append((operator, data["module"][start:], data["parameter"][start:], kinds[id(data["outputs"])], *edges))
    return tuple(shape)


def _runs(parent: str, blocks: list[Block], structures: list[tuple[Any, ...]]) -> list[BlockRun]:
    # Structures are long; numbers stand for them.
    numbers: dict[tuple[Any, ...], int] = {}
    kinds = [numbers.setdefault(structure, len(numbers)) for structure in structures]
    runs, start = [], 0
    while start < len(blocks):
        period, length = _longest_repeat(kinds, blocks, start)
        runs.append(BlockRun(parent, tuple(blocks[start : start + length]), period))
        start += length
    return runs


def _longest_repeat(kinds: list[int], blocks: list[Block], start: int) -> tuple[int, int]:
    """Return the period of the longest repetition that begins at `start`, and how many blocks it covers."""
    best = (1, 1)
    for period in range(1, _LONGEST_PERIOD + 1):
        end = start + 1
        while end < len(kinds) and blocks[end].number == blocks[end - 1].number + 1:
            if end >= start + period and kinds[end] != kinds[end - period]:
                break
            end += 1
        length = (end - start) // period * period
        if length >= 2 * period and length > best[1]:
            best = (period, length)
    return best
