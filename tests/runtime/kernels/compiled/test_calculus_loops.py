"""Compiled functions of calculus, beside NumPy's in double precision."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels.forms import pointwise
from tests.runtime.kernels.both_forms import both

LOOPS = {
    "exps": np.exp, "exp2s": np.exp2, "expm1s": np.expm1, "log10s": np.log10, "log2s": np.log2, "log1ps": np.log1p,
    "sinhs": np.sinh, "coshs": np.cosh, "tanhs": np.tanh, "asins": np.arcsin, "acoss": np.arccos, "atans": np.arctan,
    "atanhs": np.arctanh, "atan2s": np.arctan2, "tans": np.tan, "hypots": np.hypot, "logaddexps": np.logaddexp,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_both_forms_are_off_by_few_units_in_the_last_place(name):
    x, y = (np.random.default_rng(0).standard_normal((2, 40_000)) * 2).astype("f")
    given = (y, x) if LOOPS[name].nin == 2 else (x,)
    with np.errstate(all="ignore"):
        exact = LOOPS[name](*[a.astype("d") for a in given])
        for form in both("calculus_loops", lambda: pointwise(f"calculus_loops.{name}", LOOPS[name], *given)):
            np.testing.assert_allclose(form, exact, rtol=5e-7, atol=1.2e-7 * (name == "logaddexps"))


def test_tangents_and_lengths_are_as_exact_everywhere():
    bits = np.random.default_rng(0).integers(0, 2**32, (2, 40_000), dtype="u4")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 2.0**20, 2.0**20 + 1], "f")
    x, y = (np.concatenate([some.view("f"), special]) for some in bits)
    y = y[::-1].copy()
    for name, given in {"tans": (x,), "hypots": (x, y)}.items():
        with np.errstate(all="ignore"):
            expected = LOOPS[name](*[a.astype("d") for a in given]).astype("f")
            for form in both("calculus_loops", pointwise, f"calculus_loops.{name}", LOOPS[name], *given):
                np.testing.assert_allclose(form, expected, rtol=5e-7, atol=1.5e-45)
                np.testing.assert_array_equal(np.signbit(form[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("eps", [None, 0.1])
def test_logits_and_their_gradients_have_limits(eps):
    p = np.concatenate([np.random.default_rng(0).random(20_000), [0, -0.0, 1, -1, 2, 0.1, 0.9, np.nan, np.inf]])
    p = p.astype("f")

    def run():
        x = gs.tensor(p, requires_grad=True)
        result = gs.logit(x, eps)
        (gradient,) = gs.autograd.grad(result, x, gs.full_like(x, 3))
        return result.detach().numpy(), gradient.numpy()

    with np.errstate(all="ignore"):
        compiled, plain = both("calculus_loops", run)
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=5e-7, atol=2e-7)
