"""Pooling beside PyTorch's, to the second derivative."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


def unusual_images() -> Any:
    """Return numbers with ties, NaN and infinities among them, and an image of nothing but the lowest number."""
    x = numpy.random.default_rng(0).integers(-9, 9, (30, 7, 13, 17)).astype("f")
    flat = x.reshape(-1)
    flat[::31], flat[::37], flat[::41] = numpy.nan, numpy.inf, -numpy.inf
    x[2, 1] = -numpy.inf
    return x


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (2, 3), "stride": 1},
        {"kernel_size": (3, 2), "stride": 2, "padding": 1, "dilation": (2, 3)},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    ],
    ids=str,
)
def test_max_pool_takes_the_first_of_equals_and_the_last_nan(torch: Any, options: Any) -> None:
    def pooled(lib: Any) -> Any:
        x = lib.tensor(unusual_images(), requires_grad=True)
        values, indices = lib.nn.functional.max_pool2d(x, **options, return_indices=True)
        values.backward(lib.ones_like(values))
        return values.detach().numpy(), indices.numpy(), x.grad.numpy()

    for mine, theirs in zip(pooled(gs), pooled(torch), strict=True):
        numpy.testing.assert_array_equal(mine, theirs)


@pytest.mark.torch
def test_max_pool_of_windows_with_more_places_than_a_byte_counts(torch: Any) -> None:
    x = normal(1, 2, 20, 40)
    compare(torch, lambda lib, x: lib.nn.functional.max_pool2d(x, (18, 17), (2, 3)), x)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "ceil"),
    [
        (2, None, 0, 1, False),
        (3, 2, 1, 1, True),
        ((2, 3), (1, 2), (1, 0), (2, 1), False),
        (3, 1, 1, 1, False),
        (2, 3, 0, 1, True),
    ],
)
def test_max_pool2d(torch: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> None:
    x = normal(2, 3, 7, 6)
    compare(torch, lambda lib, x: lib.nn.functional.max_pool2d(x, kernel, stride, padding, dilation, ceil), x)
    _, mine = gs.nn.functional.max_pool2d(gs.tensor(x), kernel, stride, padding, dilation, ceil, True)
    _, theirs = torch.nn.functional.max_pool2d(
        torch.tensor(x), kernel, stride, padding, dilation, ceil, return_indices=True
    )
    assert mine.tolist() == theirs.tolist()


def test_max_pool_takes_the_first_of_equals_and_every_nan() -> None:
    x = gs.tensor([[[[1.0, 1.0], [1.0, 1.0]]]], requires_grad=True)
    gs.nn.functional.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[1.0, 0.0], [0.0, 0.0]]]]
    y = gs.nn.functional.max_pool2d(gs.tensor([[[[float("nan"), 5.0], [1.0, 2.0]]]]), 2)
    assert y.isnan().item()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("dim", "value", "kind"),
    [(dim, float("-inf"), "float32") for dim in (1, 2, 3)] + [(dim, 0, "uint8") for dim in (1, 2)],
)
def test_max_pool_never_names_the_padding(torch: Any, dim: int, value: float, kind: str) -> None:
    shape = (1, *(7, 6, 5)[:dim])
    for stride, padding, dilation, ceil in itertools.product((1, 2), (1, 2), (1, 2, 3), (False, True)):

        def indices(lib: Any, window: Any = (4, stride, padding, dilation, ceil)) -> Any:
            x = lib.full(shape, value, dtype=getattr(lib, kind))
            return getattr(lib.nn.functional, f"max_pool{dim}d_with_indices")(x, *window)[1].tolist()

        try:
            expected = indices(torch)
        except RuntimeError:  # the window is larger than the input
            continue
        assert indices(gs) == expected


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "ceil", "include", "divisor"),
    [
        (2, None, 0, False, True, None),
        (3, 2, 1, True, True, None),
        ((2, 3), (1, 2), (1, 0), True, False, None),
        (2, 2, 0, False, True, 5),
    ],
)
def test_avg_pool2d(
    torch: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, divisor: Any
) -> None:
    compare(
        torch,
        lambda lib, x: lib.nn.functional.avg_pool2d(x, kernel, stride, padding, ceil, include, divisor),
        normal(2, 3, 7, 6),
    )


@pytest.mark.torch
def test_other_pooling(torch: Any) -> None:
    for size in (1, (2, 3), (None, 4)):
        compare(torch, lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, size), normal(2, 3, 7, 6), names=False)  # noqa: B023
    compare(torch, lambda lib, x: lib.nn.functional.avg_pool1d(x, 3, 2), normal(2, 3, 7), names=False)
    for pool in ("max_pool2d", "avg_pool2d"):
        compare(torch, lambda lib, x: getattr(lib.nn.functional, pool)(x, 2), normal(0, 3, 4, 4))  # noqa: B023
    compare(torch, lambda lib, x: lib.nn.functional.max_pool1d(x, 3, 2), normal(2, 3, 7), names=False)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.functional.max_pool2d(lib.zeros(1, 1, 4, 4), 2, padding=2),
        lambda lib: lib.nn.functional.avg_pool2d(lib.zeros(1, 1, 4, 4), 2, divisor_override=0),
        lambda lib: lib.nn.functional.max_pool2d(lib.zeros(1, 1, 4, 4), 2, padding=-1),
        lambda lib: lib.nn.functional.avg_pool2d(lib.zeros(1, 1, 4, 4), 2, padding=-1),
        lambda lib: lib.nn.functional.avg_pool2d(lib.zeros(1, 1, 4, 4).int(), 2),
        lambda lib: lib.nn.functional.avg_pool3d(lib.zeros(1, 1, 4, 4, 4).bool(), 2),
        lambda lib: lib.nn.functional.adaptive_avg_pool3d(lib.zeros(2, 0, 4, 4, 4), 2),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


@pytest.mark.torch
def test_means_of_integers_are_cut(torch: Any) -> None:
    x = numpy.arange(-8, 8).reshape(1, 1, 4, 4)
    found, expected = (lib.nn.functional.avg_pool2d(lib.tensor(x), 2) for lib in (gs, torch))
    assert found.tolist() == expected.tolist()
    assert found.dtype is gs.int64


def test_windows_larger_than_the_image() -> None:
    with pytest.raises(RuntimeError, match="Output size is too small"):
        gs.nn.functional.max_pool2d(gs.zeros(1, 1, 2, 2), 3)
