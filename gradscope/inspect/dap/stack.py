"""The stack that an editor shows: the current node, those that its gradient came through, and the program's lines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..debugging.session.node_sequence import candidates_of
from ..records.records import Location, NodeRecord
from ..wire.client import RemoteDebugger

__all__ = ["Frame", "node_records", "same_file", "stack_of"]

_DEEPEST = 100
_FARTHEST = 10_000
_CALLER = re.compile(r'^ *File "(?P<path>.*)", line (?P<line>\d+), in (?P<name>.*)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the stack.

    Attributes
    ----------
    path : str
        Empty where the line is not known.
    node : int
        The node's place in its backward; -1 for a line of the program.
    innermost : bool
        Whether it is the function of the program that is paused.
    """

    name: str
    path: str
    line: int
    node: int = -1
    innermost: bool = False


def stack_of(debugger: RemoteDebugger) -> list[Frame]:
    """Return the frames of a program that is paused, the current node first."""
    nodes = _to_the_loss(debugger)
    frames = [_of_node(node, _line_of(nodes[place:])) for place, node in enumerate(nodes)]
    callers = [found.groupdict() for found in _CALLER.finditer(debugger.where())][::-1]
    for place, caller in enumerate(callers):
        path, line = os.path.abspath(caller["path"]), int(caller["line"])
        frames.append(Frame(caller["name"], path, line, innermost=not place))
    return frames


def _to_the_loss(debugger: RemoteDebugger) -> list[NodeRecord]:
    """Return the node at hand, and before each the one that sent it the last of its gradient, up to the loss.

    In a long backward the way may end before the loss: only so many nodes are looked at.
    """
    current, nodes = debugger.current, debugger.nodes
    if current < 0:
        return []
    found = [debugger.node]
    for index in range(current - 1, max(-1, current - 1 - _FARTHEST), -1):
        if any(edge.target_key == found[-1].key for edge in nodes[index].edges):
            found.append(nodes[index])
            if len(found) == _DEEPEST:
                break
    return found


def node_records(debugger: RemoteDebugger) -> list[NodeRecord]:
    """Return all nodes of the backward that is shown, as they were when somebody first read them."""
    return list(candidates_of(debugger.nodes))  # type: ignore[arg-type] # of a remote program they are records


def _line_of(nodes: list[NodeRecord]) -> Location | None:
    """Return the line of the first of nodes; of a leaf, which no line has made, the line that uses it.

    An editor passes over frames without a line: it would show the variables of another node.
    """
    return next((node.location for node in nodes if node.location is not None), None)


def _of_node(node: NodeRecord, line: Location | None) -> Frame:
    title = f"{node.index} {node.name}" + (
        f"  {node.parameter or node.module}" if node.parameter or node.module else ""
    )
    if line is None:
        return Frame(title, "", 0, node.index)
    return Frame(title, os.path.abspath(line.filename), line.lineno, node.index)


def same_file(location: Location | None, path: str) -> bool:
    """Whether a location is in a file."""
    return location is not None and os.path.abspath(location.filename) == os.path.abspath(path)
