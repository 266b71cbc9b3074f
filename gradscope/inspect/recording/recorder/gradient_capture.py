"""Capturing gradients while a backward runs: each gradient once, however many nodes see it.

Small gradients are taken as their bytes, which are fewer than their statistics would be. Of large ones the statistics
are taken at once, while the processor still holds the elements: a copy for later would cost more than that.
"""

from __future__ import annotations

import json
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...adapters import Adapter, Converted, OnDevice
from ...records.records import TensorSpec
from ..file.node_pages import RAW, DeviceSnapshot, GradientFormat, GradientSnapshot
from .gradient_statistics import FIRST, FLOATS, SMALL, measure
from .plan_cache import NodePlan

__all__ = ["ROW_LENGTH", "Flow", "GradientCapture", "RowBuffer"]

_ARRAY = numpy.ndarray

_LARGE = 4096
"""Elements from which it costs less to see that a gradient is the one that was sent than to measure it again."""

_SMALL_BYTES = 8 * RAW
"""Bytes up to which a gradient is taken as it is, and looked at later."""

ROW_LENGTH, _GRADIENT_LENGTH = 5, 3
"""Entries of a buffer for a node, and for a gradient."""

_NOTHING = (None, None, None)


class RowBuffer:
    """The rows of nodes of one backward that have run on one thread, until they are handed to the writer, many at once.

    The program's thread alone appends, a node's row after its gradients; the writer's thread may take out complete
    rows. The lists are flat: an object for each node would cost an allocation, and time of the garbage collector.

    Attributes
    ----------
    begun : int
        When the first of the nodes here began, in ns: when the node before it on this thread was recorded.
    rows : list
        Five of each node: its place in the backward, when it had run, how many gradients it was given and has made (-1
        where nobody looked), and when the program went on.
    gradients : list
        Three of each gradient: its bytes, dtype and shape, or a GradientSnapshot (or None), None and None.
    rows_done, gradients_done : int
        How many nodes and gradients here have been handed over.
    """

    __slots__ = ("begun", "gradients", "gradients_done", "rows", "rows_done", "thread")

    rows_done: int
    gradients_done: int

    def __init__(self, begun: int) -> None:
        self.thread = threading.get_ident()
        self.begun = begun
        self.clear()

    def __len__(self) -> int:
        return len(self.rows) // ROW_LENGTH

    def take_out(self) -> tuple[tuple[list[int], list[int]], list[Any], tuple[list[Any], ...]] | None:
        """Take out the rows that are complete, None if there are none: times, gradients, and the key of their template.

        The key is: places, numbers of gradients, their dtypes and shapes.
        """
        begin, end = self.rows_done, len(self)
        if begin == end:
            return None
        rows = self.rows[begin * ROW_LENGTH : end * ROW_LENGTH]
        places, ended, incoming, produced, resumed = (rows[i::ROW_LENGTH] for i in range(ROW_LENGTH))
        first = self.gradients_done
        last = first + sum(incoming) + incoming.count(-1) + sum(produced) + produced.count(-1)
        taken = self.gradients[first * _GRADIENT_LENGTH : last * _GRADIENT_LENGTH]
        gradients, dtypes, shapes = (taken[i::_GRADIENT_LENGTH] for i in range(_GRADIENT_LENGTH))
        times = [self.begun, *resumed[:-1]], ended
        self.rows_done, self.gradients_done, self.begun = end, last, resumed[-1]
        return times, gradients, (places, incoming, produced, dtypes, shapes)

    def clear(self) -> None:
        """Forget all rows, which have been handed over."""
        self.rows_done = self.gradients_done = 0
        self.rows: list[Any] = []
        self.gradients: list[Any] = []

    @property
    def empty(self) -> bool:
        """Whether all has been handed over, and no node is being put in."""
        return self.rows_done == len(self) and self.gradients_done * _GRADIENT_LENGTH == len(self.gradients)


class _SentGradient:
    """A large gradient that a node has been given, or has sent to another."""

    __slots__ = ("address", "checksum", "host", "snapshot")

    def __init__(self, host: Any, address: int, checksum: int, snapshot: GradientSnapshot) -> None:
        self.host = host  # the reference keeps its memory from being used again
        self.address = address
        self.checksum = checksum
        self.snapshot = snapshot


class _SentFromDevice:
    """A gradient on a device that a node has been given, or has sent to another; it is not kept from being freed."""

    __slots__ = ("given", "snapshot")

    def __init__(self, host: OnDevice, snapshot: GradientSnapshot) -> None:
        self.given = host._replace(tensor=weakref.ref(host.tensor))
        self.snapshot = snapshot

    def known(self, host: OnDevice) -> bool:
        """Whether a gradient is this one, perhaps in another shape."""
        tensor = self.given.tensor()
        return tensor is not None and host.is_memory_of(self.given._replace(tensor=tensor))


Flow = dict[tuple[int, int], "_SentGradient | _SentFromDevice | None"]
"""Large gradients of one backward on their way, by place and input of the receiver; None where several add up."""


class GradientCapture:
    """Captures the gradients of nodes that have run.

    Parameters
    ----------
    intern_spec : callable
        Returns the row of the table `specs` for a key and the facts in it.
    next_value : callable
        Returns the number of the next row of `tensor_values`.
    """

    def __init__(
        self, adapter: Adapter, intern_spec: Callable[[Any, tuple[Any, ...]], int], next_value: Callable[[], int]
    ) -> None:
        self._hosts, self._small, self._to_host = adapter.hosts, adapter.small, adapter.to_host
        self._intern_spec = intern_spec
        self._next_value = next_value
        self._forms: dict[tuple[Any, Any], GradientFormat] = {}
        self.nbytes = 0  # bytes of all copies so far

    def take(self, gradients: list[Any], flow: Flow, place: int, node: NodePlan, call: Any) -> tuple[int, int]:
        """Append the gradients of a node; return how many it was given and how many it has produced."""
        if not node.wanted:
            counts = self._small(call, _SMALL_BYTES, gradients)
            if counts is not None:
                return counts
        hosts, count = self._hosts(call, values=node.wanted)
        small = -1 if node.wanted else _SMALL_BYTES
        large: list[_SentGradient] = []
        on_device: list[_SentFromDevice] = []
        for nr, host in enumerate(hosts):
            if type(host) is _ARRAY and host.nbytes <= small:
                gradients += host.tobytes(), host.dtype, host.shape
            elif host is None:
                gradients += _NOTHING
            elif type(host) is OnDevice:
                sent = flow.pop((place, nr), None) if nr < count and flow else None
                seen = self._on_device(host, sent, on_device)
                if nr >= count:
                    self._send(flow, nr - count, node, seen)
                gradients += seen.snapshot, None, None
            elif nr < count:
                gradients += self._arrived(flow, (place, nr), host, node.wanted, large), None, None
            else:
                gradients += self._sent(flow, nr - count, host, node, large), None, None
        return count, len(hosts) - count

    def forms(self, dtypes: Sequence[Any], shapes: Sequence[Any]) -> list[GradientFormat | None]:
        """Return the forms of the gradients that were taken as bytes; None for others."""
        return [None if dtype is None else self._form(dtype, shape) for dtype, shape in zip(dtypes, shapes)]

    def unpack(self, forms: Sequence[GradientFormat | None], gradients: list[Any]) -> None:
        """Make Snapshots of gradients that were taken as bytes, where the page does not keep them so."""
        for at, form in enumerate(forms):
            if form is not None and not form.kept:
                array = numpy.frombuffer(gradients[at], form.dtype).reshape(form.shape)
                gradients[at] = self._snapshot(array, form.spec, wanted=False)

    def _form(self, dtype: Any, shape: tuple[int, ...]) -> GradientFormat:
        form = self._forms.get((dtype, shape))
        if form is None:
            spec = self._spec(TensorSpec(shape, dtype.name, "cpu"), dtype.itemsize)
            size = math.prod(shape)
            kept = 0 < size <= RAW and dtype in FLOATS
            form = self._forms[dtype, shape] = GradientFormat(shape, dtype, spec, size, kept)
        return form

    def _spec(self, spec: TensorSpec, itemsize: int) -> int:
        """Return the row of the table `specs` of a gradient that looks like this."""
        told = json.dumps(spec.shape), spec.dtype, spec.device, itemsize
        return self._intern_spec(told, told)

    def _looked_at(self, host: Any) -> tuple[Any, int]:
        """Return the array of what `Adapter.hosts` gives for a gradient, and its row in the table `specs`."""
        if type(host) is Converted:
            return host.array, self._spec(host.spec, host.array.itemsize)
        return host, self._form(host.dtype, host.shape).spec

    # --- large ---

    def _arrived(
        self, flow: Flow, at: tuple[int, int], host: Any, wanted: bool, large: list[_SentGradient]
    ) -> GradientSnapshot:
        host, spec = self._looked_at(host)
        if host.size < _LARGE:
            return self._snapshot(host, spec, wanted)
        sent = flow.pop(at, None) if flow else None
        if type(sent) is not _SentGradient or (wanted and sent.snapshot.value < 0) or not _is(host, sent):
            sent = _sending(host, self._snapshot(host, spec, wanted))
        large.append(sent)
        return sent.snapshot

    def _sent(self, flow: Flow, nr: int, host: Any, node: NodePlan, large: list[_SentGradient]) -> GradientSnapshot:
        host, spec = self._looked_at(host)
        wanted = node.wanted
        if host.size < _LARGE:
            return self._snapshot(host, spec, wanted)
        sent = self._passed_on(host, spec, wanted, large) if large else None
        if sent is None:
            sent = _sending(host, self._snapshot(host, spec, wanted))
        self._send(flow, nr, node, sent)
        return sent.snapshot

    def _send(self, flow: Flow, nr: int, node: NodePlan, sent: _SentGradient | _SentFromDevice) -> None:
        """Note a gradient on its way to the node that it is for."""
        target, input_nr = node.edges[nr] if nr < len(node.edges) else (None, 0)
        if target is not None:
            receiver = target, input_nr
            flow[receiver] = None if receiver in flow else sent

    def _passed_on(self, host: Any, spec: int, wanted: bool, large: Sequence[_SentGradient]) -> _SentGradient | None:
        """Return a gradient that is one the node was given, whole, perhaps as another view; None if it is new."""
        laid = _laid_out(host)
        if laid is None:
            return None
        address = _address(laid)
        for sent in large:
            given = sent.host
            if address != sent.address or host.size != given.size or host.dtype != given.dtype:
                continue
            if _checksum(laid) != sent.checksum:
                return None
            if host.shape == given.shape and host.strides == given.strides:
                return sent if sent.snapshot.value >= 0 or not wanted else None
            measured = sent.snapshot.measured
            if wanted or measured is None:
                return None
            seen = measured.beginning_with(host.flat[:FIRST].tolist())
            return _SentGradient(host, address, sent.checksum, GradientSnapshot(spec, measured=seen))
        return None

    # --- on a device ---

    def _on_device(self, host: OnDevice, sent: Any, others: list[_SentFromDevice]) -> _SentFromDevice:
        """Return a gradient on a device, with its statistics: those that are known, or else new ones."""
        spec = self._spec(host.spec, host.itemsize)
        given = (sent, *others) if type(sent) is _SentFromDevice else others
        known = next((one for one in given if one.known(host)), None)
        if known is None:
            seen = _SentFromDevice(host, self._counted_there(host, spec))
        elif known.snapshot.spec == spec:
            seen = known
        elif type(known.snapshot) is DeviceSnapshot:
            seen = _SentFromDevice(host, DeviceSnapshot(spec, known.snapshot.taken))
        else:
            seen = _SentFromDevice(host, self._counted_there(host, spec))
        others.append(seen)
        return seen

    def _counted_there(self, host: OnDevice, spec: int) -> GradientSnapshot:
        """Have a device take the statistics of a gradient; take them here where it cannot, for want of memory say."""
        taken = host.take_statistics(host.tensor)
        return self._snapshot(self._to_host(host.tensor), spec, False) if taken is None else DeviceSnapshot(spec, taken)

    # --- any ---

    def _snapshot(self, host: Any, spec: int, wanted: bool) -> GradientSnapshot:
        with numpy.errstate(all="ignore"):
            measured = measure(host) if host.size > SMALL and host.dtype in FLOATS else None
        if measured is not None and not wanted:
            return GradientSnapshot(spec, measured=measured)
        self.nbytes += host.nbytes
        return GradientSnapshot(spec, numpy.array(host), self._next_value() if wanted else -1, measured)


def _is(host: Any, sent: _SentGradient) -> bool:
    """Whether a gradient is what was sent: the same memory, and no hook has written in it."""
    other = sent.host
    if host.shape != other.shape or host.dtype != other.dtype or host.strides != other.strides:
        return False
    laid = _laid_out(host)
    return laid is not None and _address(laid) == sent.address and _checksum(laid) == sent.checksum


def _sending(host: Any, snapshot: GradientSnapshot) -> _SentGradient:
    laid = _laid_out(host)
    # A gradient whose memory has gaps has no checksum, so _is() never finds it again: address 0 says so.
    address, checksum = (0, 0) if laid is None else (_address(laid), _checksum(laid))
    return _SentGradient(host, address, checksum, snapshot)


def _laid_out(host: Any) -> Any:
    """Return a view of an array in the order of its memory; None where that has gaps, or elements that overlap."""
    if host.flags.c_contiguous:
        return host
    strides = host.strides
    laid = host.transpose(sorted(range(host.ndim), key=lambda axis: (-strides[axis], host.shape[axis] > 1)))
    return laid if laid.flags.c_contiguous else None


def _address(laid: Any) -> int:
    address: int = laid.__array_interface__["data"][0]
    return address


def _checksum(laid: Any) -> int:
    """Return a sum of the bits of a contiguous array: any one element that changes, changes it."""
    words = laid.reshape(-1).view(numpy.uint8)
    whole = words.size - words.size % 8
    return int(numpy.add.reduce(words[:whole].view(numpy.uint64)))
