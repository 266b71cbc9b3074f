"""Parts of large arrays at a time on as many threads as were asked for; NumPy and compiled kernels release the lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

__all__ = ["WORTH", "blocks", "count", "over", "set_count"]

WORTH = 1 << 18
"""How many elements a thread is given at least: to hand them over takes some 20 microseconds."""


def _at_first() -> int:
    """Return the default number of threads: that of BLAS libraries."""
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
    first, *rest = blocks(slice(0, size), -(-size // (parts * step)) * step)
    others = [_begun(work, part) for part in rest]
    try:
        work(first)
    finally:
        # No thread writes any more when an error goes on from here.
        wait([other for other in others if other is not None])
    for other, part in zip(others, rest, strict=True):
        if other is None:
            work(part)
        else:
            other.result()


def blocks(part: slice, step: int) -> Iterator[slice]:
    """Yield slices of `step` indices of a slice; the last one may have fewer.

    Examples
    --------
    >>> list(blocks(slice(2, 7), 3))
    [slice(2, 5, None), slice(5, 7, None)]
    """
    for begin in range(part.start, part.stop, step):
        yield slice(begin, min(begin + step, part.stop))


def _begun(work: Callable[[slice], None], part: slice) -> Future[None] | None:
    """Have another thread work on a slice; return None where there is none.

    At the end of the main thread Python ends the pool, though other threads go on; so may :func:`set_count`, meanwhile.
    """
    try:
        return _pool().submit(work, part)
    except RuntimeError as error:
        if "cannot schedule new futures" not in str(error):  # a thread that does not start leaves the work in a queue
            raise
        return None


def count() -> int:
    """Return how many threads share the work."""
    return _Threads.count


def set_count(number: int) -> None:
    """Set how many threads share the work."""
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
