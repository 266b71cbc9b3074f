"""The few largest and smallest numbers of rows, and the largest of windows, beside NumPy and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.ops.reduce.sort_and_cumulate import sorted_order
from tests.runtime.kernels.both_forms import both


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [1, 8, 32])
def test_equal_numbers_stand_in_their_order_and_nan_is_the_largest(k, axis, largest):
    x = np.round(np.random.default_rng(k).standard_normal((200, 160)) * 5).astype("f")
    x[3:20, 5] = x[7, 3:40] = x[9] = np.nan
    x[11, 30], x[12, 30] = np.inf, -np.inf
    expected = np.take(sorted_order(np, x, axis, largest), np.arange(k), axis)
    for values, places in both("extremes_loops", gs.topk, gs.tensor(x), k, axis, largest):
        np.testing.assert_array_equal(places.numpy(), expected)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, axis))


def test_ascending_rows_are_inserted_at_every_place():
    x = np.arange(20_000, dtype="f").reshape(10, 2000)
    for values, _ in both("extremes_loops", gs.topk, gs.tensor(x), 5):
        np.testing.assert_array_equal(values.numpy(), x[:, :-6:-1])


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
    for form in both("extremes_loops", run, gs):
        for found, wanted in zip(form, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
