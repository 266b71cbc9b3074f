"""A graph as text: its numbers, and the tree of its modules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ...debugging.prompt.plain_text import inside_lines
from ...output.terminal_text import one_line
from ..graph_model import BackwardGraph
from ..graph_statistics import format_bytes, graph_statistics
from .graph_format_registry import graph_format
from .plain import amounts

__all__ = ["to_text"]

_MOST_LINES = 60


@dataclass(slots=True)
class _Branch:
    """A module in the tree, with what is in it and below it."""

    parts: dict[str, _Branch] = field(default_factory=dict)
    nodes: int = 0
    parameters: int = 0
    saved_bytes: int = 0
    operators: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@graph_format("text", ".txt", place=7)
def to_text(graph: BackwardGraph) -> str:
    """Return a graph in numbers, and a tree of its modules with what each holds.

    Parameters
    ----------
    graph : BackwardGraph
        Of any size.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> net = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.ReLU())
    >>> with gi.track():
    ...     loss = net(gs.ones(1, 3)).sum()
    >>> print(to_text(gi.graph(loss, params=net)))
    5 nodes, 4 edges, 4 deep, 2 wide
    saved       20 B in 2 tensors
    operators   AccumulateGrad 2, Sum 1, Relu 1, Addmm 1
    modules     0 3, 1 1
    parameters  2 reached
    <BLANKLINE>
    (no module)  1 node   0 parameters  0 B saved   Sum
    ├─ 0         3 nodes  2 parameters  12 B saved  Addmm
    └─ 1         1 node   0 parameters  8 B saved   Relu
    """
    rows = _rows(_tree(graph))
    shown = rows[:_MOST_LINES]
    widths = [max(len(row[column]) for row in shown) for column in range(4)] if shown else []
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[4]]).rstrip() for row in shown]
    if len(rows) > len(shown):
        lines.append(f"... and {len(rows) - len(shown)} more modules")
    return "\n".join([str(graph_statistics(graph)), "", *map(one_line, lines), *map(one_line, _inside(graph))])


def _inside(graph: BackwardGraph) -> list[str]:
    """Return what is inside of the nodes that torch.compile has compiled."""
    lines: list[str] = []
    for _, data in graph.nodes(data=True):
        inside = data.get("inside", ())
        if inside:
            lines += ["", f"inside of {data['name']} (node {data['index']}), in the order of the backward"]
            lines += [f"  {line}" for line in inside_lines(inside[:_MOST_LINES])]
            lines += [f"  ... and {len(inside) - _MOST_LINES} more"] if len(inside) > _MOST_LINES else []
    return lines


def _tree(graph: BackwardGraph) -> _Branch:
    root = _Branch()
    branches: dict[str, _Branch] = {"": root}
    for _, data in graph.nodes(data=True):
        path = data["module"]
        branch = branches.get(path)
        if branch is None:
            branch = root
            for part in path.split("."):
                branch = branch.parts.setdefault(part, _Branch())
            branches[path] = branch
        nodes, parameters, saved_bytes = amounts(data)
        branch.nodes += nodes
        branch.parameters += parameters
        branch.saved_bytes += saved_bytes
        for operator, count in (data["operators"] if "members" in data else {data["operator"]: 1}).items():
            if operator != "AccumulateGrad":
                branch.operators[operator] += count
    return root


def _rows(root: _Branch) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [_row("(no module)", root)] if root.nodes else []
    stack = _below(root, "")
    while stack:
        indent, last, name, branch = stack.pop()
        rows.append(_row(f"{indent}{'└─ ' if last else '├─ '}{name}", _total(branch), branch))
        stack += _below(branch, indent + ("   " if last else "│  "))
    return rows


def _below(branch: _Branch, indent: str) -> list[tuple[str, bool, str, _Branch]]:
    parts = _ordered(branch)
    return [(indent, i == len(parts) - 1, *part) for i, part in reversed(list(enumerate(parts)))]


def _ordered(branch: _Branch) -> list[tuple[str, _Branch]]:
    """Return the parts of a module in forward order, as well as their names tell."""
    parts = list(branch.parts.items())
    if all(name.isdigit() for name, _ in parts):
        return sorted(parts, key=lambda part: int(part[0]))
    return parts[::-1]


def _total(branch: _Branch) -> _Branch:
    total = _Branch()
    stack = [branch]
    while stack:
        part = stack.pop()
        total.nodes += part.nodes
        total.parameters += part.parameters
        total.saved_bytes += part.saved_bytes
        stack.extend(part.parts.values())
    return total


def _row(name: str, total: _Branch, own: _Branch | None = None) -> tuple[str, ...]:
    operators = sorted((own or total).operators.items(), key=lambda item: -item[1])[:5]
    return (
        name,
        f"{total.nodes:,} node" + "s" * (total.nodes != 1),
        f"{total.parameters:,} parameter" + "s" * (total.parameters != 1),
        f"{format_bytes(total.saved_bytes)} saved",
        ", ".join(operator if count == 1 else f"{operator} ×{count}" for operator, count in operators),
    )
