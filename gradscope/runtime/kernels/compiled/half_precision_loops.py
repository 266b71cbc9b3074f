"""Half precision to single and back, and arithmetic; the NumPy forms are in `casts` and `half_arithmetic`."""

from __future__ import annotations

from numba import types

from .jit import of_each, of_pairs, scalar
from .jit.halves import half_of, single_of

_GIVEN, _RESULT = types.Array(types.uint16, 1, "C", readonly=True), types.Array(types.uint16, 1, "C")


@scalar
def _add(x, y):
    return half_of(single_of(x) + single_of(y))


@scalar
def _subtract(x, y):
    return half_of(single_of(x) - single_of(y))


@scalar
def _multiply(x, y):
    return half_of(single_of(x) * single_of(y))


@scalar
def _divide(x, y):
    return half_of(single_of(x) / single_of(y))


to_half = of_each("to_half", half_of, result=_RESULT)
to_single = of_each("to_single", single_of, given=_GIVEN)
add = of_pairs("add", _add, _GIVEN, _RESULT)
subtract = of_pairs("subtract", _subtract, _GIVEN, _RESULT)
multiply = of_pairs("multiply", _multiply, _GIVEN, _RESULT)
divide = of_pairs("divide", _divide, _GIVEN, _RESULT)
