"""Parts of large arrays at a time on as many threads as were asked for; NumPy and compiled kernels release the lock.

- :mod:`~.spin_waits`: what one thread waits for of another, awake at first
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from operator import attrgetter, itemgetter
from queue import SimpleQueue

from .spin_waits import Signal, waits_awake

__all__ = ["WORTH", "blocks", "count", "over", "over_lines", "set_count", "sharing"]

WORTH = 1 << 18
"""How many elements a thread is given at least: to hand them over takes some 20 microseconds."""

_WORTH_QUICK = {True: 2 * WORTH, False: 4 * WORTH}
"""The same of a function that takes little longer than to read and write them, by whether threads wait awake."""

sharing: list[int] = []
"""Holds the number of threads where there are several: whether it is empty takes less to ask than a function."""

_LEAD = 3 << 15
"""How many elements more the caller computes where a thread has to be woken, which takes some 20 microseconds."""

_LEAD_OF_AWAKE = 1 << 15
"""The same where all are awake."""

_UNLOCKED_AFTER = 4.0
"""Microseconds after which who has sent a signal computes or waits, and has let go of the interpreter's lock: a thread
that asks for the lock before sleeps until it is woken."""

# What a thread does: the first ones are told of a job first.
_AWAKE, _ASLEEP, _BUSY = range(3)

_Raised = tuple[int, BaseException]
"""Where a slice began, and what was raised."""


class _Job:
    """Parts of some work. Each thread takes the next one when it has done one: what comes late finds less to do."""

    def __init__(
        self, work: Callable[[slice], object], parts: list[slice], left: Signal, helpers: Sequence[_Worker] = ()
    ) -> None:
        self._work: Callable[[slice], object] | None = work
        self._parts = parts  # the next one is the last
        self._context: Context | None = copy_context()
        self._joined: list[None] = []
        self._left: list[_Raised | None] = []
        self._news: SimpleQueue[None] = SimpleQueue()
        self._has_left = left
        self._helpers = helpers

    def help(self) -> None:
        """Take parts, on a thread that has been told of them."""
        self._joined.append(None)  # before it takes one: the caller looks when there are none
        context = self._context
        self._left.append(None if context is None else context.copy().run(self._take))
        self._news.put(None)
        self._has_left.send()

    def finish(self) -> list[_Raised]:
        """Tell helpers and take parts; return what was raised, by a signal too, when no thread writes any more.

        A signal may raise just when the queue has given something out, which is lost; what is in the list is not. It
        may raise just when a helper has been told, too.
        """
        raised: list[_Raised | None] = []
        while True:
            try:
                for helper in self._helpers:
                    helper.give(self)
                for helper in self._helpers:  # just before this thread computes and lets go of the interpreter's lock
                    helper.told.send()
                raised.append(self._take())
                while self._others_work():
                    self._news.get()
                break
            except BaseException as error:  # Ctrl+C, or whatever the program has a signal raise
                self._parts.clear()
                self._helpers = ()
                raised.append((-1, error))
        raised += self._left
        self._work = self._context = None  # for a thread that comes later, which would keep arrays alive
        self._helpers = ()  # one that has ended has the job for ever
        self._left.clear()
        try:
            return [what for what in raised if what is not None]
        finally:
            del raised  # what a signal raised leads to this frame, which is a cycle

    def _others_work(self) -> bool:
        """Whether threads have not left yet, after some time in which this one waits awake."""
        seen = self._has_left.count
        if len(self._left) < len(self._joined):
            self._has_left.comes_after(seen, _UNLOCKED_AFTER)
        return len(self._left) < len(self._joined)

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


class _Worker:
    """A thread that waits for jobs, awake for a while. It ends with the process, and while that ends it still works.

    Attributes
    ----------
    state : int
        What the thread does.
    told : Signal
        Sent when there is a job: it ends the thread's waiting where that is awake.
    """

    def __init__(self, name: str) -> None:
        self.state = _ASLEEP
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.told = Signal()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread.

        Raises
        ------
        RuntimeError
            At the end of the main thread, and where the system has no more.
        """
        self._thread.start()

    def give(self, job: _Job | None) -> None:
        """Give the thread a job, which it begins when it wakes; or say that there will be none."""
        self._jobs.put(job)

    def _serve(self) -> None:
        _here.serves = True
        while (job := self._next()) is not None:
            job.help()
            del job  # while it waits it keeps nothing alive

    def _next(self) -> _Job | None:
        """Return the next job: of one that is there already, or comes at once, the thread hears awake."""
        seen = self.told.count
        if self._jobs.empty():
            self.state = _AWAKE
            if not self.told.comes_after(seen, _UNLOCKED_AFTER):
                self.state = _ASLEEP
        job = self._jobs.get()
        self.state = _BUSY
        return job


class _Workers:
    """The threads that help who asks."""

    def __init__(self, number: int) -> None:
        self._workers: list[_Worker] = []
        self._left = Signal()
        for index in range(number):
            worker = _Worker(f"gradscope-kernels-{index}")
            try:
                worker.start()
            except RuntimeError:
                break
            self._workers.append(worker)

    def job(self, work: Callable[[slice], object], size: int, number: int, each: int, step: int) -> _Job:
        """Return a job for so many threads and whoever finishes it, who does all of it where there are none."""
        helpers = self._workers
        if number < len(helpers):
            helpers = sorted(helpers, key=attrgetter("state"))[:number]
        lead = _LEAD_OF_AWAKE if all(worker.state == _AWAKE for worker in helpers) else _LEAD
        return _Job(work, _parts(size, number + 1, each, step, lead), self._left, helpers)

    def end(self) -> None:
        """Have the threads end when they have done what they were given."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.give(None)
            worker.told.send()


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
    number = min(_Threads.count, size * each // WORTH)
    if quick and number > 1:
        number = min(number, size * each // _WORTH_QUICK[waits_awake()])
    # A worker that waited for others would keep them waiting; at the very end of the process no other thread runs.
    if number < 2 or size <= step or _here.serves or sys.is_finalizing():
        work(slice(0, size))
        return
    raised = _workers().job(work, size, number - 1, each, step).finish()
    if raised:
        try:
            raise min(raised, key=itemgetter(0))[1]
        finally:
            del raised  # they lead by their traceback to this frame, which is a cycle


def over_lines(
    shape: Sequence[int], axis: int, work: Callable[[tuple[slice, ...]], object], *, quick: bool = False
) -> None:
    """Call `work` with indices of parts of an array's lines along an axis, at once where there are threads.

    Parameters
    ----------
    shape : sequence of int
        That of the array, with one dimension at least.
    axis : int
        From 0; no part divides it.
    work, quick
        As of :func:`over`.

    Examples
    --------
    >>> over_lines((3, 2), 0, print)
    (slice(None, None, None), slice(0, 2, None))
    """
    others = [other for other in range(len(shape)) if other != axis]
    if not others:
        work(())
        return
    divided = next((other for other in others if shape[other] >= _Threads.count), others[0])
    every = (slice(None),) * divided
    each = math.prod(shape) // max(shape[divided], 1)
    over(shape[divided], lambda part: work((*every, part)), each, quick=quick)


def _parts(size: int, number: int, each: int, step: int, lead: int) -> list[slice]:
    """Return slices for so many threads, the last one first: the first one is the caller's, by `lead` elements more."""
    steps, first = size / step, lead / (each * step)
    share = (steps - first) / number
    begins = [0, *[round(first + share * index) * step for index in range(1, number)]]
    return [slice(begin, end) for begin, end in zip(begins, [*begins[1:], size]) if begin < end][::-1]


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
