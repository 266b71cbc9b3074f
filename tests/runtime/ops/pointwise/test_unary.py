"""Elementwise operators of one argument whose form depends on the processor."""

import numpy as np
import pytest

from gradscope.runtime.kernels import forms
from gradscope.runtime.ops.pointwise import unary


@pytest.mark.parametrize("avx512", [True, False])
@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_large_arrays_are_as_exact_whichever_loop_is_faster(name, avx512, monkeypatch):
    monkeypatch.setattr(unary, "_has_avx512", lambda ufunc: avx512)
    forward = unary._compiled_where_faster(name, f"{name}s")
    assert isinstance(forward, str) == avx512
    if avx512:
        return
    x = np.concatenate(
        [np.linspace(-12, 12, forms.LEAST, dtype="f"), np.array([-95, 89, np.inf, -np.inf, np.nan, -0.0], "f")]
    )
    for array in (x, x[:9], x[::2], x.astype("d"), x.astype("F")):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = getattr(np, name)(array.astype("D" if array.dtype.kind == "c" else "d")).astype(array.dtype)
            found = forward(np, array)
        assert found.dtype == array.dtype
        np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1.5e-45)
        if array.dtype.kind == "f":
            assert (np.signbit(found) == np.signbit(expected)).all()


def test_whether_numpy_uses_avx512_is_what_it_says(monkeypatch):
    for current in ("X86_V4", "AVX512_SKX", "X86_V3", "AVX2 FMA3", "baseline(NEON)"):
        monkeypatch.setattr(unary, "opt_func_info", lambda current=current, **_: {"exp": {"ff": {"current": current}}})
        assert unary._has_avx512("exp") == (current in ("X86_V4", "AVX512_SKX"))
    monkeypatch.setattr(unary, "opt_func_info", lambda **_: {})
    assert not unary._has_avx512("exp")
