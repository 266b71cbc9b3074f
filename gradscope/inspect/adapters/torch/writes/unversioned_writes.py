"""Memory that was handed out so that a write counts no version, and whether that has been written since.

No operator is heard of: what lies there is compared when whoever has the memory lets go of it, and when somebody asks.
Of what is small it is known which bytes have changed: solvers fill a buffer through ``.data``, one part after another,
whose earlier parts are saved by then. Which they are is found out when somebody asks: most such buffers are gone before
that. Of a device's memory nothing comes to the host: an alias tells by its version whether it was written through, and
counts as written when it is gone. Nothing is kept alive.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy
import torch

from ..numpy_conversion import address_of, bits_there, reader, storage_of
from ..transforms.functorch import innermost

__all__ = ["HandedMemory"]

# The bytes of a storage up to which it is known which of them have changed.
_SMALL = 1 << 16
# The bytes of changes that are kept as they came.
_UNSORTED = 1 << 14
_sequence_nr = torch._C._autograd._get_sequence_nr
_Saved = Sequence[tuple[int, int, torch.Tensor]]


class HandedMemory:
    """The memories that are in somebody else's hands, or have been.

    Times are sequence numbers of nodes: a node that was made before a change has a smaller one.

    Examples
    --------
    >>> x = torch.ones(3)
    >>> handed, array = HandedMemory(), x.numpy()
    >>> handed.hand_out(x, array)
    >>> key = x.untyped_storage()._cdata
    >>> handed.changed_since([(key, -1, x)])
    False
    >>> array[0] = 5
    >>> handed.changed_since([(key, -1, x)]), handed.changed_since([(key, -1, x[1:])])
    (True, False)
    """

    def __init__(self) -> None:
        self._storages: dict[int, weakref.ref[Any]] = {}
        self._live: dict[int, list[_Held]] = {}
        self._changed: dict[int, _Changed] = {}

    def __bool__(self) -> bool:
        return bool(self._live or self._changed)

    def hand_out(self, tensor: torch.Tensor, holder: Any) -> None:
        """Note that the memory of a tensor is handed out.

        Parameters
        ----------
        holder : object or None
            What is gone when nobody has the memory any more; None where that is not known.
        """
        on_host = tensor.is_cpu
        address = address_of(tensor) if on_host else 0
        if not (address or _is_on_device(tensor, holder)):
            return
        storage = storage_of(tensor)
        key = self._known(storage)
        place = address, tensor.shape
        for known in self._live.get(key, ()):
            if known.place == place and known.is_held_by(holder):
                self._look(key, known)
                return
        alias: _Held
        if on_host:
            alias = _on_host(tensor, self._storages[key], storage, place)
        else:
            alias = _DeviceAlias(place, holder._version)
        if holder is not None:
            alias.holder = weakref.ref(holder, partial(self._let_go, key, alias))
        self._live.setdefault(key, []).append(alias)

    def replaced(self, tensor: torch.Tensor) -> None:
        """Note that a tensor lies in other memory now."""
        storage = storage_of(tensor)
        if storage is not None:
            self.written(self._known(storage))

    def written(self, key: int) -> None:
        """Note that all that lies in a storage, of which this is the key, is taken for written."""
        self._changed[key] = _Changed(_sequence_nr())

    def concerns(self, oldest: int) -> bool:
        """Whether a graph whose first node was made at a time may have saved what was changed after that.

        What changed before is forgotten: graphs are run in the order in which they were made, as a rule.
        """
        for key in [key for key, changed in self._changed.items() if changed.time <= oldest]:
            self._changed.pop(key, None)
        return bool(self)

    def changed_since(self, saved: _Saved) -> bool:
        """Whether memory may have been changed after it was saved.

        Parameters
        ----------
        saved : sequence of (int, int, Tensor)
            The key of the storage, when it was saved, and what was saved of it.
        """
        for key in {key for key, _, _ in saved if key in self._live}:
            for alias in list(self._live.get(key, ())):
                self._look(key, alias)
        return any(key in self._changed and self._changed[key].since(time, tensor) for key, time, tensor in saved)

    def _known(self, storage: Any) -> int:
        key: int = storage._cdata
        known = self._storages.get(key)
        if known is None or known() is not storage:
            self._forget(key, known)
            self._storages[key] = weakref.ref(storage, partial(self._forget, key))
        return key

    def _look(self, key: int, alias: _Held) -> None:
        change = alias.change()
        if change is not None:
            known = self._changed.get(key)
            if known is None:
                known = self._changed[key] = _Changed(-1, change.storage_bytes)
            known.write(_sequence_nr(), change)

    def _let_go(self, key: int, alias: _Held, reference: Any) -> None:
        alias.holder = None
        self._look(key, alias)
        there = self._live.get(key, [])
        if alias in there:
            there.remove(alias)
        if not there:
            self._live.pop(key, None)

    def _forget(self, key: int, reference: Any) -> None:
        if self._storages.get(key) is not reference:
            return
        self._storages.pop(key, None)
        self._changed.pop(key, None)
        for alias in self._live.pop(key, ()):
            alias.holder = None


class _Change(NamedTuple):
    """What lay in some bytes of a storage, and what lies there now.

    Attributes
    ----------
    storage_bytes : int
        How large the storage is; 0 where all of it may have been written.
    """

    storage_bytes: int
    offset: int
    before: bytes
    now: bytes


_ALL = _Change(0, 0, b"", b"")


class _Changed:
    """When a storage was changed last, and, where its size is given, each of its bytes."""

    __slots__ = ("_bytes", "_size", "_unsorted", "_unsorted_bytes", "time")

    def __init__(self, time: int, storage_bytes: int = 0) -> None:
        self.time = time
        self._size = storage_bytes
        self._unsorted: list[tuple[int, _Change]] = []
        self._unsorted_bytes = 0
        self._bytes: numpy.ndarray | None = None

    def write(self, time: int, change: _Change) -> None:
        """Note a change."""
        self.time = time
        if change.storage_bytes != self._size:
            self._size = 0
        elif self._size:
            self._unsorted.append((time, change))
            self._unsorted_bytes += 2 * len(change.now)
            if self._unsorted_bytes > max(_UNSORTED, 8 * self._size):  # the times of all bytes take no more
                self._times()

    def since(self, time: int, tensor: torch.Tensor) -> bool:
        """Whether what a tensor looks at was changed after a time."""
        tensor = innermost(tensor)
        if time >= self.time or not tensor.is_cpu or tensor.untyped_storage().nbytes() != self._size:
            return time < self.time
        times = self._times()
        size, step = tensor.element_size(), times.itemsize
        shape = (*tensor.shape, size)
        strides = (*[stride * size * step for stride in tensor.stride()], step)
        start = times[tensor.storage_offset() * size :]
        return bool((numpy.lib.stride_tricks.as_strided(start, shape, strides) > time).any())

    def _times(self) -> numpy.ndarray:
        """Return when each byte was changed last; -1 where it was not."""
        if self._bytes is None:
            self._bytes = numpy.full(self._size, -1)
        for (offset, size), changes in groupby(self._unsorted, key=_place_of):
            times, each = zip(*changes, strict=True)
            before, now = (
                numpy.frombuffer(b"".join(lain), numpy.uint8).reshape(len(each), size)
                for lain in ([change.before for change in each], [change.now for change in each])
            )
            there = self._bytes[offset : offset + size]
            numpy.maximum(there, numpy.where(before != now, numpy.array(times)[:, None], -1).max(axis=0), out=there)
        self._unsorted, self._unsorted_bytes = [], 0
        return self._bytes


def _place_of(written: tuple[int, _Change]) -> tuple[int, int]:
    change = written[1]
    return change.offset, len(change.now)


def _is_on_device(tensor: torch.Tensor, holder: Any) -> bool:
    """Whether a tensor lies in a device's memory, and an alias of it is handed out."""
    plain = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return plain and tensor.layout is torch.strided and isinstance(holder, torch.Tensor) and not tensor.is_cpu


class _Held:
    """Memory in somebody's hands."""

    __slots__ = ("holder", "place")

    place: tuple[int, torch.Size]
    holder: weakref.ref[Any] | None

    def is_held_by(self, holder: Any) -> bool:
        """Whether it is known to be in the hands of an object; None stands for whom nobody knows."""
        return (None if self.holder is None else self.holder()) is holder

    def change(self) -> _Change | None:
        """Return what was written since this was asked last, None if nothing was."""
        raise NotImplementedError


class _DeviceAlias(_Held):
    """A device's memory in the hands of an alias, and the alias's version when it was looked at last."""

    __slots__ = ("_version",)

    def __init__(self, place: tuple[int, torch.Size], version: int) -> None:
        self.place, self.holder = place, None
        self._version = version

    def change(self) -> _Change | None:
        """Return whether it was written through the alias; when that is gone, it may have been."""
        alias = None if self.holder is None else self.holder()
        if alias is None:
            return _ALL
        before, self._version = self._version, alias._version
        return None if before == self._version else _ALL


def _on_host(tensor: torch.Tensor, reference: weakref.ref[Any], storage: Any, place: tuple[int, torch.Size]) -> _Held:
    size, start = storage.nbytes(), storage.data_ptr()
    if size <= _SMALL and tensor.is_contiguous():
        return _SmallAlias(place, reference, start, size, tensor.nbytes)
    return _LargeAlias(place, reference, start, bits_there(tensor))


class _HostAlias(_Held):
    """The host's memory in somebody's hands; what was given back is not read."""

    __slots__ = ("_start", "_storage")

    def __init__(self, place: tuple[int, torch.Size], reference: weakref.ref[Any], start: int) -> None:
        self.place, self.holder = place, None
        self._storage = reference
        self._start = start

    def _there(self) -> Any:
        storage = self._storage()
        return None if storage is None or storage.data_ptr() != self._start else storage


class _SmallAlias(_HostAlias):
    """A small memory, and what lay there when it was looked at last."""

    __slots__ = ("_before", "_read", "_storage_bytes")

    def __init__(
        self, place: tuple[int, torch.Size], reference: weakref.ref[Any], start: int, storage_bytes: int, size: int
    ) -> None:
        super().__init__(place, reference, start)
        self._storage_bytes = storage_bytes
        self._read = reader(size)
        self._before: bytes = self._read(place[0]).raw

    def change(self) -> _Change | None:
        """Return what was written since this was asked last, None if nothing was."""
        storage = self._there()
        if storage is None:
            return None
        before, self._before = self._before, self._read(self.place[0]).raw
        if before == self._before:
            return None
        if storage.nbytes() != self._storage_bytes:
            return _ALL
        return _Change(self._storage_bytes, self.place[0] - self._start, before, self._before)


class _LargeAlias(_HostAlias):
    """A large memory, and the checksum of what lay there when it was looked at last."""

    __slots__ = ("_before", "_bits")

    def __init__(
        self, place: tuple[int, torch.Size], reference: weakref.ref[Any], start: int, bits: Callable[[], Any]
    ) -> None:
        super().__init__(place, reference, start)
        self._bits = bits
        self._before = zlib.crc32(bits())

    def change(self) -> _Change | None:
        """Return whether other bytes lie there than when this was asked last."""
        if self._there() is None:
            return None
        before, self._before = self._before, zlib.crc32(self._bits())
        return None if before == self._before else _ALL
