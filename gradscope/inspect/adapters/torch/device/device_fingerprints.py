"""Checksums of saved tensors on a GPU: they are made there, and come to the host many at once, when one is compared.

What waits for the device costs a training step more than the checksums do. Of a large tensor evenly spaced elements
count, as :func:`.numpy_conversion.bits_of` has them.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

import torch

from ... import memory_fingerprint
from ..numpy_conversion import few_elements
from .device_statistics import current_stream

__all__ = ["DeviceFingerprint", "fingerprint_of"]

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_MOST = 4096  # checksums that wait at once


class DeviceFingerprint:
    """The checksum of a tensor's bits; to compare it waits for the device."""

    __slots__ = ("__weakref__", "_value", "_waiting")

    def __init__(self, value: torch.Tensor, waiting: _Waiting) -> None:
        self._value: Any = value
        self._waiting = waiting

    def read(self) -> int:
        """Return the number."""
        if type(self._value) is not int:
            self._waiting.read()
        return int(self._value)

    def __eq__(self, other: object) -> bool:
        return type(other) is DeviceFingerprint and self.read() == other.read()

    __hash__ = None  # type: ignore[assignment]


class _Waiting:
    """The checksums that a stream has been told to make, and nobody has read."""

    def __init__(self, stream: torch.cuda.Stream | None) -> None:
        self._stream = stream  # None on the CPU, for tests
        self._lock = threading.Lock()
        self._made: list[weakref.ref[DeviceFingerprint]] = []

    def add(self, value: torch.Tensor) -> DeviceFingerprint:
        """Return the fingerprint of which a number on the device is the value."""
        made = DeviceFingerprint(value, self)
        with self._lock:
            self._made.append(weakref.ref(made))
            full = len(self._made) >= _MOST
        if full:
            self.read()
        return made

    def read(self) -> None:
        """Bring all values to the host."""
        with self._lock:
            waiting = [made for reference in self._made if (made := reference()) is not None]
            self._made.clear()
            if waiting:
                with torch.no_grad(), torch.cuda.stream(self._stream):
                    numbers = torch.stack([made._value for made in waiting]).tolist()
                for made, number in zip(waiting, numbers, strict=True):
                    made._value = number


_streams: dict[Any, _Waiting] = {}


def fingerprint_of(tensor: torch.Tensor) -> DeviceFingerprint | None:
    """Return the checksum of a dense tensor on a GPU, None while a CUDA graph is captured, which nobody may wait for.

    The caller has put modes aside, and has nothing recorded.
    """
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    key = tensor.device, current_stream(tensor.device) if tensor.is_cuda else None
    waiting = _streams.get(key)
    if waiting is None:
        waiting = _streams[key] = _Waiting(torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None)
    few = few_elements(tensor).contiguous()
    words = few.view(_WORDS.get(few.element_size(), torch.int64))
    return waiting.add((words * _factors(tensor.device)[: words.numel()]).sum())


@functools.cache
def _factors(device: torch.device) -> torch.Tensor:
    """Return odd numbers, one for each place: no word that changes leaves the sum as it is."""
    # Steele, Lea and Flood, "Fast splittable generators", 2014: the odd gamma of SplitMix64, by multiples.
    places = torch.arange(1, 2 * memory_fingerprint.DEVICE_ELEMENTS + 1, device=device)
    return (places * -7046029254386353131) | 1
