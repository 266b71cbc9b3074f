"""CUDA devices, as CuPy finds them.

- :mod:`~.amp`: older names of autocast and the scaler
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

from ..runtime.memory import device as devices
from ..runtime.ops.random.random import generator_for
from . import amp

__all__ = [
    "amp",
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "set_device",
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
        If there is no CUDA device, or none of this ordinal.
    """
    backend = devices.loaded("cuda")
    index = device if device is None or isinstance(device, int) else devices.device(device).index
    if index is not None:
        backend.need_ordinal(index)
    return backend.module.cuda.Device(index)


def current_device() -> int:
    """Return the ordinal of the current device."""
    return int(_cuda().id)


def set_device(device: Any) -> None:
    """Make a device the current one of this thread: tensors are made and computed there."""
    _cuda(device).use()


def device(device: Any) -> AbstractContextManager[Any]:
    """Context manager: make a device the current one.

    Examples
    --------
    >>> import gradscope as gs
    >>> if gs.cuda.device_count() > 1:
    ...     with gs.cuda.device(1):
    ...         x = gs.ones(2, device="cuda")
    """
    return cast("AbstractContextManager[Any]", _cuda(device))


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
