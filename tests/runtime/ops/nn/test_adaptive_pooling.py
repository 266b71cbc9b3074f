"""Pooling to a given size, beside PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
SHAPES = {1: (2, 3, 7), 2: (2, 3, 7, 6), 3: (2, 2, 4, 3, 5)}


def function(lib: Any, kind: str, spatial: int) -> Any:
    return getattr(lib.nn.functional, f"adaptive_{kind}_pool{spatial}d")


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_adaptive_pooling(torch: Any, kind: str, spatial: int) -> None:
    sizes: list[Any] = [1, 2, 3, 9, (2, 3, 1)[:spatial]]
    if spatial > 1:
        sizes.append((None, 2, 3)[:spatial])
    for size in sizes:
        for batched in (True, False):
            shape = SHAPES[spatial][not batched :]
            x = rng.normal(size=shape)
            compare(torch, lambda lib, x, s=size: function(lib, kind, spatial)(x, s), x)


def test_no_windows_give_nothing_and_no_gradient() -> None:
    x = gs.ones(1, 2, 4, 4, requires_grad=True)
    y = gs.nn.functional.adaptive_avg_pool2d(x, (2, 0))
    assert y.shape == (1, 2, 2, 0)
    y.sum().backward()
    assert x.grad.tolist() == gs.zeros(1, 2, 4, 4).tolist()


@pytest.mark.torch
def test_places_of_maxima(torch: Any) -> None:
    x = rng.integers(0, 3, (2, 3, 7, 6)).astype(float)  # many are equal
    x[0, 0, 2, 2] = x[0, 0, 3, 1] = x[1, 1, 0, 5] = math.nan
    for size in ((3, 4), (7, 6), 1, (2, 5)):
        found = [lib.nn.functional.adaptive_max_pool2d(lib.tensor(x), size, True)[1].tolist() for lib in (gs, torch)]
        assert found[0] == found[1]
    y = rng.normal(size=(2, 3, 7))
    for name in ("adaptive_max_pool1d_with_indices", "adaptive_max_pool1d"):
        found = [getattr(lib.nn.functional, name)(lib.tensor(y), 3, return_indices=True)[1] for lib in (gs, torch)]
        assert found[0].tolist() == found[1].tolist()
    assert (
        gs.adaptive_max_pool1d(gs.tensor(y), 3)[1].tolist() == torch.adaptive_max_pool1d(torch.tensor(y), 3)[1].tolist()
    )
    z = rng.normal(size=(1, 2, 3, 4, 5))
    found = [lib.nn.functional.adaptive_max_pool3d_with_indices(lib.tensor(z), (2, 3, 2)) for lib in (gs, torch)]
    assert [t.tolist() for t in found[0]] == [t.tolist() for t in found[1]]


def test_means_of_whole_numbers_are_exact() -> None:
    x = gs.tensor([[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]])
    assert gs.adaptive_avg_pool1d(x, 2).tolist() == [[2.0, 20.0]]


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.adaptive_avg_pool1d(lib.zeros(4), 2),
        lambda lib: lib.adaptive_avg_pool1d(lib.zeros(1, 1, 4), (2, 2)),
        lambda lib: lib.adaptive_avg_pool1d(lib.zeros(1, 1, 4), None),
        lambda lib: function(lib, "avg", 2)(lib.zeros(1, 4), 2),
        lambda lib: function(lib, "avg", 2)(lib.zeros(1, 1, 4, 4), (2, 2, 2)),
        lambda lib: function(lib, "avg", 2)(lib.zeros(1, 1, 4, 4), (2, -1)),
        lambda lib: function(lib, "avg", 2)(lib.zeros(1, 1, 0, 4), 2),
        lambda lib: function(lib, "avg", 2)(lib.zeros(1, 1, 4, 4, dtype=lib.int64), 2),
        lambda lib: function(lib, "avg", 3)(lib.zeros(1, 4, 4), 2),
        lambda lib: function(lib, "max", 1)(lib.zeros(4), 2),
        lambda lib: function(lib, "max", 1)(lib.zeros(1, 0), 2),
        lambda lib: function(lib, "max", 2)(lib.zeros(1, 4), 2),
        lambda lib: function(lib, "max", 2)(lib.zeros(1, 0, 4), 2),
        lambda lib: function(lib, "max", 2)(lib.zeros(1, 1, 4, 4, dtype=lib.int64), 2),
        lambda lib: function(lib, "max", 3)(lib.zeros(1, 4, 4), 2),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)
