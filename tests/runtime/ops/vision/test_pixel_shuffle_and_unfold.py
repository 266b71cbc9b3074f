"""Pixels, channels and windows rearranged, beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(8, 2, 3), (2, 8, 2, 3), (1, 2, 4, 2, 2)])
def test_pixel_shuffle_and_unfold(torch: Any, shape: Any) -> None:
    compare(torch, lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2), normal(*shape))
    compare(torch, lambda lib, x: lib.pixel_unshuffle(lib.pixel_shuffle(x, 2), 2), normal(*shape))
    x = gs.tensor(normal(*shape))
    assert gs.pixel_unshuffle(gs.pixel_shuffle(x, 2), 2).tolist() == x.tolist()


@pytest.mark.torch
def test_channels(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.channel_shuffle(x, 3), normal(2, 6, 2, 2))


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [{}, {"padding": 1}, {"stride": (1, 2), "dilation": (2, 1)}, {"padding": (0, 2), "stride": 3}],
)
def test_unfold_and_fold(torch: Any, options: Any) -> None:
    kernel = (2, 3)
    for shape in ((2, 2, 6, 7), (1, 5, 5), (0, 1, 4, 5)):
        compare(torch, lambda lib, x: lib.nn.functional.unfold(x, kernel, **options), normal(*shape))
        columns = gs.nn.functional.unfold(gs.zeros(*shape), kernel, **options).shape
        compare(
            torch,
            lambda lib, x, s=shape: lib.nn.functional.fold(x, s[-2:], kernel, **options),
            normal(*columns),
        )


def test_unfold_times_weights_is_a_convolution() -> None:
    x, w = gs.tensor(normal(2, 3, 6, 5)), gs.tensor(normal(4, 3, 2, 2))
    columns = gs.nn.functional.unfold(x, 2, padding=1, stride=2)
    expected = gs.conv2d(x, w, padding=1, stride=2)
    found = (w.reshape(4, -1) @ columns).reshape(expected.shape)
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_no_images_are_no_error() -> None:
    x = gs.zeros(0, 4, 1, 2, requires_grad=True)
    y = gs.pixel_shuffle(x, 2)
    y.sum().backward()
    assert (y.shape, x.grad.shape) == ((0, 1, 2, 4), (0, 4, 1, 2))


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.pixel_shuffle(lib.zeros(1, 3, 4, 4), 2),
        lambda lib: lib.pixel_shuffle(lib.zeros(4, 4), 2),
        lambda lib: lib.pixel_shuffle(lib.zeros(4, 4, 4), 0),
        lambda lib: lib.pixel_unshuffle(lib.zeros(1, 3, 5, 4), 2),
        lambda lib: lib.pixel_unshuffle(lib.zeros(1, 3, 4, 5), 2),
        lambda lib: lib.channel_shuffle(lib.zeros(1, 3, 4, 4), 2),
        lambda lib: lib.channel_shuffle(lib.zeros(4, 4), 2),
        lambda lib: lib.channel_shuffle(lib.zeros(1, 3, 4, 4), 0),
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), 5),
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), 2, dilation=0),
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), 2, stride=0),
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), 2, padding=-1),
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), (1, 2, 3)),
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4, dtype=lib.int64), 2),
        lambda lib: lib.nn.functional.fold(lib.zeros(1, 4, 9, 1), (4, 4), 2),
        lambda lib: lib.nn.functional.fold(lib.zeros(1, 4, 8), (4, 4), 2),
        lambda lib: lib.nn.functional.fold(lib.zeros(1, 3, 9), (4, 4), 2),
        lambda lib: lib.nn.functional.fold(lib.zeros(1, 4, 9), (1, 1), 2),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)
