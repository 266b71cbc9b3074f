"""Parts of large arrays at a time on as many threads as were asked for; NumPy and compiled kernels release the lock."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from operator import itemgetter
from queue import SimpleQueue

__all__ = ["WORTH", "blocks", "count", "over", "set_count", "sharing"]

WORTH = 1 << 18
"""How many elements a thread is given at least: to hand them over takes some 20 microseconds."""

sharing: list[int] = []
"""Holds the number of threads where there are several: whether it is empty takes less to ask than a function."""

_Outcome = tuple[int, BaseException | None]
"""Where a slice began, and what was raised."""


class _Outcomes:
    """What has come of parts that other threads work on."""

    def __init__(self) -> None:
        self._found: list[_Outcome] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    def put(self, outcome: _Outcome) -> None:
        """Add what has come of a part."""
        self._found.append(outcome)
        self._news.put(None)

    def wait(self, number: int) -> list[_Outcome]:
        """Return so many outcomes: when an error goes on from here, one of a signal too, no thread writes any more.

        A signal may raise just when the queue has given something out, which is lost; what is in the list is not.
        """
        interrupt: list[_Outcome] = []
        while True:
            try:
                while len(self._found) < number:
                    self._news.get()
                return interrupt + self._found
            except BaseException as error:  # Ctrl+C, or whatever the program has a signal raise
                interrupt = [(-1, error)]


_Task = tuple[Context, Callable[[slice], None], slice, _Outcomes]


class _Workers:
    """Threads that wait for parts of the work. They end with the process, and while that ends they still work."""

    def __init__(self, number: int) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
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
        while (task := self._tasks.get()) is not None:
            context, work, part, done = task
            done.put((part.start, context.run(_outcome, work, part)))
            del task, context, work, part, done  # while it waits it keeps no array alive

    def give(self, tasks: list[_Task]) -> bool:
        """Have tasks done; return False where no thread will."""
        with self._lock:  # a task behind the last word would wait for ever
            for task in tasks if self._number else ():
                self._tasks.put(task)
            return self._number > 0

    def end(self) -> None:
        """Have the threads end when they have done what they were given."""
        with self._lock:
            for _ in range(self._number):
                self._tasks.put(None)
            self._number = 0


class _Here(threading.local):
    serves = False  # whether this thread is one of those


class _Threads:
    count = 1
    workers: _Workers | None = None
    lock = threading.Lock()


_here = _Here()


def over(size: int, work: Callable[[slice], None], each: int = 1, step: int = 1) -> None:
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

    Raises
    ------
    Exception
        What `work` raised, of the first slice that did.
    """
    parts = min(_Threads.count, size * each // WORTH)
    # A worker that waited for others would keep them waiting; at the very end of the process no other thread runs.
    if parts < 2 or _here.serves or sys.is_finalizing():
        work(slice(0, size))
        return
    first, *rest = blocks(slice(0, size), -(-size // (parts * step)) * step)
    done = _Outcomes()
    if not rest or not _workers().give([(copy_context(), work, part, done) for part in rest]):
        for part in (first, *rest):
            work(part)
        return
    outcomes = [(first.start, _outcome(work, first)), *done.wait(len(rest))]
    errors = [error for _, error in sorted(outcomes, key=itemgetter(0)) if error is not None]
    if errors:
        try:
            raise errors[0]
        finally:
            del errors, outcomes  # they lead by its traceback to this frame, which is a cycle


def _outcome(work: Callable[[slice], None], part: slice) -> BaseException | None:
    """Work on a slice; return what was raised, which whoever waits for it raises."""
    try:
        work(part)
    except BaseException as error:
        return error
    return None


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
