"""Half precision to single and back, of one number: by bits as by the processor's instructions."""

import numpy as np
import pytest

from gradscope.runtime.kernels import loading

HALVES = np.arange(1 << 16, dtype="u2")


@pytest.fixture
def halves():
    pytest.importorskip("numba", reason="compiles kernels")
    return loading.compiled("jit.halves")


def test_every_half_is_the_same_number_by_bits(halves):
    for bits in HALVES[::7]:
        expected = bits.view("e").astype("f")
        np.testing.assert_equal(np.float32(halves.single_by_bits(bits)), expected)


def test_numbers_are_rounded_to_the_nearest_half_by_bits(halves):
    finite = HALVES.view("e")[np.isfinite(HALVES.view("e"))].astype("d")
    ties = ((np.sort(finite)[1:] + np.sort(finite)[:-1]) / 2).astype("f")[::13]
    for x in (*ties, *np.nextafter(ties, np.float32(np.inf)), *np.float32([65520, 1e30, np.inf, 1e-30])):
        with np.errstate(over="ignore"):
            assert np.uint16(halves.half_by_bits(x)) == np.float16(x).view("u2"), x
    assert np.isnan(np.uint16(halves.half_by_bits(np.float32(np.nan))).view("e"))
