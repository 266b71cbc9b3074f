"""What the system's allocator does with the memory of arrays that are freed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt()
_VARIABLES = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
_KEPT = 256 << 20
"""Bytes that are kept: what one step frees of a network on 4M elements."""

_LARGEST = 32 << 20
"""Bytes of the largest array that is kept, the most that glibc takes."""


def keep_freed_memory() -> None:
    """Have glibc's allocator keep up to 256 MiB of freed memory for the next arrays, of up to 32 MiB each.

    As it comes, it takes each array above 128 KiB from the system and gives it back with it, and the system fills each
    page with zeros when it is written again: that takes as long as several passes over the array. Where the environment
    sets ``MALLOC_MMAP_THRESHOLD_`` or ``MALLOC_TRIM_THRESHOLD_``, or tunables of the allocator, and with other
    allocators, it changes nothing.

    References
    ----------
    mallopt(3), ``M_MMAP_THRESHOLD`` and ``M_TRIM_THRESHOLD``.

    Examples
    --------
    >>> keep_freed_memory()
    """
    asked = any(name in os.environ for name in _VARIABLES) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if sys.platform != "linux" or asked:
        return
    with suppress(ImportError):  # in a Python that was built without libffi
        import ctypes

        libc = ctypes.CDLL(None)
        if hasattr(libc, "gnu_get_libc_version"):
            libc.mallopt(_MMAP_THRESHOLD, _LARGEST)
            libc.mallopt(_TRIM_THRESHOLD, _KEPT)
