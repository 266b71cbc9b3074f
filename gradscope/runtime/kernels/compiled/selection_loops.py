"""Elements of one array or of another, as a mask says: bits of single precision, or of 32-bit integers."""

from __future__ import annotations

from numba import types

from .jit import kernel

__all__ = ["select", "select_beside_number", "select_number"]

i4 = types.int32
MASK = types.Array(types.int8, 1, "C", readonly=True)
IN = types.Array(i4, 1, "C", readonly=True)
OUT = types.Array(i4, 1, "C")


@kernel(MASK, IN, IN, OUT)
def select(mask, chosen, other, result):
    for i in range(mask.size):
        here, there = chosen[i], other[i]  # both are read, so that nothing depends on a guess
        result[i] = here if mask[i] else there


@kernel(MASK, IN, i4, OUT)
def select_beside_number(mask, chosen, other, result):
    for i in range(mask.size):
        result[i] = chosen[i] if mask[i] else other


@kernel(MASK, i4, IN, OUT)
def select_number(mask, chosen, other, result):
    for i in range(mask.size):
        result[i] = chosen if mask[i] else other[i]
