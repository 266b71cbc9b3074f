"""What the system's allocator does with the memory of arrays that are freed."""

from __future__ import annotations

import sys
from contextlib import suppress

import numpy

__all__ = ["keep_freed_memory"]

_LARGEST = (32 << 20) - (64 << 10)
"""Bytes of the largest array by which glibc's threshold rises, with room for the allocator's own."""


def keep_freed_memory() -> None:
    """Have glibc's allocator keep up to 64 MiB of freed memory for the next arrays.

    As it comes, it takes each array above 128 KiB from the system and gives it back with it, and the system fills each
    page with zeros when it is written again: that takes as long as several passes over the array. The threshold rises
    with each larger array that is freed, to 32 MiB at most, and what is kept to twice as much: one is freed here which
    nobody has touched. Where the environment sets ``MALLOC_MMAP_THRESHOLD_`` or ``MALLOC_TRIM_THRESHOLD_``, and with
    other allocators, it changes nothing.

    References
    ----------
    mallopt(3), ``M_MMAP_THRESHOLD`` and ``M_TRIM_THRESHOLD``.

    Examples
    --------
    >>> keep_freed_memory()
    """
    if sys.platform == "linux":
        with suppress(MemoryError):  # the process may have little address space
            numpy.empty(_LARGEST, numpy.uint8)
