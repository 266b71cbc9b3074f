"""Unpooling, power means and windows of random position, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
SHAPES = {1: (2, 3, 8), 2: (2, 3, 6, 8), 3: (1, 2, 4, 6, 4)}


def pooled(lib: Any, spatial: int, x: Any, *settings: Any) -> Any:
    return getattr(lib.nn.functional, f"max_pool{spatial}d")(x, *settings, return_indices=True)


@pytest.mark.torch
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_unpooling_is_the_way_back(torch: Any, spatial: int) -> None:
    def there_and_back(lib: Any, x: Any, *more: Any) -> Any:
        values, indices = pooled(lib, spatial, x, 2)
        return getattr(lib.nn.functional, f"max_unpool{spatial}d")(values, indices, 2, *more)

    x = rng.normal(size=SHAPES[spatial])
    compare(torch, there_and_back, x)
    compare(torch, there_and_back, x[0])
    wanted = tuple(n + 1 for n in SHAPES[spatial][2:])
    compare(torch, lambda lib, x: there_and_back(lib, x, 2, 0, wanted), x)
    compare(torch, lambda lib, x: there_and_back(lib, x, 2, 0, (2, 3, *wanted)), x)


@pytest.mark.torch
def test_indices_of_pooling(torch: Any) -> None:
    for spatial, shape in SHAPES.items():
        x = rng.normal(size=shape)
        found = [pooled(lib, spatial, lib.tensor(x), 3, 2, 1)[1].tolist() for lib in (gs, torch)]
        assert found[0] == found[1]
        name = f"max_pool{spatial}d_with_indices"
        found = [getattr(lib.nn.functional, name)(lib.tensor(x), 2)[1].tolist() for lib in (gs, torch)]
        assert found[0] == found[1]
        compare(torch, lambda lib, x, s=spatial: getattr(lib, f"max_pool{s}d")(x, 2), x)
    compare(torch, lambda lib, x: lib.max_pool1d_with_indices(x, 2)[0], rng.normal(size=SHAPES[1]))
    compare(torch, lambda lib, x: lib.avg_pool1d(x, 3, 2, 1), rng.normal(size=SHAPES[1]))


@pytest.mark.torch
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_power_means(torch: Any, spatial: int) -> None:
    for p, stride, ceil in ((2, None, False), (3, 1, True), (1.0, 2, False)):
        compare(
            torch,
            lambda lib, x, a=(p, 3, stride, ceil): getattr(lib.nn.functional, f"lp_pool{spatial}d")(x, *a),
            numpy.abs(rng.normal(size=SHAPES[spatial])) + 0.1,
            twice=False,
        )


@pytest.mark.torch
@pytest.mark.parametrize("spatial", [2, 3])
def test_windows_of_random_position(torch: Any, spatial: int) -> None:
    x, samples = rng.normal(size=(2, 3, 6, 8, 5)[: spatial + 2]), rng.random((2, 3, spatial))
    name = f"fractional_max_pool{spatial}d"
    for size in ((3, 4, 2)[:spatial], (1, 2, 3)[:spatial], 2):
        compare(
            torch,
            lambda lib, x, s=size: getattr(lib.nn.functional, name)(x, 2, s, _random_samples=lib.tensor(samples)),
            x,
        )
        found = [
            getattr(lib.nn.functional, name)(lib.tensor(x), 2, size, None, True, lib.tensor(samples))[1].tolist()
            for lib in (gs, torch)
        ]
        assert found[0] == found[1]


def test_random_windows_differ_and_repeat_with_the_seed() -> None:
    x = gs.rand(1, 1, 40, 40)
    gs.manual_seed(1)
    first, second = (gs.nn.functional.fractional_max_pool2d(x, 2, output_ratio=(0.7, 0.6)) for _ in range(2))
    assert first.shape == (1, 1, 28, 24)
    assert first.tolist() != second.tolist()
    gs.manual_seed(1)
    assert gs.nn.functional.fractional_max_pool2d(x, 2, output_ratio=(0.7, 0.6)).tolist() == first.tolist()


def indices(lib: Any) -> Any:
    return lib.zeros(1, 1, 2, 2, dtype=lib.int64)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.functional.max_unpool2d(lib.zeros(1, 1, 2, 2), indices(lib) + 40, 2),
        lambda lib: lib.nn.functional.max_unpool2d(lib.zeros(1, 1, 2, 2), indices(lib).int(), 2),
        lambda lib: lib.nn.functional.max_unpool2d(lib.zeros(1, 1, 2, 2), indices(lib)[..., :1], 2),
        lambda lib: lib.nn.functional.max_unpool2d(lib.zeros(1, 1, 2, 2), indices(lib), 2, output_size=(9, 9)),
        lambda lib: lib.nn.functional.max_unpool2d(lib.zeros(1, 1, 2, 2), indices(lib), 2, output_size=(1, 5, 5)),
        lambda lib: lib.nn.functional.max_unpool2d(lib.zeros(2, 2), indices(lib)[0, 0], 2),
        lambda lib: lib.nn.functional.max_unpool3d(lib.zeros(1, 1, 1, 2, 2), indices(lib)[None] + 90, 2),
        lambda lib: lib.nn.functional.fractional_max_pool2d(lib.zeros(1, 1, 4, 4), 2),
        lambda lib: lib.nn.functional.fractional_max_pool2d(lib.zeros(1, 1, 4, 4), 2, 4),
        lambda lib: lib.nn.functional.fractional_max_pool2d(lib.zeros(1, 1, 4, 4), 2, -1),
        lambda lib: lib.nn.functional.fractional_max_pool2d(
            lib.zeros(1, 1, 4, 4), 2, 3, None, False, lib.zeros(1, 1, 3)
        ),
        lambda lib: lib.nn.functional.fractional_max_pool2d(
            lib.zeros(1, 1, 4, 4), 2, 3, None, False, lib.zeros(1, 2, 2)
        ),
        lambda lib: lib.nn.functional.fractional_max_pool3d(lib.zeros(1, 1, 4, 4, 4), 2, 4),
        lambda lib: lib.nn.FractionalMaxPool2d(2),
        lambda lib: lib.nn.FractionalMaxPool2d(2, output_size=3, output_ratio=0.5),
        lambda lib: lib.nn.FractionalMaxPool2d(2, output_ratio=1.5),
        lambda lib: lib.max_pool1d(lib.zeros(2, 3, 4), 2, padding=2),
        lambda lib: lib.max_pool1d(lib.zeros(2, 3, 4), 0),
        lambda lib: lib.max_pool1d(lib.zeros(4), 2),
        lambda lib: lib.avg_pool1d(lib.zeros(4), 2),
        lambda lib: lib.nn.functional.max_pool3d(lib.zeros(4), 2),
        lambda lib: lib.nn.functional.max_pool2d(lib.zeros(1, 0, 4), 2),
        lambda lib: lib.nn.functional.avg_pool3d(lib.zeros(1, 4, 4, 4), 2, padding=(0, 2, 0)),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)
