"""Memory that was handed out so that a write counts no version, and whether that has been written since.

No operator is heard of: what lies there is compared when whoever has the memory lets go of it, and when somebody asks.
Of a device's memory nothing comes to the host: an alias tells by its version whether it was written through, and counts
as written when it is gone. Nothing is kept alive.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from ..functorch import innermost
from ..numpy_conversion import address_of, bits_there

__all__ = ["HandedMemory"]

_sequence_nr = torch._C._autograd._get_sequence_nr


class HandedMemory:
    """The memories that are in somebody else's hands, or have been.

    Times are sequence numbers of nodes: a node that was made before a change has a smaller one.

    Examples
    --------
    >>> x = torch.ones(3)
    >>> handed, array = HandedMemory(), x.numpy()
    >>> handed.hand_out(x, array)
    >>> key = x.untyped_storage()._cdata
    >>> handed.changed_since({key: -1})
    False
    >>> array[0] = 5
    >>> handed.changed_since({key: -1})
    True
    """

    def __init__(self) -> None:
        self._storages: dict[int, weakref.ref[Any]] = {}
        self._live: dict[int, list[_Held]] = {}
        self._changed: dict[int, int] = {}

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
        """Note that what lies in a storage, of which this is the key, is taken for written."""
        self._changed[key] = _sequence_nr()

    def concerns(self, oldest: int) -> bool:
        """Whether a graph whose first node was made at a time may have saved what was changed after that.

        What changed before is forgotten: graphs are run in the order in which they were made, as a rule.
        """
        for key in [key for key, time in self._changed.items() if time <= oldest]:
            self._changed.pop(key, None)
        return bool(self)

    def changed_since(self, saved: Mapping[int, int]) -> bool:
        """Whether memory may have been changed after it was saved: when, is given by the key of its storage."""
        for key, time in saved.items():
            for alias in list(self._live.get(key, ())):
                self._look(key, alias)
            if time < self._changed.get(key, time):
                return True
        return False

    def _known(self, storage: Any) -> int:
        key: int = storage._cdata
        known = self._storages.get(key)
        if known is None or known() is not storage:
            self._forget(key, known)
            self._storages[key] = weakref.ref(storage, partial(self._forget, key))
        return key

    def _look(self, key: int, alias: _Held) -> None:
        if alias.differs():
            self.written(key)

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

    def differs(self) -> bool:
        """Whether it was written, or may have been, since this was asked last."""
        raise NotImplementedError


class _DeviceAlias(_Held):
    """A device's memory in the hands of an alias, and the alias's version when it was looked at last."""

    __slots__ = ("_version",)

    def __init__(self, place: tuple[int, torch.Size], version: int) -> None:
        super().__init__(place)
        self._version = version

    def differs(self) -> bool:
        """Whether it was written through the alias; taken for it where the alias is gone."""
        alias = None if self.holder is None else self.holder()
        if alias is None:
            return True
        before, self._version = self._version, alias._version
        return before != self._version


class _Alias(_Held):
    """The host's memory in somebody's hands, and what lay there when it was looked at last."""

    __slots__ = ("_address", "_bits", "_storage", "_sum")

    def __init__(self, tensor: torch.Tensor, storage: Any, place: tuple[int, torch.Size]) -> None:
        super().__init__(place)
        self._storage = weakref.ref(storage)
        self._address = storage.data_ptr()
        self._bits = bits_there(tensor)
        self._sum = self._checksum()

    def differs(self) -> bool:
        """Whether other values lie there than when this was asked last; not known of memory that was given back."""
        storage = self._storage()
        if storage is None or storage.data_ptr() != self._address:
            return False
        before, self._sum = self._sum, self._checksum()
        return before != self._sum

    def _checksum(self) -> int:
        return zlib.crc32(self._bits())
