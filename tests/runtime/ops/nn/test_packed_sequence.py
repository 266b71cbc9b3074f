"""Lengths of sequences as batch sizes and as blocks: each says the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.ops.nn.packed_sequence import batch_sizes_of, blocks_of


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_blocks_and_batch_sizes(lengths: list[int]) -> None:
    lengths.sort(reverse=True)
    sizes = batch_sizes_of(lengths)
    assert sizes == [sum(n > time for n in lengths) for time in range(lengths[0])]
    blocks = list(blocks_of(lengths))
    assert [count for start, end, count in blocks for _ in range(start, end)] == sizes
    assert len(blocks) == len(set(lengths))
