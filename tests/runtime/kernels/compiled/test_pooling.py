"""Compiled maximum pooling and its gradient, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.nn import functional
from gradscope.runtime.ops.nn import pooling
from tests.runtime.kernels.both_forms import both

WINDOWS = {
    "of two": {"kernel_size": 2},
    "overlapping": {"kernel_size": 3, "stride": 2, "padding": 1},
    "at every pixel": {"kernel_size": (2, 3), "stride": 1},
    "far apart": {"kernel_size": (2, 1), "stride": (3, 4)},
    "spread": {"kernel_size": (3, 2), "stride": 2, "padding": 1, "dilation": (2, 3)},
    "that hang over": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
}


@pytest.fixture(autouse=True)
def _small_arrays_too(monkeypatch):
    monkeypatch.setattr(pooling, "LEAST", 1)


def images():
    """Return numbers with ties, NaN and infinities among them, and an image of nothing but the lowest number."""
    x = np.random.default_rng(0).integers(-9, 9, (3, 2, 13, 17)).astype("f")
    flat = x.reshape(-1)
    flat[::31], flat[::37], flat[::41] = np.nan, np.inf, -np.inf
    x[2, 1] = -np.inf
    return x


def pooled(lib, F, options):
    x = lib.tensor(images(), requires_grad=True)
    values, indices = F.max_pool2d(x, **options, return_indices=True)
    seed = np.random.default_rng(1).standard_normal(tuple(values.shape)).astype("f")
    values.backward(lib.tensor(seed))
    return values.detach().numpy(), indices.numpy(), x.grad.numpy()


@pytest.mark.parametrize("options", WINDOWS.values(), ids=WINDOWS)
def test_both_forms_agree(options):
    compiled, plain = both("pooling", pooled, gs, functional, options)
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("options", WINDOWS.values(), ids=WINDOWS)
def test_they_are_pytorchs(torch, options):
    expected = pooled(torch, torch.nn.functional, options)
    for form in both("pooling", pooled, gs, functional, options):
        for one, other in zip(form, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_of_several_elements_for_one_place_the_last_is_kept():
    values, indices = gs.tensor([[[1.0, 2.0, 4.0]]]), gs.tensor([[[3, 3, 0]]])

    def unpooled():
        return functional.max_unpool1d(values, indices, 2, output_size=[6]).numpy()

    for form in both("pooling", unpooled):
        np.testing.assert_array_equal(form, np.array([[[4, 0, 0, 2, 0, 0]]], "f"))


def test_indices_beyond_the_images_are_refused():
    values, indices = gs.ones(1, 1, 2), gs.tensor([[[3, 6]]])

    def complaint():
        with pytest.raises(IndexError) as raised:
            pooling.max_scatter(np, values.numpy(), indices.numpy(), (6,), True)
        return str(raised.value)

    assert [("out of bounds" in text) for text in both("pooling", complaint)] == [True, True]
