"""The kernel of :mod:`.device_statistics`, in Triton's Python: imported where there is Triton and a GPU."""

from __future__ import annotations

import triton
import triton.language as tl

from ....records import moments

__all__ = ["measure"]

_BINS, _SUMS, _LOWEST = tl.constexpr(moments.BINS), tl.constexpr(moments.SUMS), tl.constexpr(moments.LOWEST)
_OUTSIDE, _ZERO = tl.constexpr(moments.OUTSIDE), tl.constexpr(moments.ZERO)
_INFINITE, _NAN = tl.constexpr(moments.INFINITE), tl.constexpr(moments.NAN)
_SHOWN = tl.constexpr(8)  # the power of two from `moments.FIRST` on


# Triton would compile a kernel anew for sizes that are 1, and for those that 16 divides; it takes annotations as code.
@triton.jit(do_not_specialize=["row", "size", "shown", "blocks"])
def measure(flat, first, bins, sums, row, size, shown, blocks, BLOCK: tl.constexpr):
    """Fill in the rows from `row` on, each with what as many blocks of elements come to; see :mod:`.moments`."""
    part = tl.program_id(0).to(tl.int64)
    begin = part * blocks * BLOCK
    end = tl.minimum(begin + blocks * BLOCK, size)
    origin = tl.load(first).to(tl.float64)
    shift = tl.where(tl.abs(origin) < float("inf"), origin, 0.0)
    total = tl.zeros([BLOCK], tl.float64)
    spread = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    low = tl.full([BLOCK], float("inf"), tl.float64)
    high = tl.full([BLOCK], float("-inf"), tl.float64)
    counts = tl.zeros([_BINS], tl.int32)
    for at in range(begin, end, BLOCK):
        places = at + tl.arange(0, BLOCK)
        inside = places < end
        # As a float64 each number is normal: its bits hold its exponent.
        values = tl.load(flat + places, mask=inside, other=0.0).to(tl.float64)
        exponents = ((values.to(tl.int64, bitcast=True) >> 52) & 2047).to(tl.int32) - 1023
        finite = exponents < 1024
        bin_of = tl.where(finite, exponents + _LOWEST, tl.where(values != values, _NAN, _INFINITE))
        bin_of = tl.where(values == 0, _ZERO, bin_of)
        counts += tl.histogram(tl.where(inside, bin_of, _OUTSIDE), _BINS)
        counted = inside & finite
        apart = tl.where(counted, values - shift, 0.0)
        known = tl.where(counted, values, 0.0)
        total += apart
        spread += apart * apart
        squares += known * known
        low = tl.minimum(low, tl.where(counted, values, float("inf")))
        high = tl.maximum(high, tl.where(counted, values, float("-inf")))
    tl.store(bins + (row + part) * (_BINS + 2 * _SUMS) + tl.arange(0, _BINS), counts)
    to = sums + (row + part) * (_BINS // 2 + _SUMS)
    tl.store(to, tl.sum(total))
    tl.store(to + 1, tl.sum(spread))
    tl.store(to + 2, tl.sum(squares))
    tl.store(to + 3, tl.min(low))
    tl.store(to + 4, tl.max(high))
    tl.store(to + 5, shift)
    offsets = tl.arange(0, _SHOWN)
    tl.store(
        to + 6 + offsets, tl.load(first + offsets, mask=offsets < shown, other=0.0).to(tl.float64), mask=offsets < shown
    )
