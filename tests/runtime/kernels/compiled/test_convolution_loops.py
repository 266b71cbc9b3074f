"""Compiled convolutions and their gradients, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels import forms, threads
from tests.runtime.kernels.both_forms import both

# Images, channels, sizes, outputs, kernel, and the settings of the call.
CASES = {
    "padded": (5, 3, (12, 11), 8, (3, 3), {"padding": 1}),
    "of six outputs": (3, 1, (28, 28), 6, (5, 5), {"padding": 2}),
    "in steps": (4, 4, (13, 9), 10, (3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated": (2, 3, (15, 17), 5, (3, 3), {"dilation": 2, "padding": 3}),
    "pointwise": (3, 8, (9, 9), 12, (1, 1), {}),
    "pointwise in steps": (3, 8, (9, 9), 12, (1, 1), {"stride": 2}),
    "in groups": (2, 12, (10, 10), 9, (3, 3), {"groups": 3, "padding": 1}),
    "depthwise": (3, 16, (14, 14), 16, (3, 3), {"groups": 16, "padding": 1}),
    "of pairs": (3, 16, (14, 14), 32, (3, 3), {"groups": 16, "padding": 1, "stride": 2}),
    "of signals": (4, 5, (200,), 7, (9,), {"padding": 4}),
    "of volumes": (2, 3, (6, 7, 8), 4, (3, 2, 3), {"padding": (1, 0, 2)}),
}


@pytest.fixture(autouse=True)
def _small_arrays_too(monkeypatch):
    monkeypatch.setattr(forms, "LEAST", 1)


def numbers(images, channels, sizes, outputs, kernel, options):
    rng = np.random.default_rng(0)
    groups = options.get("groups", 1)
    shapes = (images, channels, *sizes), (outputs, channels // groups, *kernel), (outputs,)
    return [rng.standard_normal(shape).astype("f") for shape in shapes]


def result_and_gradients(lib, name, arrays, options):
    tensors = [lib.tensor(array, requires_grad=True) for array in arrays]
    y = getattr(lib.nn.functional, name)(*tensors, **options)
    seed = np.random.default_rng(1).standard_normal(tuple(y.shape)).astype("f")
    return [part.detach().numpy() for part in (y, *lib.autograd.grad(y, tensors, lib.tensor(seed)))]


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6 * abs(other).max())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_both_forms_agree(case):
    arrays, name = numbers(*case), f"conv{len(case[2])}d"
    compiled, plain = both("convolution_loops", result_and_gradients, gs, name, arrays, case[-1])
    assert_close(compiled, plain)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_they_are_pytorchs(torch, case):
    arrays, name = numbers(*case), f"conv{len(case[2])}d"
    expected = result_and_gradients(torch, name, arrays, case[-1])
    for form in both("convolution_loops", result_and_gradients, gs, name, arrays, case[-1]):
        assert_close(form, expected)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}], ids=str)
def test_transposed_ones_are_pytorchs(torch, options):
    rng = np.random.default_rng(0)
    groups = options.get("groups", 1)
    arrays = [rng.standard_normal(shape).astype("f") for shape in ((3, 4, 9, 8), (4, 6 // groups, 3, 3), (6,))]
    expected = result_and_gradients(torch, "conv_transpose2d", arrays, options)
    for form in both("convolution_loops", result_and_gradients, gs, "conv_transpose2d", arrays, options):
        assert_close(form, expected)


def test_a_kernel_of_one_tap_leaves_room_for_output_padding(torch):
    arrays = [np.ones((3, 5, 2), "f"), np.ones((5, 5, 1), "f"), np.zeros(5, "f")]
    options = {"output_padding": 1, "dilation": 3}
    expected = result_and_gradients(torch, "conv_transpose1d", arrays, options)
    assert_close(result_and_gradients(gs, "conv_transpose1d", arrays, options), expected)


@pytest.mark.parametrize("number", [np.inf, np.nan])
@pytest.mark.parametrize("place", ["x", "weight", "gradient"])
def test_one_number_that_is_not_finite_reaches_what_it_is_a_factor_of(number, place):
    x, weight = np.ones((2, 3, 8, 8), "f"), np.ones((5, 3, 3, 3), "f")
    gradient = np.ones((2, 5, 6, 6), "f")
    {"x": x, "weight": weight, "gradient": gradient}[place][0, 0, 0, 0] = number

    def gradients():
        tensors = [gs.tensor(array, requires_grad=True) for array in (x, weight)]
        return [g.numpy() for g in gs.autograd.grad(gs.conv2d(*tensors), tensors, gs.tensor(gradient))]

    for of_input, of_weight in both("convolution_loops", gradients):
        reached = {
            "x": (0, 5),  # the first tap of each output
            "weight": (2 * 36, 0),  # what the first window's place is for, in the first channel
            "gradient": (27, 27),
        }[place]
        assert (np.count_nonzero(~np.isfinite(of_input)), np.count_nonzero(~np.isfinite(of_weight))) == reached


def test_threads_do_not_change_the_numbers():
    arrays = numbers(24, 16, (24, 24), 16, (3, 3), {})
    before, found = threads.count(), []
    try:
        for count in (1, 2, 3):
            threads.set_count(count)
            found.append(result_and_gradients(gs, "conv2d", arrays, {"padding": 1}))
    finally:
        threads.set_count(before)
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
