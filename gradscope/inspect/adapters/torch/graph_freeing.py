"""Freeing long graphs: of nodes that Python has looked at, PyTorch frees one from within another.

Nodes that Python has no object for are freed in a loop. Where it has one, a node's destructor lets go of the next node,
whose destructor lets go of the next: 40,000 in a row overflow a stack of 8 MiB, and the program dies. So a node here
and there hands those behind it to a thread, which lets go of them when it is gone: that cuts the row in short pieces.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import os
from collections.abc import Sequence
from functools import partial
from queue import SimpleQueue
from random import Random
from typing import Any

__all__ = ["cut_row", "cut_rows"]

_LATE = "gradscope.inspect.late"
# The gap is random, so that no pattern in a graph avoids the cuts: one piece in a million has more than 15,000 nodes.
_SHARE = 1 / 1024
_gap = partial(Random(0).expovariate, _SHARE)
_left = int(_gap())  # nodes until the next cut


def cut_rows(nodes: Sequence[Any]) -> None:
    """See to it that rows of nodes through these can be freed; to be asked of every node that Python gets hold of."""
    global _left
    _left -= len(nodes)
    if _left < 0 and nodes:
        _cut(nodes)


def cut_row(node: Any) -> None:
    """See to it for one node."""
    global _left
    _left -= 1
    if _left < 0:
        _cut((node,))


def _cut(nodes: Sequence[Any]) -> None:
    global _left
    while _left < 0:
        node = nodes[_left % len(nodes)]  # other threads count too
        _left += int(_gap()) + 1
        behind = [child for child, _ in node.next_functions if child is not None]
        if behind and _LATE not in node.metadata:
            node.metadata[_LATE] = _NodeHolder(behind)


class _FreeingThread:
    """The thread that lets go of nodes, started when there are some."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Any] = SimpleQueue()
        self._ended = _thread.allocate_lock()
        self._started = False
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._end)

    def take(self, nodes: list[Any]) -> None:
        """Let go of nodes soon; called from within destructors, so it neither waits nor raises."""
        self.waiting.put(nodes)
        if not self._started:
            self._started = True
            self._ended.acquire()
            # The thread is not one of `threading`'s: the program's list of threads is its own, and it is not waited for
            # at the end.
            _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while self.waiting.get() is not None:
            pass
        self._ended.release()

    def _forked(self) -> None:
        self._ended = _thread.allocate_lock()
        self._started = False

    def _end(self) -> None:
        if self._started:
            self.waiting.put(None)
            self._ended.acquire(timeout=5.0)
        # Graphs that remain when the interpreter ends are not freed: that would be one deep recursion again.
        self._started = True
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.waiting))


_freeing_thread = _FreeingThread()


class _NodeHolder:
    """Keeps nodes until the one whose metadata it is in has gone, and a little longer."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: list[Any]) -> None:
        self._nodes = nodes

    def __del__(self, take: Any = _freeing_thread.take) -> None:
        take(self._nodes)
