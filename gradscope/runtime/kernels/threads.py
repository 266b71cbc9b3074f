"""Parts of large arrays at a time on as many threads as were asked for; NumPy and compiled kernels release the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

__all__ = ["WORTH", "count", "over", "set_count"]

WORTH = 1 << 18
"""How many elements a thread is given at least: to hand them over takes some 20 microseconds."""


def _at_first() -> int:
    """Return how many threads share the work until somebody says: what BLAS libraries take too."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Threads:
    count = _at_first()
    pool: ThreadPoolExecutor | None = None


def over(size: int, work: Callable[[slice], None], each: int = 1, step: int = 1) -> None:
    """Call `work` with slices of ``range(size)``, at once where there are threads.

    Parameters
    ----------
    size : int
        How many indices the slices have in all.
    work : callable
        What is done with a slice; it releases the interpreter's lock.
    each : int
        How many elements an index stands for.
    step : int
        Slices begin at multiples of this: what is computed of a block does not depend on the number of threads.

    Raises
    ------
    Exception
        What `work` raised, of the first slice that did.
    """
    parts = min(_Threads.count, size * each // WORTH)
    if parts < 2:
        work(slice(0, size))
        return
    length = -(-size // (parts * step)) * step
    others = [_pool().submit(work, slice(begin, min(begin + length, size))) for begin in range(length, size, length)]
    try:
        work(slice(0, min(length, size)))
    finally:
        wait(others)  # none writes any more when an error goes on from here
    for other in others:
        other.result()


def count() -> int:
    """Return how many threads share the work."""
    return _Threads.count


def set_count(number: int) -> None:
    """Let so many threads share the work."""
    _Threads.count = number
    _forget_pool()


def _pool() -> ThreadPoolExecutor:
    if _Threads.pool is None:
        _Threads.pool = ThreadPoolExecutor(max(_Threads.count - 1, 1), thread_name_prefix="gradscope-kernels")
    return _Threads.pool


def _forget_pool() -> None:
    pool, _Threads.pool = _Threads.pool, None
    if pool is not None:
        pool.shutdown(wait=False)


# The threads of a pool are not in the process that a fork makes.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_Threads, "pool", None))
