"""The stack that an editor shows: the current node, those that its gradient came through, and the program's lines."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from dataclasses import dataclass

from ..debugging.session.node_sequence import candidates_of
from ..records.records import Location, NodeRecord
from ..wire.client import RemoteDebugger

__all__ = ["Frame", "Stack", "same_file"]

_DEEPEST = 100
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


class Stack:
    """Reads the stack of a program that is paused."""

    def __init__(self) -> None:
        self._order: Hashable = None
        self._senders: dict[int, NodeRecord] = {}

    def read(self, debugger: RemoteDebugger) -> list[Frame]:
        """Return the frames, the current node first."""
        frames = [_of_node(node) for node in self._to_the_loss(debugger)]
        callers = [found.groupdict() for found in _CALLER.finditer(debugger.where())][::-1]
        for place, caller in enumerate(callers):
            path, line = os.path.abspath(caller["path"]), int(caller["line"])
            frames.append(Frame(caller["name"], path, line, innermost=not place))
        return frames

    def _to_the_loss(self, debugger: RemoteDebugger) -> list[NodeRecord]:
        """Return the node at hand, and those that its gradient came through, from the last to the loss."""
        if debugger.current < 0:
            return []
        self._read_senders(debugger)
        found = [debugger.node]
        while found[-1].key in self._senders and len(found) < _DEEPEST:
            found.append(self._senders[found[-1].key])
        return found

    def _read_senders(self, debugger: RemoteDebugger) -> None:
        """Note which node sends a gradient to which: the first one that does."""
        order = getattr(debugger.nodes, "order", None)
        if order == self._order:
            return
        self._order, self._senders = order, {}
        for node in node_records(debugger):
            for edge in node.edges:
                if edge.target_key is not None:
                    self._senders.setdefault(edge.target_key, node)


def node_records(debugger: RemoteDebugger) -> list[NodeRecord]:
    """Return all nodes of the backward that is shown, as they were when somebody first read them."""
    return list(candidates_of(debugger.nodes))  # type: ignore[arg-type] # of a remote program they are records


def _of_node(node: NodeRecord) -> Frame:
    title = f"{node.index} {node.name}" + (
        f"  {node.parameter or node.module}" if node.parameter or node.module else ""
    )
    if node.location is None:
        return Frame(title, "", 0, node.index)
    return Frame(title, os.path.abspath(node.location.filename), node.location.lineno, node.index)


def same_file(location: Location | None, path: str) -> bool:
    """Whether a location is in a file."""
    return location is not None and os.path.abspath(location.filename) == os.path.abspath(path)
