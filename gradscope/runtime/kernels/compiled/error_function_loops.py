"""Special functions of all elements."""

from __future__ import annotations

from .jit import IN1, OUT1, kernel, scalars


@kernel(IN1, OUT1)
def erf(x, result):
    for i in range(x.size):
        result[i] = scalars.erf(x[i])
