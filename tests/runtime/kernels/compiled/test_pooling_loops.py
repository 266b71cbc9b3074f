"""The largest number of each window by a compiled loop, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from tests.runtime.kernels.both_forms import both


@pytest.mark.parametrize("size", [(7, 7), (8, 4), (1, 1), (40, 33), (3, 16)], ids=str)
def test_both_forms_are_pytorchs(torch, size):
    x = np.round(np.random.default_rng(0).standard_normal((2, 8, 32, 33)) * 3).astype("f")
    x[0, :, 5, ::9] = np.nan

    def run(lib):
        leaf = lib.tensor(x.transpose(0, 1, 3, 2).copy(), requires_grad=True)
        values, places = lib.nn.functional.adaptive_max_pool2d(leaf.transpose(2, 3), size, return_indices=True)
        values.nansum().backward()
        return values.detach().numpy(), places.numpy(), leaf.grad.numpy()

    expected = run(torch)
    for form in both("pooling_loops", run, gs):
        for found, wanted in zip(form, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
