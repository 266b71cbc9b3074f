"""Remainders and rounded quotients, bit for bit those of NumPy."""

import numpy as np
import pytest

from gradscope.runtime.kernels.arithmetic import division

SIZE = 1 << 17
RNG = np.random.default_rng(0)
NORMAL, OTHER = RNG.standard_normal((2, SIZE)).astype("f")
BITS, OTHER_BITS = RNG.integers(0, 2**32, (2, SIZE), dtype="u4").view("f")
DIVISOR = (RNG.random(SIZE) + 0.5).astype("f")
MULTIPLE = (RNG.integers(1, 1 << 20, SIZE) * DIVISOR).astype("f")
SPECIAL = OTHER.copy()
SPECIAL[[3, 70_000, 90_000, 100_000]] = np.inf, -np.inf, 0, np.nan
OPERANDS = {
    "normal": (NORMAL, OTHER),
    "a number below": (NORMAL, -2.5),
    "a number above": (2.5, NORMAL),
    "an array of no dimension": (NORMAL, np.float32(0.3).reshape(())),
    "matrices": (NORMAL.reshape(64, -1), OTHER.reshape(64, -1)),
    "integers": (np.round(NORMAL * 9), np.round(OTHER * 3)),
    "nearly multiples": (np.nextafter(MULTIPLE, np.float32(0)), DIVISOR),
    "multiples": (MULTIPLE, DIVISOR),
    "large quotients": (NORMAL * np.float32(1e8), OTHER),
    "subnormal numbers": (NORMAL * np.float32(1e-38), OTHER * np.float32(1e-41)),
    "any bits": (BITS, OTHER_BITS),
    "infinite and zero divisors": (NORMAL, SPECIAL),
    "infinite dividends": (SPECIAL, OTHER),
    "infinite number": (NORMAL, np.inf),
    "zero": (NORMAL, 0),
    "double precision": (NORMAL.astype("d"), 0.3),
    "columns": (NORMAL.reshape(64, -1).T, OTHER.reshape(64, -1).T),
    "broadcast": (NORMAL.reshape(64, -1), OTHER[: SIZE // 64]),
    "half precision beside a number": (NORMAL.astype("e"), 0.3),
}


@pytest.mark.parametrize("operands", OPERANDS.values(), ids=OPERANDS)
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_each_element_is_that_of_numpy(name, operands):
    with np.errstate(all="ignore"):
        found, expected = getattr(division, name)(*operands), getattr(np, name)(*operands)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    if name != "remainder":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
