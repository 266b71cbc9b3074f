"""DataLoader: batches of a data set, fetched here or in worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...runtime.ops.random.random import Generator
from ...runtime.user_warnings import warn
from .collation import default_collate, default_convert
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .worker import Fetching

__all__ = ["DataLoader"]

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Endless(Sampler[None]):
    """Places for samples that come by themselves, from an iterable data set."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """Batches of a data set.

    Parameters
    ----------
    dataset : Dataset
        Anything with ``__getitem__`` and ``__len__``, or an IterableDataset.
    batch_size : int, optional
        None yields sample after sample.
    shuffle : bool, optional
        Whether each pass has a new random order.
    sampler : Sampler or iterable, optional
        The order, instead of `shuffle`.
    batch_sampler : Sampler or iterable, optional
        Yields the lists of indices of the batches.
    num_workers : int
        How many processes fetch; 0 for the loader's own.
    collate_fn : callable, optional
        Makes a batch of a list of samples; :func:`default_collate` unless given.
    pin_memory : bool
        Taken for PyTorch's sake: the memory of NumPy arrays is pageable.
    drop_last : bool
        Whether a last batch that would be smaller is left out.
    timeout : float
        Seconds to wait for a worker's batch; 0 for ever.
    worker_init_fn : callable, optional
        Called in each worker with its number, after it was seeded.
    multiprocessing_context : str or context, optional
        How processes are started: ``"fork"``, ``"spawn"``, ``"forkserver"``.
    generator : Generator, optional
        Of the random order and of the workers' seeds.
    prefetch_factor : int, optional
        How many batches each worker fetches ahead; 2 unless given.
    persistent_workers : bool
        Whether the workers stay from one pass to the next.
    pin_memory_device : str
        As `pin_memory`.
    in_order : bool
        Whether batches of workers come in order, or as they are ready.

    Raises
    ------
    ValueError
        If options contradict each other.

    See Also
    --------
    Dataset, Sampler, default_collate

    Examples
    --------
    >>> import gradscope as gs
    >>> loader = DataLoader(range(5), batch_size=2)
    >>> list(loader)
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = self._default_sampler(shuffle) if sampler is None else sampler
        if batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._workers: Any = None
        self._said_length: int | None = None
        self._ready = True

    def _default_sampler(self, shuffle: bool | None) -> Any:
        if self._iterable:
            return _Endless()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and getattr(self, "_ready", False):
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized\nMake a new one."
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How the worker processes are started."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        self._context = None if value is None else _context(value, self.num_workers)

    def __len__(self) -> int:
        """Return how many batches a pass has."""
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        self._said_length = length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        if self.persistent_workers and self._workers is not None and self._workers.alive:
            batches = self._workers
            batches.start(indices)
        else:
            # It is drawn without workers too, so that the random order is the same with any number of them.
            batches = self._batches(indices, draw_seed(self.generator))
        if self._iterable and self._said_length is not None:
            return _counted(batches, self, self._said_length)
        return batches

    def _batches(self, indices: Iterator[Any], seed: int) -> Any:
        fetching = Fetching(self._iterable, self.batch_sampler is not None, self.drop_last, self.collate_fn)
        if not self.num_workers:
            if self.timeout:
                raise AssertionError(
                    f"_SingleProcessDataLoaderIter requires timeout == 0\nIt is {self.timeout}, and nobody is waited "
                    "for: leave it out, or set num_workers."
                )
            return _fetched(fetching.of(self.dataset), indices)
        # multiprocessing loads with the first workers.
        from .worker_pool import Workers

        workers = Workers(
            self._context,
            self.dataset,
            fetching,
            count=self.num_workers,
            prefetch=self.prefetch_factor or 0,
            timeout=self.timeout,
            init=self.worker_init_fn,
            seed=seed,
            in_order=self.in_order,
            persistent=self.persistent_workers,
        )
        workers.start(indices)
        if self.persistent_workers:
            self._workers = workers
        return workers


class _fetched:  # noqa: N801 - an iterator, as map() is one
    """Batches fetched in the loader's process; an error of one batch leaves the others to come."""

    def __init__(self, fetch: Callable[[Any], Any], indices: Iterator[Any]) -> None:
        self._fetch = fetch
        self._indices = indices

    def __iter__(self) -> _fetched:
        return self

    def __next__(self) -> Any:
        return self._fetch(next(self._indices))


def _counted(batches: Iterable[Any], loader: DataLoader, length: int) -> Iterator[Any]:
    """Yield the batches; warn when there are more than an iterable data set said."""
    expected = len(loader)
    for count, batch in enumerate(batches, 1):
        if count > expected:
            warn(
                f"Length of IterableDataset {loader.dataset} was reported to be {length} (when accessing "
                f"len(dataloader)), but {count} samples have been fetched. "
                + (
                    "With workers, each of them yields the whole data set unless get_worker_info() is asked."
                    if loader.num_workers
                    else "Correct its __len__()."
                ),
            )
        yield batch


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    given = ("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)
    for name, value in given:
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}\n"
                "The data set itself has the order."
            )


def _check_batching(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _context(value: Any, num_workers: int) -> Any:
    """Return the multiprocessing context of a start method's name."""
    # It loads with the first workers.
    import multiprocessing
    from multiprocessing.context import BaseContext

    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(value, str):
        methods = multiprocessing.get_all_start_methods()
        if value not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={value!r}"
            )
        return multiprocessing.get_context(value)
    if not isinstance(value, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={value}"
        )
    return value
