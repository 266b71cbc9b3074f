"""Compiled special functions, beside SciPy's in double precision."""

import numpy as np
import pytest

import gradscope as gs
from tests.runtime.kernels.both_forms import both

CALLS = {"erfc": gs.erfc, "erfinv": gs.erfinv, "i0": gs.i0, "i1": gs.special.i1}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-42, 1e-20, 1 - 2**-24, 90.0, -90.0, 3e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", CALLS)
def test_compiled_ones_are_off_by_one_unit_in_the_last_place_and_scipys_by_three(name):
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    numbers = [rng.uniform(-1, 1, 20_000)] if name == "erfinv" else [rng.standard_normal(20_000) * 4]
    x = np.concatenate([*numbers, np.geomspace(1e-38, 20, 2000), -np.geomspace(1e-38, 20, 2000), SPECIAL]).astype("f")
    with np.errstate(all="ignore"):
        exact = getattr(special, name)(x.astype("d"))
        rounded = exact.astype("f")
        forms = both("special_function_loops", lambda: CALLS[name](gs.tensor(x)).numpy())
        for form, most in zip(forms, (1, 3), strict=True):
            np.testing.assert_array_equal(np.isfinite(form), np.isfinite(rounded))
            np.testing.assert_array_equal(form[np.isinf(rounded)], rounded[np.isinf(rounded)])
            there = np.isfinite(rounded)
            off = np.abs(form[there] - exact[there]) / np.spacing(np.abs(rounded[there]))
            assert off.max() <= most
            np.testing.assert_array_equal(np.signbit(form[there & (x != 0)]), np.signbit(rounded[there & (x != 0)]))


@pytest.mark.parametrize("name", CALLS)
def test_other_layouts_dtypes_and_sizes_are_taken(name):
    x = (np.random.default_rng(0).random((80, 90)) * 0.9).astype("f")
    whole = CALLS[name](gs.tensor(x)).numpy()
    np.testing.assert_allclose(CALLS[name](gs.tensor(x).double()).numpy(), whole, rtol=3e-7)
    np.testing.assert_allclose(CALLS[name](gs.tensor(x).T).numpy(), whole.T, rtol=3e-7)
    np.testing.assert_allclose(CALLS[name](gs.tensor(x)[:, ::2]).numpy(), whole[:, ::2], rtol=3e-7)
    np.testing.assert_allclose(CALLS[name](gs.tensor(x)[:3]).numpy(), whole[:3], rtol=3e-7)
    assert CALLS[name](gs.tensor(x)[:0]).shape == (0, 90)
