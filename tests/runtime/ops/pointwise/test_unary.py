"""Elementwise operators of one argument whose form depends on the processor."""

import numpy as np
import pytest

from gradscope.runtime.kernels import forms
from gradscope.runtime.ops.pointwise import unary

LOOPS = {name: f"{name.replace('arc', 'a')}s" for name in (
    "exp", "exp2", "expm1", "log10", "log2", "log1p", "tan", "tanh", "sinh", "cosh", "arcsin",
    "arccos", "arctan", "arctanh",
)}  # fmt: skip


@pytest.mark.parametrize("avx512", [True, False])
@pytest.mark.parametrize("name", LOOPS)
def test_large_arrays_are_as_exact_whichever_loop_is_faster(name, avx512, monkeypatch):
    monkeypatch.setattr(unary, "_has_avx512", lambda ufunc: avx512)
    forward = unary.compiled_where_faster(name, LOOPS[name])
    assert isinstance(forward, str) == avx512
    if avx512:
        return
    special = [-95, 89, 89.3, -150, 128, 1, -1, 1e-30, -1e-42, np.inf, -np.inf, np.nan, -0.0]
    x = np.concatenate([np.linspace(-12, 12, forms.LEAST), np.linspace(-1, 1, 1000), special]).astype("f")
    for array in (x, x[:9], x[::2], x.astype("d"), x.astype("F")):
        with np.errstate(all="ignore"):
            wide = array.astype("d") if array.dtype.kind == "f" else array
            expected = getattr(np, name)(wide).astype(array.dtype)
            found = forward(np, array)
        assert found.dtype == array.dtype
        np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1.5e-45)
        if array.dtype.kind == "f":
            assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


def test_whether_numpy_uses_avx512_is_what_it_says(monkeypatch):
    for current in ("X86_V4", "AVX512_SKX", "X86_V3", "AVX2 FMA3", "baseline(NEON)"):
        monkeypatch.setattr(unary, "opt_func_info", lambda current=current, **_: {"exp": {"ff": {"current": current}}})
        assert unary._has_avx512("exp") == (current in ("X86_V4", "AVX512_SKX"))
    monkeypatch.setattr(unary, "opt_func_info", lambda **_: {})
    assert not unary._has_avx512("exp")


def test_angles_are_as_exact_by_the_compiled_loop(monkeypatch):
    monkeypatch.setattr(unary, "_has_avx512", lambda ufunc: False)
    forward = unary.compiled_where_faster("arctan2", "atan2s")
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3e38, -3e38], "f")
    y, x = np.random.default_rng(0).standard_normal((2, forms.LEAST)).astype("f")
    y[: special.size**2], x[: special.size**2] = special.repeat(special.size), np.tile(special, special.size)
    for given in ((y, x), (y[:9], x[:9]), (y, x[::-1]), (y.reshape(64, -1), x[: forms.LEAST // 64]), (y, x[2])):
        with np.errstate(all="ignore"):
            expected = np.arctan2(*[a.astype("d") for a in given]).astype("f")
            found = forward(np, *given)
        np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1.5e-45)
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()
