"""Distances and similarities beside PyTorch's: orders, equal rows, broadcasting; and their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.losses import distances
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
ORDERS = [0.5, 1.0, 1.5, 2.0, 3.0, math.inf]


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


@pytest.mark.torch
@pytest.mark.parametrize("p", ORDERS)
def test_distances_of_pairs(torch: Any, p: float) -> None:
    compare(torch, lambda lib, x, y: lib.nn.functional.pairwise_distance(x, y, p), normal(4, 3), normal(4, 3))
    compare(torch, lambda lib, x, y: lib.pairwise_distance(x, y, p, keepdim=True), normal(2, 4, 3), normal(3))


@pytest.mark.torch
@pytest.mark.parametrize("p", [0.0, *ORDERS])
def test_distances_of_all_pairs(torch: Any, p: float) -> None:
    rows = normal(5, 3)
    rows[1], rows[2, 1] = rows[0], rows[0, 1]
    compare(torch, lambda lib, x: lib.nn.functional.pdist(x, p), rows, twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("all_pairs", [lambda lib, x, p: lib.pdist(x, p), lambda lib, x, p: lib.cdist(x, x.flip(0), p)])
def test_a_distant_row_leaves_the_gradients_of_small_rows_their_digits(torch: Any, all_pairs: Any, p: float) -> None:
    rows = [[1e-9, 2e-9, 0.0], [3e-9, -1e-9, 1e-9], [1e9, 2e8, 3e9], [-2e-9, 1e-9, 5e-9]]

    def gradient(lib: Any) -> Any:
        x = lib.tensor(rows, dtype=lib.float64, requires_grad=True)
        distances = all_pairs(lib, x, p)
        weights = lib.arange(1.0, 1.0 + distances.numel(), dtype=lib.float64).reshape(distances.shape)
        return lib.autograd.grad(distances, x, weights)[0].numpy()

    numpy.testing.assert_allclose(gradient(gs), gradient(torch), rtol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_many_pairs_go_in_blocks(monkeypatch: pytest.MonkeyPatch, p: float) -> None:
    x = gs.tensor(normal(40, 3), requires_grad=True)

    def run() -> list[Any]:
        y = gs.pdist(x, p)
        return [y.detach().numpy(), gs.autograd.grad((y * y).sum(), x)[0].numpy()]

    whole = run()
    monkeypatch.setattr(distances, "BLOCK", 3)
    for a, b in zip(whole, run(), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.torch
def test_similarity(torch: Any) -> None:
    compare(torch, lambda lib, x, y: lib.nn.functional.cosine_similarity(x, y), normal(4, 3), normal(4, 3))
    compare(torch, lambda lib, x, y: lib.cosine_similarity(x, y, 0, 3.0), normal(4, 3), normal(4, 3))
    compare(torch, lambda lib, x, y: lib.cosine_similarity(x, y, -1), normal(4, 1, 3), normal(5, 3))
    compare(torch, lambda lib, x, y: lib.cosine_similarity(x, y, -1), numpy.zeros((2, 3)), normal(2, 3), twice=False)


@pytest.mark.torch
def test_similarity_has_the_dtype_both_promote_to(torch: Any) -> None:
    for lib in (gs, torch):
        x = lib.ones(2, 3)
        assert lib.cosine_similarity(x, x.long()).dtype is lib.float32
        assert lib.cosine_similarity(x, x.double()).dtype is lib.float64


def test_pdist_is_cdist_above_the_diagonal() -> None:
    rows = gs.from_numpy(normal(6, 2))
    above = gs.cdist(rows, rows)[gs.ones(6, 6).triu(1).bool()]
    numpy.testing.assert_allclose(gs.pdist(rows).numpy(), above.numpy())


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.pdist(lib.ones(2)),
        lambda lib: lib.pdist(lib.ones(2, 3), -1),
        lambda lib: lib.pdist(lib.ones(3, 2).long()),
        lambda lib: lib.pdist(lib.ones(3, 2).half()),
        lambda lib: lib.pairwise_distance(lib.ones(2, 3), lib.ones(4, 3)),
        lambda lib: lib.cosine_similarity(lib.ones(2, 3).long(), lib.ones(2, 3).long()),
        lambda lib: lib.nn.functional.one_hot(lib.ones(2).int()),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


@pytest.mark.torch
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosines_along_a_dimension_that_is_broadcast(torch: Any, dim: int) -> None:
    x, y, z = (numpy.array(v) for v in ([[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], [[2.0], [1.0]]))
    compare(torch, lambda lib, a, b: lib.nn.functional.cosine_similarity(a, b, dim=dim), x, y, names=False)
    compare(torch, lambda lib, a, b: lib.nn.functional.cosine_similarity(a, b, dim=dim), z, x, names=False)


@pytest.mark.torch
def test_nan_counts_as_a_distance_of_order_0(torch: Any) -> None:
    x = [[1.0, numpy.nan], [2.0, 3.0]]
    compare(torch, lambda lib, x: lib.cdist(x, x.flip(0), 0.0), x, names=False, twice=False)
