"""Packed sequences: sequences of several lengths, time after time, without the padding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from ..declaration.annotations import Array, Namespace, Sizes
from ..declaration.references import adjoint
from ..declaration.registry import operator

__all__ = ["batch_sizes_of"]


def batch_sizes_of(lengths: list[int]) -> list[int]:
    """Return, for lengths in decreasing order, how many sequences reach each time."""
    sizes, count = [], len(lengths)
    for time in range(lengths[0]):
        while lengths[count - 1] <= time:
            count -= 1
        sizes.append(count)
    return sizes


def blocks_of(lengths: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, count) for each stretch of time that the same sequences reach."""
    start = 0
    for count in range(len(lengths), 0, -1):
        end = lengths[count - 1]
        if end > start:
            yield start, end, count
            start = end


def _pack(xp: Namespace, input: Array, lengths: list[int], batch_first: bool) -> Array:
    steps = input.swapaxes(0, 1) if batch_first else input
    rows = xp.empty((sum(lengths), *input.shape[2:]), dtype=input.dtype)
    done = 0
    for start, end, count in blocks_of(lengths):
        size = (end - start) * count
        rows[done : done + size].reshape(end - start, count, *input.shape[2:])[...] = steps[start:end, :count]
        done += size
    return rows


def _pack_backward(xp: Namespace, self: Array, input_size: Sizes, lengths: list[int], batch_first: bool) -> Array:
    whole = xp.zeros(input_size, dtype=self.dtype)
    steps = whole.swapaxes(0, 1) if batch_first else whole
    done = 0
    for start, end, count in blocks_of(lengths):
        size = (end - start) * count
        steps[start:end, :count] = self[done : done + size].reshape(end - start, count, *self.shape[1:])
        done += size
    return whole


def _packed_reference(input: Array, lengths: Array, batch_first: bool = False) -> Array:
    steps = input.swapaxes(0, 1) if batch_first else input
    sizes = [sum(length > step for length in lengths) for step in range(max(lengths))]
    return numpy.concatenate([steps[step, :size] for step, size in enumerate(sizes)])


operator(
    "pack_padded_sequence(Tensor input, int[] lengths, bool batch_first=False)",
    _pack,
    method=False,
    public_name=False,
    derivatives={
        "input": lambda g, input_shape, lengths, batch_first, F: F.pack_padded_sequence_backward(
            g, input_shape, lengths, batch_first
        )
    },
    doc="Return the elements of padded sequences, time after time.",
    samples=lambda make: [((make(3, 3, 2), [3, 2, 2]), {}), ((make(2, 4), [4, 1], True), {})],
    reference=_packed_reference,
)
operator(
    "pack_padded_sequence_backward(Tensor self, int[] input_size, int[] lengths, bool batch_first)",
    _pack_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, lengths, batch_first, F: F.pack_padded_sequence(g, lengths, batch_first)},
    doc="The adjoint of pack_padded_sequence.",
    samples=lambda make: [((make(7, 2), (3, 3, 2), [3, 2, 2], False), {}), ((make(5), (2, 4), [4, 1], True), {})],
    reference=lambda self, size, *rest: adjoint(lambda x: _packed_reference(x, *rest), size, self),
)
