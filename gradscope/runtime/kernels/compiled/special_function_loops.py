"""Special functions in one pass over memory, where SciPy computes one number after the other."""

from __future__ import annotations

from .jit import doubles, of_each

erfcs = of_each("erfcs", doubles.erfc)
erfinvs = of_each("erfinvs", doubles.erfinv)
i0s = of_each("i0s", doubles.i0)
i1s = of_each("i1s", doubles.i1)
