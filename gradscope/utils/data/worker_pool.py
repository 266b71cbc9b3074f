"""The loader's side of its worker processes: tasks go out, batches come back, in order.

Each worker has a pipe for tasks and one for batches. It ends when the pipe of tasks is closed, so also when the process
of the loader dies.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from .worker import END, FAILED, Fetching, work

__all__ = ["Workers"]

_GRACE = 0.5  # seconds; a batch that a worker is still fetching is not needed
_SLICE = 0.1

_ends: weakref.WeakSet[Connection] = weakref.WeakSet()


def _close_ends() -> None:
    """In a forked child: leave the pipes to the parent alone, or a worker would not see them closed."""
    for end in list(_ends):
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_ends)


class _Worker(NamedTuple):
    process: Any
    tasks: Connection
    results: Connection


def _start(context: Any, *args: Any) -> _Worker:
    task_reader, tasks = context.Pipe(duplex=False)
    results, result_writer = context.Pipe(duplex=False)
    _ends.update((tasks, results))
    process = context.Process(target=work, args=(task_reader, result_writer, *args), daemon=True)
    process.start()
    task_reader.close()
    result_writer.close()
    return _Worker(process, tasks, results)


def _end(workers: list[_Worker], pid: int, grace: float = _GRACE) -> None:
    """End worker processes: those that have not ended by themselves after `grace` seconds are terminated."""
    if os.getpid() != pid:
        return
    for worker in workers:
        worker.tasks.close()
        worker.results.close()
    deadline = time.monotonic() + grace
    try:
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
    finally:
        # Workers are ended also where an exception from another thread, such as a debugger's, has come while waiting.
        for worker in workers:
            if worker.process.is_alive():
                worker.process.terminate()
    for worker in workers:
        worker.process.join(1.0)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
    workers.clear()


class Workers:
    """An iterator over batches that worker processes fetch.

    Parameters
    ----------
    count : int
        How many processes.
    prefetch : int
        How many batches each fetches ahead.
    timeout : float
        Seconds to wait for a batch; 0 for ever.
    init : callable, optional
        Called in each worker with its number.
    seed : int
        Worker `n` is seeded with ``seed + n``.
    in_order : bool
        Whether batches come in the order of their indices; otherwise as they are ready.
    persistent : bool
        Whether the processes stay for another pass.
    """

    def __init__(
        self,
        context: Any,
        dataset: Any,
        fetching: Fetching,
        *,
        count: int,
        prefetch: int,
        timeout: float,
        init: Any,
        seed: int,
        in_order: bool,
        persistent: bool,
    ) -> None:
        self._timeout = timeout
        self._in_order = in_order
        self._persistent = persistent
        self._ahead = max(prefetch, 1) * count
        self._round = 0
        self._workers: list[_Worker] = []
        # It runs when the iterator is dropped, and at the latest when the interpreter ends.
        self._finish = weakref.finalize(self, _end, self._workers, os.getpid())
        try:
            for number in range(count):
                facts = (number, count, (seed + number) & ((1 << 64) - 1))
                self._workers.append(
                    _start(context or multiprocessing.get_context(), facts, dataset, fetching, init),
                )
        except BaseException:
            self._finish()
            raise

    def start(self, indices: Iterator[Any]) -> None:
        """Begin a pass: `indices` yields those of each batch."""
        self._round += 1
        self._indices = indices
        self._number = 0
        self._turn = 0
        self._active = [True] * len(self._workers)
        self._owners: dict[int, int] = {}
        self._arrived: dict[int, Any] = {}
        for _ in range(self._ahead):
            self._send_task()

    def _send_task(self) -> None:
        if True not in self._active:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        while not self._active[self._turn]:
            self._turn = (self._turn + 1) % len(self._workers)
        try:
            self._workers[self._turn].tasks.send((self._round, self._number, indices))
        except BrokenPipeError:
            raise self._died() from None
        self._owners[self._number] = self._turn
        self._number += 1
        self._turn = (self._turn + 1) % len(self._workers)

    def __iter__(self) -> Workers:
        return self

    def __next__(self) -> Any:
        try:
            number, kind, payload = self._next_answer()
            del self._owners[number]
            self._send_task()
        except StopIteration:
            if not self._persistent:
                self._finish()
            raise
        except BaseException:
            # The wait was interrupted, or a worker has died: what is left in the pipes is of no use.
            self.shut_down(0.0)
            raise
        if kind == FAILED:
            payload.reraise()
        return payload

    @property
    def alive(self) -> bool:
        """Whether there are worker processes for another pass."""
        return bool(self._workers)

    def shut_down(self, grace: float = _GRACE) -> None:
        """End the worker processes."""
        if self._finish.detach() is not None:
            _end(self._workers, os.getpid(), grace)
        self._owners.clear()

    def _next_answer(self) -> tuple[int, str, Any]:
        while self._owners:
            first = next(iter(self._owners))
            if first in self._arrived:
                return first, *self._arrived.pop(first)
            if not self._active[self._owners[first]]:
                # The worker that was to fetch this batch had come to the end of its data before.
                del self._owners[first]
                continue
            number, kind, payload = self._receive()
            if kind == END:
                self._active[self._owners[number]] = False
                self._send_task()
            elif self._in_order and number != first:
                self._arrived[number] = (kind, payload)
            else:
                return number, kind, payload
        raise StopIteration

    def _receive(self) -> tuple[int, str, Any]:
        """Wait for an answer of any worker in this pass."""
        deadline = time.monotonic() + self._timeout
        pipes = [worker.results for worker in self._workers]
        sentinels = [worker.process.sentinel for worker in self._workers]
        while True:
            # The wait goes in slices, so that an exception raised in this thread from another one arrives.
            ready = wait([*pipes, *sentinels], _SLICE)
            for pipe in pipes:
                if pipe in ready:
                    try:
                        round, *answer = pipe.recv()
                    except (EOFError, ConnectionResetError):
                        raise self._died() from None
                    if round == self._round:
                        return tuple(answer)
                    break
            else:
                if ready:
                    raise self._died()
                if self._timeout and time.monotonic() > deadline:
                    raise RuntimeError(
                        f"DataLoader timed out after {self._timeout} seconds\n"
                        "A batch took longer: pass a larger timeout, or see what the data set waits for."
                    )

    def _died(self) -> RuntimeError:
        ended = []
        for worker in self._workers:
            worker.process.join(_SLICE)
            if not worker.process.is_alive():
                ended.append(f"{worker.process.pid} with exit code {worker.process.exitcode}")
        pids = ", ".join(text.partition(" ")[0] for text in ended)
        return RuntimeError(
            f"DataLoader worker (pid(s) {pids}) exited unexpectedly\n"
            f"It ended itself, or was killed ({'; '.join(ended)}): num_workers=0 shows where."
        )
