"""Special functions of all elements."""

from __future__ import annotations

from . import scalars
from .jit import IN1, OUT1, kernel


@kernel(IN1, OUT1)
def erf(x, result):
    for i in range(x.size):
        result[i] = scalars.erf(x[i])
