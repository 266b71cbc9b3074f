"""Memory that was handed out so that a write counts no version, and whether that has been written since.

No operator is heard of: what lies there is compared when whoever has the memory lets go of it, and when somebody asks.
Of what is small it is known which bytes have changed: solvers fill a buffer through ``.data``, one part after another,
whose earlier parts are saved by then. Of a device's memory nothing comes to the host: an alias tells by its version
whether it was written through, and counts as written when it is gone. Nothing is kept alive.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy
import torch

from ..functorch import innermost
from ..numpy_conversion import address_of, bits_there

__all__ = ["HandedMemory"]

# The bytes of a storage up to which it is known which of them have changed.
_SMALL = 1 << 16
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
        storage = innermost(tensor).untyped_storage()
        key = self._known(storage)
        place = address, tensor.shape
        for known in self._live.get(key, ()):
            if known.place == place and known.is_held_by(holder):
                self._look(key, known)
                return
        alias = _Alias(tensor, storage, place) if on_host else _DeviceAlias(place, holder._version)
        if holder is not None:
            alias.holder = weakref.ref(holder, partial(self._let_go, key, alias))
        self._live.setdefault(key, []).append(alias)

    def replaced(self, tensor: torch.Tensor) -> None:
        """Note that a tensor lies in other memory now."""
        self.written(self._known(innermost(tensor).untyped_storage()))

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
        places = alias.differing()
        if places is None:
            self.written(key)
        elif len(places):
            now, known = _sequence_nr(), self._changed.get(key)
            if known is None:
                known = self._changed[key] = _Changed(now, numpy.full(alias.storage_bytes, -1))
            known.write(now, places)

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


class _Changed:
    """When a storage was changed last, and, where that is known, each of its bytes."""

    __slots__ = ("_bytes", "time")

    def __init__(self, time: int, each: numpy.ndarray | None = None) -> None:
        self.time = time
        self._bytes = each

    def write(self, time: int, places: numpy.ndarray) -> None:
        """Note a change of some bytes."""
        self.time = time
        if self._bytes is not None:
            self._bytes[places] = time

    def since(self, time: int, tensor: torch.Tensor) -> bool:
        """Whether what a tensor looks at was changed after a time."""
        tensor = innermost(tensor)
        if time >= self.time or self._bytes is None or not tensor.is_cpu:
            return time < self.time
        size, step = tensor.element_size(), self._bytes.itemsize
        shape = (*tensor.shape, size)
        strides = (*[stride * size * step for stride in tensor.stride()], step)
        start = self._bytes[tensor.storage_offset() * size :]
        return bool((numpy.lib.stride_tricks.as_strided(start, shape, strides) > time).any())


def _is_on_device(tensor: torch.Tensor, holder: Any) -> bool:
    """Whether a tensor lies in a device's memory, and an alias of it is handed out."""
    plain = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return plain and tensor.layout is torch.strided and isinstance(holder, torch.Tensor) and not tensor.is_cpu


class _Held:
    """Memory in somebody's hands."""

    __slots__ = ("holder", "place")

    def __init__(self, place: tuple[int, torch.Size]) -> None:
        self.place = place
        self.holder: weakref.ref[Any] | None = None

    def is_held_by(self, holder: Any) -> bool:
        """Whether it is known to be in the hands of an object; None stands for whom nobody knows."""
        return (None if self.holder is None else self.holder()) is holder

    storage_bytes = 0
    """The size of the storage, where it is known which bytes of it have changed."""

    def differing(self) -> Any:
        """Return which bytes of the storage were written since this was asked last; None: all of it may have been."""
        raise NotImplementedError


class _DeviceAlias(_Held):
    """A device's memory in the hands of an alias, and the alias's version when it was looked at last."""

    __slots__ = ("_version",)

    def __init__(self, place: tuple[int, torch.Size], version: int) -> None:
        super().__init__(place)
        self._version = version

    def differing(self) -> Any:
        """Return none, or None where it was written through the alias, or the alias is gone."""
        alias = None if self.holder is None else self.holder()
        if alias is None:
            return None
        before, self._version = self._version, alias._version
        return () if before == self._version else None


class _Alias(_Held):
    """The host's memory in somebody's hands, and what lay there when it was looked at last."""

    __slots__ = ("_address", "_before", "_bits", "_offset", "_storage", "storage_bytes")

    def __init__(self, tensor: torch.Tensor, storage: Any, place: tuple[int, torch.Size]) -> None:
        super().__init__(place)
        self._storage = weakref.ref(storage)
        self._address = storage.data_ptr()
        self._bits = bits_there(tensor)
        self._offset = tensor.data_ptr() - self._address
        self.storage_bytes = storage.nbytes() if tensor.is_contiguous() and storage.nbytes() <= _SMALL else 0
        self._before = self._now()

    def differing(self) -> Any:
        """Return where other values lie than when this was asked last; nowhere in memory that was given back."""
        storage = self._storage()
        if storage is None or storage.data_ptr() != self._address:
            return ()
        before, self._before = self._before, self._now()
        if before == self._before:
            return ()
        if not self.storage_bytes or storage.nbytes() != self.storage_bytes:
            return None
        was, is_ = (numpy.frombuffer(bits, numpy.uint8) for bits in (before, self._before))
        return self._offset + numpy.flatnonzero(was != is_)

    def _now(self) -> Any:
        """Return what lies there, of a large memory its checksum."""
        bits = self._bits()
        return bytes(bits) if self.storage_bytes else zlib.crc32(bits)
