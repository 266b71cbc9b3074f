"""Data sets: samples by index or one after the other, and data sets made of others."""

from __future__ import annotations

import bisect
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ...runtime.ops.random.random import Generator, default_generator, randperm
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: a subclass defines ``__getitem__``, and ``__len__`` for the samplers.

    Where it defines ``__getitems__(indices)`` too, a loader asks for a whole batch at once.

    See Also
    --------
    TensorDataset, IterableDataset

    Examples
    --------
    >>> import gradscope as gs
    >>> class Squares(gs.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> list(gs.utils.data.DataLoader(Squares(), batch_size=None))
    [0, 1, 4]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], ABC):
    """Samples one after the other: a subclass defines ``__iter__``.

    With workers each of them has the whole data set: :func:`get_worker_info` says which part is whose.

    See Also
    --------
    Dataset, get_worker_info

    Examples
    --------
    >>> import gradscope as gs
    >>> class Countdown(gs.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> list(gs.utils.data.DataLoader(Countdown(), batch_size=3))
    [tensor([3, 2, 1])]
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors indexed together along their first dimension.

    Parameters
    ----------
    *tensors : Tensor
        Of one first size.

    See Also
    --------
    StackDataset, DataLoader

    Examples
    --------
    >>> import gradscope as gs
    >>> rows = gs.utils.data.TensorDataset(gs.arange(3), gs.tensor([0.0, 0.1, 0.2]))
    >>> rows[1]
    (tensor(1), tensor(0.1000))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            sizes = [tensor.size(0) for tensor in tensors]
            raise AssertionError(f"Size mismatch between tensors\nTheir first sizes are {sizes}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Data sets indexed together: tuples of their samples, or dicts where they are given by name.

    Parameters
    ----------
    *args, **kwargs : Dataset
        One or the other, all of one length.

    See Also
    --------
    TensorDataset, ConcatDataset

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.utils.data.StackDataset([1, 2], [3, 4])[1]
    (2, 4)
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [len(part) for part in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError(f"Size mismatch between datasets\nTheir lengths are {lengths}.")
        self._length = lengths[0]

    def _sample(self, values: Iterable[Any]) -> Any:
        return tuple(values) if isinstance(self.datasets, tuple) else dict(zip(self.datasets, values, strict=True))

    def _parts(self) -> Iterable[Any]:
        return self.datasets if isinstance(self.datasets, tuple) else self.datasets.values()

    def __getitem__(self, index: Any) -> Any:
        return self._sample(part[index] for part in self._parts())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return the samples of several indices."""
        columns = [_several(part, indices) for part in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}\n"
                    "Its __getitems__() returns one sample an index."
                )
        return [self._sample(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _several(dataset: Any, indices: list[Any]) -> Any:
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


class ConcatDataset(Dataset[T_co]):
    """Data sets one after the other, by index.

    See Also
    --------
    StackDataset, Subset

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.utils.data.ConcatDataset([[1, 2], [3]])[2]
    3
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset\nUse ChainDataset.")
        self.cumulative_sizes = list(itertools.accumulate(len(part) for part in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError(
                    "absolute value of index should not exceed dataset length\n"
                    f"The index is {index}, the length {len(self)}."
                )
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"list index out of range\nThe index is {index}, the length {len(self)}.")
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Iterable data sets one after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset
        Each is read to its end before the next.

    See Also
    --------
    ConcatDataset : of data sets with an index.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.data import ChainDataset, IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset\nUse ConcatDataset.")
            yield part

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts())


class Subset(Dataset[T_co]):
    """Some samples of a data set.

    See Also
    --------
    random_split, SubsetRandomSampler

    Examples
    --------
    >>> import gradscope as gs
    >>> list(gs.utils.data.Subset([10, 20, 30], [2, 0]))
    [30, 10]
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[one] for one in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> Any:
        """Return the samples of several indices."""
        return _several(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator | None = default_generator
) -> list[Subset[Any]]:
    """Split a data set at random.

    Parameters
    ----------
    lengths : sequence of int or float
        How many samples each part gets; or fractions whose sum is 1, what is left over going to the parts in turn.

    Raises
    ------
    ValueError
        If the lengths do not add up to the data set's.

    See Also
    --------
    Subset

    Examples
    --------
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    counts = list(lengths)
    if math.isclose(sum(counts), 1) and sum(counts) <= 1:
        counts = _counts(len(dataset), counts)
    if sum(counts) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset!\n"
            f"It is {sum(counts)}, the data set has {len(dataset)} samples."
        )
    order = randperm(len(dataset), generator=generator).tolist()
    ends = list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def _counts(total: int, fractions: list[float]) -> list[float]:
    """Return the whole numbers that fractions of `total` come to."""
    for position, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1\nIt is {fraction}.")
    counts = [math.floor(total * fraction) for fraction in fractions]
    for extra in range(total - sum(counts)):
        counts[extra % len(counts)] += 1
    for position, count in enumerate(counts):
        if count == 0:
            warn(f"Length of split at index {position} is 0. This might result in an empty dataset.")
    return list(counts)
