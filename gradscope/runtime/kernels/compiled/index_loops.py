"""Rows and elements at indices, which exist: taken, written, and added where they may be named several times."""

from __future__ import annotations

import numpy
from numba import types

from .jit import IN1, IN2, OUT1, OUT2, i8, kernel

_PLACES_IN_ROWS = types.Array(i8, 2, "C", readonly=True)
_u8 = numpy.uint64  # of an unsigned index no loop asks whether it counts from the end


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


@kernel(IN2, _PLACES_IN_ROWS, OUT2)
def take_in_rows(rows, places, result):
    for i in range(len(places)):
        row = rows[i]
        for j in range(places.shape[1]):
            result[i, j] = row[_u8(places[i, j])]


@kernel(OUT2, _PLACES_IN_ROWS, IN2)
def put_in_rows(rows, places, values):
    """Write each number to its place, the last one of several last."""
    for i in range(len(places)):
        row = rows[i]
        for j in range(places.shape[1]):
            row[_u8(places[i, j])] = values[i, j]


@kernel(OUT2, _PLACES_IN_ROWS, IN2)
def add_in_rows(rows, places, values):
    for i in range(len(places)):
        row = rows[i]
        for j in range(places.shape[1]):
            row[_u8(places[i, j])] += values[i, j]


@kernel(OUT2, types.Array(i8, 1, "C", readonly=True), IN2)
def add_columns(rows, places, columns):
    """Add each column to the one that its place names, one after the other."""
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(places)):
            row[_u8(places[j])] += columns[i, j]
