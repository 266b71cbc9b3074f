"""Many samples as one batch, and one sample as tensors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

from ...runtime.memory import dtype as dtypes
from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.creation import as_tensor, tensor
from ...runtime.tensor.tensor import Tensor

__all__ = ["default_collate", "default_convert"]

_stack = PUBLIC["stack"]


def default_convert(data: Any) -> Any:
    """Return NumPy arrays and numbers inside `data` as tensors; all else stays as it is.

    See Also
    --------
    default_collate

    Examples
    --------
    >>> import numpy
    >>> default_convert({"x": numpy.ones(2), "name": "a"})
    {'x': tensor([1., 1.], dtype=gradscope.float64), 'name': 'a'}
    """
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        return as_tensor(data) if _is_numeric(data) else data
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Any) -> Any:
    """Return a list of samples as one batch: tensors stacked, numbers as tensors, containers entry by entry.

    Parameters
    ----------
    batch : list
        Tensors, NumPy arrays, numbers, strings, and mappings, sequences and named tuples of them.

    Raises
    ------
    TypeError
        If the samples are something else.
    RuntimeError
        If sequences, or tensors, differ in size.

    See Also
    --------
    default_convert

    Examples
    --------
    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(list(batch), 0)
    if isinstance(first, (numpy.ndarray, numpy.generic)):
        return _collated_arrays(batch, first)
    if isinstance(first, float):
        return tensor(batch, dtype=dtypes.float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _mapping_like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        sizes = {len(sample) for sample in batch}
        if len(sizes) > 1:
            raise RuntimeError(
                "each element in list of batch should be of equal size\n"
                f"There are sizes {sorted(sizes)}: pad them, or pass a collate_fn."
            )
        return _sequence_like(first, [default_collate(column) for column in zip(*batch, strict=True)])
    raise _not_collated(type(first))


def _collated_arrays(batch: Any, first: Any) -> Tensor:
    if not _is_numeric(first):
        raise _not_collated(first.dtype)
    if first.ndim:
        return _stack([as_tensor(array) for array in batch], 0)
    return as_tensor(numpy.array(batch))


def _is_numeric(data: Any) -> bool:
    return data.dtype.kind in "biufc"


def _mapping_like(original: Any, entries: dict[Any, Any]) -> Any:
    """Return `entries` as a mapping of the type of `original`; as a dict where it cannot be made so."""
    try:
        if isinstance(original, MutableMapping):
            # A copy keeps what else the mapping knows, such as a default factory.
            result = copy.copy(original)
            result.update(entries)
            return result
        return type(original)(entries)
    except TypeError:
        return entries


def _sequence_like(original: Any, values: list[Any]) -> Any:
    """Return `values` as a sequence of the type of `original`; as a list where it is a tuple or cannot be made so."""
    if isinstance(original, tuple):
        return type(original)(*values) if hasattr(original, "_fields") else values
    try:
        if isinstance(original, MutableSequence):
            result = copy.copy(original)
            for position, value in enumerate(values):
                result[position] = value
            return result
        return type(original)(values)
    except TypeError:
        return values


def _not_collated(kind: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}\n"
        "Pass a collate_fn to the DataLoader."
    )
