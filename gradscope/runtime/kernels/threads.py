"""Parts of large arrays at a time on as many threads as were asked for; NumPy and compiled kernels release the lock."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from itertools import pairwise
from operator import itemgetter
from queue import SimpleQueue

__all__ = ["WORTH", "WORTH_QUICK", "blocks", "count", "over", "over_lines", "set_count", "sharing"]

WORTH = 1 << 18
"""How many elements a thread is given at least: to hand them over takes some 20 microseconds."""

WORTH_QUICK = 4 * WORTH
"""The same of a function that takes little longer than to read and write them."""

sharing: list[int] = []
"""Holds the number of threads where there are several: whether it is empty takes less to ask than a function."""

_LEAD = 3 << 15
"""How many elements more the caller computes: it begins first, and waiting for another takes some 20 microseconds."""

_Raised = tuple[int, BaseException]
"""Where a slice began, and what was raised."""


class _Job:
    """Parts of some work. Each thread takes the next one when it has done one: what comes late finds less to do."""

    def __init__(self, work: Callable[[slice], object], parts: list[slice]) -> None:
        self._work: Callable[[slice], object] | None = work
        self._parts = parts  # the next one is the last
        self._context: Context | None = copy_context()
        self._joined: list[None] = []
        self._left: list[_Raised | None] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    def help(self) -> None:
        """Take parts, on a thread that has been told of them."""
        self._joined.append(None)  # before it takes one: the caller looks when there are none
        context = self._context
        self._left.append(None if context is None else context.copy().run(self._take))
        self._news.put(None)

    def finish(self) -> list[_Raised]:
        """Take parts; return what was raised, by a signal too, when no thread writes any more.

        A signal may raise just when the queue has given something out, which is lost; what is in the list is not.
        """
        raised: list[_Raised | None] = []
        while True:
            try:
                raised.append(self._take())
                while len(self._left) < len(self._joined):
                    self._news.get()
                break
            except BaseException as error:  # Ctrl+C, or whatever the program has a signal raise
                self._parts.clear()
                raised.append((-1, error))
        raised += self._left
        self._work = self._context = None  # for a thread that comes later, which would keep arrays alive
        self._left.clear()
        try:
            return [what for what in raised if what is not None]
        finally:
            del raised  # what a signal raised leads to this frame, which is a cycle

    def _take(self) -> _Raised | None:
        """Take parts while there are some; return what one raised, after which nobody begins another."""
        part = None
        try:
            while (part := self._next()) is not None:
                self._work(part)  # type: ignore[misc]  # there is work while there are parts
        except BaseException as error:
            self._parts.clear()
            return -1 if part is None else part.start, error
        return None

    def _next(self) -> slice | None:
        try:
            return self._parts.pop()
        except IndexError:
            return None


class _Workers:
    """Threads that wait for parts of the work. They end with the process, and while that ends they still work."""

    def __init__(self, number: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._number = 0
        for index in range(number):
            thread = threading.Thread(target=self._serve, name=f"gradscope-kernels-{index}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # none starts at the end of the main thread, nor where the system has no more
                break
            self._number += 1

    def _serve(self) -> None:
        _here.serves = True
        while (job := self._jobs.get()) is not None:
            job.help()
            del job  # while it waits it keeps nothing alive

    def give(self, job: _Job, number: int) -> None:
        """Tell so many threads of a job; where there are none, whoever gives it does all of it."""
        with self._lock:  # a job behind the last word would wait for ever
            for _ in range(min(number, self._number)):
                self._jobs.put(job)

    def end(self) -> None:
        """Have the threads end when they have done what they were given."""
        with self._lock:
            for _ in range(self._number):
                self._jobs.put(None)
            self._number = 0


class _Here(threading.local):
    serves = False  # whether this thread is one of those


class _Threads:
    count = 1
    workers: _Workers | None = None
    lock = threading.Lock()


_here = _Here()


def over(size: int, work: Callable[[slice], object], each: int = 1, step: int = 1, *, quick: bool = False) -> None:
    """Call `work` with slices of ``range(size)``, at once where there are threads.

    Parameters
    ----------
    size : int
        How many indices the slices have in all.
    work : callable
        What is done with a slice; it releases the interpreter's lock. ``numpy.errstate`` holds for it.
    each : int
        How many elements an index stands for.
    step : int
        Slices begin at multiples of this: what is computed of a block does not depend on the number of threads.
    quick : bool
        Whether `work` takes little longer than to read and write the elements, as a sum does, or a comparison.

    Raises
    ------
    Exception
        What `work` raised, of the first slice that did.
    """
    number = min(_Threads.count, size * each // (WORTH_QUICK if quick else WORTH))
    # A worker that waited for others would keep them waiting; at the very end of the process no other thread runs.
    if number < 2 or size <= step or _here.serves or sys.is_finalizing():
        work(slice(0, size))
        return
    job = _Job(work, _parts(size, number, each, step))
    _workers().give(job, number - 1)
    raised = job.finish()
    if raised:
        try:
            raise min(raised, key=itemgetter(0))[1]
        finally:
            del raised  # they lead by their traceback to this frame, which is a cycle


def over_lines(shape: Sequence[int], axis: int, work: Callable[[tuple[slice, ...]], object]) -> None:
    """Call `work` with indices of parts of an array's lines along an axis, at once where there are threads.

    Parameters
    ----------
    shape : sequence of int
        That of the array, with one dimension at least.
    axis : int
        From 0; no part divides it.
    work : callable
        As :func:`over` calls it.

    Examples
    --------
    >>> over_lines((3, 2), 0, print)
    (slice(None, None, None), slice(0, 2, None))
    """
    other = 0 if axis else 1
    if len(shape) < 2:
        work(())
        return
    every = (slice(None),) * other
    over(shape[other], lambda part: work((*every, part)), math.prod(shape) // max(shape[other], 1))


def _parts(size: int, number: int, each: int, step: int) -> list[slice]:
    """Return slices for so many threads, the last one first: the first one is the caller's."""
    steps, lead = size / step, _LEAD / (each * step)
    share = (steps - lead) / number
    ends = [0, *[round(lead + share * index) * step for index in range(1, number)], size]
    return [slice(begin, end) for begin, end in pairwise(ends) if begin < end][::-1]


def blocks(part: slice, step: int) -> Iterator[slice]:
    """Yield slices of `step` indices of a slice; the last one may have fewer.

    Examples
    --------
    >>> list(blocks(slice(2, 7), 3))
    [slice(2, 5, None), slice(5, 7, None)]
    """
    for begin in range(part.start, part.stop, step):
        yield slice(begin, min(begin + step, part.stop))


def count() -> int:
    """Return how many threads share the work."""
    return _Threads.count


def set_count(number: int) -> None:
    """Set how many threads share the work."""
    with _Threads.lock:
        _Threads.count = number
        sharing[:] = [number] if number > 1 else []
        workers, _Threads.workers = _Threads.workers, None
    if workers is not None:
        workers.end()


def _workers() -> _Workers:
    """Return the threads that share the work with the one that asks, which are started when they are first needed."""
    with _Threads.lock:
        if _Threads.workers is None:
            _Threads.workers = _Workers(_Threads.count - 1)
        return _Threads.workers


def _after_fork() -> None:
    """Forget the threads: they are not in the process that a fork makes."""
    _Threads.workers, _Threads.lock = None, threading.Lock()


def _at_first() -> int:
    """Return the default number of threads: that of BLAS libraries."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


set_count(_at_first())

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
