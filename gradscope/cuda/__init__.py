"""CUDA devices, as CuPy finds them."""

from __future__ import annotations

from typing import Any

from ..runtime import device as devices
from ..runtime.random import generator_for
from . import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "synchronize",
]


def is_available() -> bool:
    """Return whether CuPy is installed and finds a device."""
    return devices.cuda_is_available()


def device_count() -> int:
    """Return how many devices CuPy finds; 0 without CuPy."""
    return devices.cuda_device_count()


def _cuda(device: Any = None) -> Any:
    """Return CuPy's handle of a device; the current one for None.

    Raises
    ------
    RuntimeError
        If there is no CUDA device.
    """
    backend, index = devices.resolve("cuda" if device is None else device)
    handle = backend.module.cuda.Device
    return handle() if index is None else handle(index)


def current_device() -> int:
    """Return the ordinal of the current device."""
    return int(_cuda().id)


def get_device_name(device: Any = None) -> str:
    """Return the name of a device."""
    handle = _cuda(device)
    runtime = devices.module_for("cuda").cuda.runtime
    return runtime.getDeviceProperties(handle.id)["name"].decode()


def synchronize(device: Any = None) -> None:
    """Wait until all work on a device is done."""
    _cuda(device).synchronize()


def manual_seed(seed: int) -> None:
    """Seed the default generator of the current device; without a device, nothing."""
    if is_available():
        generator_for(devices.device("cuda", current_device())).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the default generators of all devices."""
    for index in range(device_count()):
        generator_for(devices.device("cuda", index)).manual_seed(seed)


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that arrays of this process take on a device."""
    with _cuda(device):
        return int(devices.module_for("cuda").get_default_memory_pool().used_bytes())


def empty_cache() -> None:
    """Give memory that no array uses back to the device."""
    if is_available():
        devices.module_for("cuda").get_default_memory_pool().free_all_blocks()
