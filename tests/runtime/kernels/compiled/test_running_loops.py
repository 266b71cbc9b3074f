"""Compiled running sums, products and extremes, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels.running import accumulated, extremes, sums_from_the_end
from tests.runtime.kernels.both_forms import both

CALLS = {
    "sums": lambda x: [accumulated(np.add, x, 1)],
    "products": lambda x: [accumulated(np.multiply, x, 1)],
    "from the end": lambda x: [sums_from_the_end(x, 1)],
    "maxima": lambda x: extremes(np.maximum, x, 1),
    "minima": lambda x: extremes(np.minimum, x, 1),
}


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_both_forms_give_the_same_numbers(call, rows):
    x = np.round(np.random.default_rng(rows).standard_normal((rows, 3000)) * 4).astype("f") / 3
    x[-1, 2000] = np.nan
    x[0, 1000] = np.inf
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        compiled, plain = both("running_loops", call, x)
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_both_forms_and_their_gradients_are_pytorchs(torch, name):
    def run(lib):
        x = lib.tensor((np.random.default_rng(0).standard_normal((40, 60)) / 2).astype("f"), requires_grad=True)
        result = getattr(x, name)(1)
        result = result if hasattr(result, "shape") else result[0]
        (result * lib.arange(60.0)).sum().backward()
        return result.detach().numpy(), x.grad.numpy()

    expected = run(torch)
    for form in both("running_loops", run, gs):
        for found, wanted in zip(form, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-4)
