"""Sums at indices: the derivative of rows that were chosen by index."""

from __future__ import annotations

from numba import types

from .jit import IN1, IN2, OUT1, OUT2, i8, kernel


@kernel(OUT2, types.Array(i8, 1, "C", readonly=True), IN2)
def add_rows(total, places, rows):
    """Add each row to the one that its place names; one after the other, so that sums are always the same."""
    for i in range(len(rows)):
        to, row = total[places[i]], rows[i]
        for j in range(row.size):
            to[j] += row[j]


@kernel(OUT1, types.Array(i8, 1, "C", readonly=True), IN1)
def add_elements(total, places, values):
    """Add each number to the one that its place names, likewise."""
    for i in range(len(values)):
        total[places[i]] += values[i]
