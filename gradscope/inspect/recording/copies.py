"""Copies of gradients, taken while a backward runs: of each gradient one, however many nodes see it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..adapters import Adapter
from .pages import Snapshot

__all__ = ["Buffers", "Copier", "Flow", "Group", "Known"]

_LARGE = 4096
"""Elements from which it costs less to see that a gradient is the one that was sent than to copy it again."""

_WORTH = 1 << 15  # bytes from which memory is used again
_SPARE = 32 << 20  # bytes that are held for it

Known = tuple[int, int, tuple[tuple[int | None, int], ...], bool]
"""Of a node: its row in the table `nodes`, its place, its edges, and whether its values are kept."""

Group = tuple[Sequence[Snapshot | None] | None, int]


class _Sent:
    """A gradient that a node has sent to another."""

    __slots__ = ("checksum", "host", "snapshot")

    def __init__(self, host: Any, snapshot: Snapshot) -> None:
        self.host = host  # kept, so that its memory becomes nobody else's
        self.checksum = _checksum(host)
        self.snapshot = snapshot


Flow = dict[tuple[int, int], _Sent | None]
"""Large gradients of one backward on their way, by place and input of the receiver; None where several add up."""


class Buffers:
    """Memory of copies that are no longer needed, for the next ones: to touch new memory costs more than to copy."""

    def __init__(self) -> None:
        self._spare: dict[int, list[Any]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def copy(self, host: Any) -> Any:
        """Return a copy of an array."""
        if host.nbytes < _WORTH or not host.flags.c_contiguous:
            return numpy.array(host)
        with self._lock:
            spare = self._spare.get(host.nbytes)
            buffer = spare.pop() if spare else None
            if buffer is not None:
                self._bytes -= host.nbytes
        if buffer is None:
            buffer = numpy.empty(host.nbytes, numpy.uint8)
        array = buffer.view(host.dtype).reshape(host.shape)
        numpy.copyto(array, host)
        return array

    def give_back(self, array: Any) -> None:
        """Take the memory of a copy; nobody may look at it any more."""
        buffer = array.base
        if buffer is None or array.nbytes < _WORTH:
            return
        with self._lock:
            if self._bytes + array.nbytes <= _SPARE:
                self._spare.setdefault(array.nbytes, []).append(buffer)
                self._bytes += array.nbytes


class Copier:
    """Takes the copies.

    Parameters
    ----------
    adapter : Adapter
    intern_spec : callable
        Returns the row of the table `specs` for a key and the facts in it.
    next_value : callable
        Returns the number of the next row of `tensor_values`.
    buffers : Buffers
        Where copies get their memory.
    """

    def __init__(
        self,
        adapter: Adapter,
        intern_spec: Callable[[Any, tuple[Any, ...]], int],
        next_value: Callable[[], int],
        buffers: Buffers,
    ) -> None:
        self._buffers = buffers
        self._adapter = adapter
        self._intern_spec = intern_spec
        self._next_value = next_value
        self._specs: dict[Any, int] = {}

    def arrived(self, flow: Flow, known: Known, grads: Sequence[Any]) -> Group:
        """Return copies of what a node is given, and how many bytes they take."""
        row, place, _, wanted = known
        taken: list[Snapshot | None] = []
        nbytes = 0
        for nr, grad in enumerate(grads):
            if grad is None:
                taken.append(None)
                continue
            host = self._adapter.to_host(grad)
            sent = flow.pop((place, nr), None) if flow else None
            if sent is not None and (sent.snapshot.value >= 0 or not wanted) and _is(host, sent):
                snapshot = sent.snapshot
            else:
                snapshot = self._copy(grad, host, wanted, (row, nr, host.shape, host.dtype))
                nbytes += host.nbytes
            taken.append(snapshot)
        return taken, nbytes

    def produced(self, flow: Flow, known: Known, grads: Sequence[Any]) -> Group:
        """Return copies of what a node has produced, and how many bytes they take."""
        row, _, edges, wanted = known
        taken: list[Snapshot | None] = []
        nbytes = 0
        for nr, grad in enumerate(grads):
            if grad is None:
                taken.append(None)
                continue
            host = self._adapter.to_host(grad)
            snapshot = self._copy(grad, host, wanted, (row, ~nr, host.shape, host.dtype))
            nbytes += host.nbytes
            taken.append(snapshot)
            target, input_nr = edges[nr] if nr < len(edges) else (None, 0)
            if host.size >= _LARGE and target is not None:
                receiver = target, input_nr
                alone = receiver not in flow and host.flags.c_contiguous
                flow[receiver] = _Sent(host, snapshot) if alone else None
                snapshot.shared = alone
        return taken, nbytes

    def _copy(self, grad: Any, host: Any, wanted: bool, key: Any) -> Snapshot:
        # To ask a tensor itself is slow where a mode watches what is done to tensors.
        spec = self._specs.get(key)
        if spec is None:
            facts = self._adapter.spec(grad)
            told = json.dumps(facts.shape), facts.dtype, facts.device, host.itemsize
            spec = self._specs[key] = self._intern_spec(told, told)
        return Snapshot(self._buffers.copy(host), spec, self._next_value() if wanted else -1)


def _is(host: Any, sent: _Sent) -> bool:
    """Whether a gradient is what was sent: the same memory, and no hook has written in it."""
    other = sent.host
    return (
        host.shape == other.shape
        and host.dtype == other.dtype
        and host.strides == other.strides
        and host.__array_interface__["data"] == other.__array_interface__["data"]
        and _checksum(host) == sent.checksum
    )


def _checksum(host: Any) -> int:
    """Return a sum of the bits of a contiguous array: any one element that changes, changes it."""
    words = host.reshape(-1).view(numpy.uint8)
    whole = words.size - words.size % 8
    return int(numpy.add.reduce(words[:whole].view(numpy.uint64)))
