"""The body of a loader's worker process, and how samples are fetched there and in the loader's own process."""

from __future__ import annotations

import functools
import itertools
import queue
import random
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy

from ...runtime.ops.random.random import manual_seed
from ...runtime.tensor.tensor import Tensor
from .collation import default_collate
from .dataset import TensorDataset

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Failure", "Fetching", "WorkerInfo", "get_worker_info", "work"]

DATA, FAILED, END = "data", "failed", "end"


class WorkerInfo:
    """The number, seed and data set of a worker process.

    Attributes
    ----------
    id : int
        From 0 on.
    seed : int
        What its random numbers started from: another one in each worker and for each iterator.
    dataset : Dataset
        The worker's copy.

    See Also
    --------
    get_worker_info : returns that of the worker in which it is called, and None outside of one.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.data import DataLoader, IterableDataset, get_worker_info
    >>> class Part(IterableDataset):
    ...     def __iter__(self):
    ...         info = get_worker_info()
    ...         return iter(range(3)) if info is None else iter(range(info.id, 3, info.num_workers))
    >>> list(DataLoader(Part(), batch_size=None))
    [0, 1, 2]
    """

    __slots__ = ("dataset", "id", "num_workers", "seed")

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


_here: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what the calling worker process knows of itself; None in the process of the loader.

    See Also
    --------
    IterableDataset

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.utils.data.get_worker_info() is None
    True
    """
    return _here


class Fetching(NamedTuple):
    """How the samples of a batch are fetched and put together."""

    iterable: bool
    batched: bool
    drop_last: bool
    collate: Callable[[Any], Any]

    def of(self, dataset: Any) -> Callable[[Any], Any]:
        """Return a function from the indices of a batch to the batch; StopIteration where there are no more."""
        if self.iterable:
            return self._next_of(iter(dataset))
        if not self.batched:
            return lambda index: self.collate(dataset[index])
        several = getattr(dataset, "__getitems__", None)
        if several:
            return lambda indices: self.collate(several(indices))

        def fetch(indices: Any) -> Any:
            return self.collate([dataset[index] for index in indices])

        if type(dataset) is TensorDataset and self.collate is default_collate:
            return functools.partial(_rows, dataset.tensors, fetch)
        return fetch

    def _next_of(self, samples: Iterator[Any]) -> Callable[[Any], Any]:
        if not self.batched:
            return lambda index: self.collate(next(samples))

        def fetch(indices: Any) -> Any:
            batch = list(itertools.islice(samples, len(indices)))
            if not batch or (self.drop_last and len(batch) < len(indices)):
                raise StopIteration
            return self.collate(batch)

        return fetch


def _rows(tensors: tuple[Tensor, ...], fetch: Callable[[Any], Any], indices: Any) -> Any:
    """Return rows of tensors taken all at once, which is what stacking them one by one comes to."""
    wanted = list(indices)
    plain = wanted and all(type(index) is int for index in wanted)
    if not plain or any(tensor.requires_grad for tensor in tensors):
        return fetch(wanted)
    return [tensor[wanted] for tensor in tensors]


class _Lines(str):
    """A text that a KeyError, which shows its argument's repr, shows as it is."""

    __slots__ = ()
    __repr__ = str.__str__


class Failure:
    """An exception of a worker, as its class and its traceback: these go through a pipe."""

    def __init__(self, error: BaseException, worker: int) -> None:
        self.kind: type[BaseException] = type(error)
        self.text = (
            f"Caught {type(error).__name__} in DataLoader worker process {worker}.\n"
            f"Original {''.join(traceback.format_exception(error))}"
        )

    def plain(self) -> Failure:
        """Return the failure as a RuntimeError, for an exception whose class cannot be pickled."""
        self.kind = RuntimeError
        return self

    def reraise(self) -> NoReturn:
        """Raise an exception of the same class, with the worker's traceback as its text."""
        try:
            error = self.kind(_Lines(self.text) if issubclass(self.kind, KeyError) else self.text)
        except Exception:
            # The class takes other arguments.
            raise RuntimeError(self.text) from None
        raise error


def work(
    tasks: Connection,
    results: Connection,
    info: tuple[int, int, int],
    dataset: Any,
    fetching: Fetching,
    init: Callable[[int], Any] | None,
) -> None:
    """Run a worker process until the loader closes its end of `tasks`, or has died.

    Parameters
    ----------
    tasks, results : Connection
        Comes: ``(pass, number, indices)``. Goes: ``(pass, number, kind, batch)``.
    info : tuple of int
        The worker's number, how many there are, its seed.
    init : callable, optional
        The user's ``worker_init_fn``.
    """
    global _here
    # Ctrl-C is for the loader's process, which ends its workers; a handler that the script has set must not run here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    number, _, seed = info
    random.seed(seed)
    numpy.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002 - for data sets that draw from it
    manual_seed(seed)
    _here = WorkerInfo(*info, dataset)
    broken: Failure | None = None
    try:
        if init is not None:
            init(number)
    except Exception as error:
        broken = Failure(error, number)
    server = _BatchServer(number, dataset, fetching, broken)
    outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_send, args=(results, outbox), name="gradscope results", daemon=True).start()
    try:
        while True:
            answer = server.answer(*tasks.recv())
            if answer is not None:
                outbox.put(answer)
    except (EOFError, OSError):
        return


def _send(results: Connection, outbox: queue.SimpleQueue[Any]) -> None:
    """Send what has been fetched, while the worker fetches on."""
    try:
        while True:
            results.send_bytes(outbox.get())
    except OSError:
        # The loader has closed its end.
        return


class _BatchServer:
    """Answers a worker's tasks with pickled batches."""

    def __init__(self, worker: int, dataset: Any, fetching: Fetching, broken: Failure | None) -> None:
        self._worker = worker
        self._dataset = dataset
        self._fetching = fetching
        self._broken = broken
        self._round: int | None = None
        self._fetch: Callable[[Any], Any] | None = None
        self._ended = False

    def answer(self, round: int, number: int, indices: Any) -> Any:
        """Return the message that answers a task; None once an iterable data set has ended."""
        # multiprocessing has loaded by now: this runs in a worker.
        from multiprocessing.reduction import ForkingPickler

        if round != self._round:
            self._round, self._fetch, self._ended = round, None, False
        if self._ended:
            return None
        kind, payload = self._outcome(indices)
        try:
            return ForkingPickler.dumps((round, number, kind, payload))
        except Exception as error:
            failure = payload.plain() if kind == FAILED else Failure(error, self._worker)
        try:
            return ForkingPickler.dumps((round, number, FAILED, failure))
        except Exception:
            return ForkingPickler.dumps((round, number, FAILED, failure.plain()))

    def _outcome(self, indices: Any) -> tuple[str, Any]:
        if self._broken is not None:
            # The failure is told once; afterwards the worker does what it can, as a loader without workers would.
            failure, self._broken = self._broken, None
            return FAILED, failure
        try:
            if self._fetch is None:
                self._fetch = self._fetching.of(self._dataset)
            return DATA, self._fetch(indices)
        except StopIteration as error:
            if self._fetching.iterable:
                self._ended = True
                return END, None
            return FAILED, Failure(error, self._worker)
        except Exception as error:
            return FAILED, Failure(error, self._worker)
