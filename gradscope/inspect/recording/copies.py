"""Copies of gradients, taken while a backward runs: of each gradient one, however many nodes see it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..adapters import Adapter
from .digest import FIRST, FLOATS
from .pages import Snapshot

__all__ = ["Buffers", "Copier", "Flow", "Group", "Known"]

_LARGE = 4096
"""Elements from which it costs less to see that a gradient is the one that was sent than to copy it again."""

_WORTH = 1 << 15  # bytes from which memory is used again
_SPARE = 32 << 20  # bytes that are held for it

Known = tuple[int, int, tuple[tuple[int | None, int], ...], bool]
"""Of a node: its row in the table `nodes`, its place, its edges, and whether its values are kept."""

Group = tuple[Sequence[Snapshot | None] | None, int]
"""Copies, and how many bytes they take."""


class _Sent:
    """A large gradient that a node has been given, or has sent to another."""

    __slots__ = ("address", "checksum", "host", "snapshot")

    def __init__(self, host: Any, address: int, checksum: int, snapshot: Snapshot) -> None:
        self.host = host  # kept, so that its memory becomes nobody else's
        self.address = address
        self.checksum = checksum
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
        """Return a copy of an array, whose elements lie as they do there."""
        if host.nbytes < _WORTH:
            return numpy.array(host)
        axes = None if host.flags.c_contiguous else _axes(host)
        laid = host if axes is None else host.transpose(axes)
        if not laid.flags.c_contiguous:
            return numpy.array(host)
        with self._lock:
            spare = self._spare.get(host.nbytes)
            buffer = spare.pop() if spare else None
            if buffer is not None:
                self._bytes -= host.nbytes
        if buffer is None:
            buffer = numpy.empty(host.nbytes, numpy.uint8)
        array = buffer.view(host.dtype).reshape(laid.shape)
        numpy.copyto(array, laid)
        return array if axes is None else array.transpose(numpy.argsort(axes))

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
        self._to_host = adapter.to_host
        self._intern_spec = intern_spec
        self._next_value = next_value
        self._specs: dict[Any, int] = {}

    def arrived(self, flow: Flow, known: Known, grads: Sequence[Any]) -> tuple[Group, list[_Sent]]:
        """Return copies of what a node is given, and the large ones among them for :meth:`produced`."""
        row, place, _, wanted = known
        taken: list[Snapshot | None] = []
        large: list[_Sent] = []
        nbytes = 0
        for nr, grad in enumerate(grads):
            if grad is None:
                taken.append(None)
                continue
            host = self._to_host(grad)
            sent = flow.pop((place, nr), None) if flow else None
            if sent is not None and (sent.snapshot.value >= 0 or not wanted) and _is(host, sent):
                large.append(sent)
                taken.append(sent.snapshot)
                continue
            snapshot = self._copy(grad, host, wanted, (row, nr, host.shape, host.dtype))
            nbytes += host.nbytes
            taken.append(snapshot)
            if host.size >= _LARGE and (sent := _sent(host, snapshot)) is not None:
                snapshot.shared = True
                large.append(sent)
        return (taken, nbytes), large

    def produced(self, flow: Flow, known: Known, grads: Sequence[Any], large: Sequence[_Sent]) -> Group:
        """Return copies of what a node has produced; `large` is what it was given."""
        row, _, edges, wanted = known
        taken: list[Snapshot | None] = []
        nbytes = 0
        for nr, grad in enumerate(grads):
            if grad is None:
                taken.append(None)
                continue
            host = self._to_host(grad)
            key = row, ~nr, host.shape, host.dtype
            if host.size < _LARGE:
                taken.append(self._copy(grad, host, wanted, key))
                nbytes += host.nbytes
                continue
            sent = self._passed_on(grad, host, wanted, key, large) if large else None
            if sent is None:
                snapshot = self._copy(grad, host, wanted, key)
                nbytes += host.nbytes
                sent = _sent(host, snapshot)
            else:
                snapshot = sent.snapshot
            taken.append(snapshot)
            target, input_nr = edges[nr] if nr < len(edges) else (None, 0)
            if target is not None:
                receiver = target, input_nr
                alone = receiver not in flow and sent is not None
                flow[receiver] = sent if alone else None
                snapshot.shared = snapshot.shared or alone
        return taken, nbytes

    def _passed_on(self, grad: Any, host: Any, wanted: bool, key: Any, large: Sequence[_Sent]) -> _Sent | None:
        """Return a gradient that is one the node was given, whole, perhaps as another view; None if it is new."""
        laid = _laid_out(host)
        if laid is None:
            return None
        address = laid.__array_interface__["data"][0]
        for sent in large:
            given = sent.host
            if address != sent.address or host.size != given.size or host.dtype != given.dtype:
                continue
            if _checksum(laid) != sent.checksum:
                return None
            if host.shape == given.shape and host.strides == given.strides:
                return sent if sent.snapshot.value >= 0 or not wanted else None
            if wanted or host.dtype not in FLOATS:
                return None
            source = sent.snapshot.source or sent.snapshot
            snapshot = Snapshot(None, self._spec(grad, host, key), source=source, first=host.flat[:FIRST])
            return _Sent(host, address, sent.checksum, snapshot)
        return None

    def _copy(self, grad: Any, host: Any, wanted: bool, key: Any) -> Snapshot:
        spec = self._specs.get(key)
        if spec is None:
            spec = self._spec(grad, host, key)
        return Snapshot(self._buffers.copy(host), spec, self._next_value() if wanted else -1)

    def _spec(self, grad: Any, host: Any, key: Any) -> int:
        # To ask a tensor itself is slow where a mode watches what is done to tensors.
        spec = self._specs.get(key)
        if spec is None:
            facts = self._adapter.spec(grad)
            told = json.dumps(facts.shape), facts.dtype, facts.device, host.itemsize
            spec = self._specs[key] = self._intern_spec(told, told)
        return spec


def _is(host: Any, sent: _Sent) -> bool:
    """Whether a gradient is what was sent: the same memory, and no hook has written in it."""
    other = sent.host
    if host.shape != other.shape or host.dtype != other.dtype or host.strides != other.strides:
        return False
    laid = _laid_out(host)
    return laid.__array_interface__["data"][0] == sent.address and _checksum(laid) == sent.checksum


def _sent(host: Any, snapshot: Snapshot) -> _Sent | None:
    laid = _laid_out(host)
    if laid is None:
        return None
    return _Sent(host, laid.__array_interface__["data"][0], _checksum(laid), snapshot)


def _axes(host: Any) -> list[int]:
    """Return the axes in the order of their strides, the widest first."""
    strides = host.strides
    return sorted(range(host.ndim), key=lambda axis: (-strides[axis], host.shape[axis] > 1))


def _laid_out(host: Any) -> Any:
    """Return a view of an array in the order of its memory; None where that has gaps, or elements that overlap."""
    if host.flags.c_contiguous:
        return host
    laid = host.transpose(_axes(host))
    return laid if laid.flags.c_contiguous else None


def _checksum(laid: Any) -> int:
    """Return a sum of the bits of a contiguous array: any one element that changes, changes it."""
    words = laid.reshape(-1).view(numpy.uint8)
    whole = words.size - words.size % 8
    return int(numpy.add.reduce(words[:whole].view(numpy.uint64)))
