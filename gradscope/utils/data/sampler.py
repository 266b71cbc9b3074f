"""Samplers: in which order a loader takes the samples of a data set."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ...runtime.memory import dtype as dtypes
from ...runtime.ops.random.random import Generator, default_generator, multinomial, randint, randperm
from ...runtime.tensor.creation import as_tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)

_AT_ONCE = 1024


class Sampler(Generic[T_co]):
    """Base of all samplers: a subclass defines ``__iter__``, which yields indices, and usually ``__len__``.

    See Also
    --------
    RandomSampler, BatchSampler

    Examples
    --------
    >>> import gradscope as gs
    >>> class Backwards(gs.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(gs.utils.data.DataLoader([5, 6, 7], sampler=Backwards(), batch_size=3))
    [tensor([7, 6, 5])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


class SequentialSampler(Sampler[int]):
    """All indices in order.

    See Also
    --------
    RandomSampler

    Examples
    --------
    >>> import gradscope as gs
    >>> list(gs.utils.data.SequentialSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Parameters
    ----------
    replacement : bool
        Whether an index may come again before all others have come.
    num_samples : int, optional
        How many are drawn: all, unless said.
    generator : Generator, optional
        Without one, each pass is seeded by the default generator.

    See Also
    --------
    SequentialSampler, WeightedRandomSampler

    Examples
    --------
    >>> sorted(RandomSampler(range(5)))
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices a pass draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or Generator().manual_seed(draw_seed())
        if self.replacement:
            return self._drawn(generator)
        return itertools.islice(self._shuffled(generator), self.num_samples)

    def _drawn(self, generator: Generator) -> Iterator[int]:
        count = len(self.data_source)
        for start in range(0, self.num_samples, _AT_ONCE):
            size = min(_AT_ONCE, self.num_samples - start)
            yield from randint(0, count, (size,), generator=generator).tolist()

    def _shuffled(self, generator: Generator) -> Iterator[int]:
        while True:
            yield from randperm(len(self.data_source), generator=generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    See Also
    --------
    Subset, RandomSampler

    Examples
    --------
    >>> import gradscope as gs
    >>> sorted(gs.utils.data.SubsetRandomSampler([3, 5, 7]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to weights.

    Parameters
    ----------
    weights : sequence of float
        Of each index; they need not add up to 1.
    replacement : bool
        Whether an index may come again.

    See Also
    --------
    RandomSampler

    Examples
    --------
    >>> import gradscope as gs
    >>> len(list(gs.utils.data.WeightedRandomSampler([0.1, 0.9], num_samples=5)))
    5
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if isinstance(num_samples, bool):
            raise _not_positive("num_samples", num_samples)
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of the indices that another sampler yields.

    Parameters
    ----------
    drop_last : bool
        Whether a last list that would be shorter is left out.

    See Also
    --------
    RandomSampler, DataLoader

    Examples
    --------
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if isinstance(batch_size, bool):
            raise _not_positive("batch_size", batch_size)
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler: Iterable[int] = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def draw_seed(generator: Generator | None = None) -> int:
    """Return a seed drawn from `generator`, or from the default one."""
    return int((generator or default_generator).draw("integers", 0, (1 << 63) - 1))


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise _not_positive(name, value)


def _not_positive(name: str, value: Any) -> ValueError:
    return ValueError(f"{name} should be a positive integer value, but got {name}={value}")
