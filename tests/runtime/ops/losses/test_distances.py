"""Distances and similarities beside PyTorch's: orders, equal rows, broadcasting; and their errors."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.losses import distances
from tests.runtime.kernels.both_forms import both
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


def _far_from_the_origin() -> tuple[Any, Any]:
    return normal(60, 20) * 1e-3 + 50, normal(70, 20) * 1e-3 + 50


def _some_near_and_some_equal() -> tuple[Any, Any]:
    x, y = normal(60, 20), normal(70, 20)
    y[:20] = x[:20] + normal(20, 20) * 1e-5
    y[20:40] = x[20:40]
    return x, y


def _of_all_magnitudes() -> tuple[Any, Any]:
    return normal(60, 20) * 10.0 ** rng.integers(-9, 9, (60, 1)), normal(70, 20) * 10.0 ** rng.integers(-9, 9, (70, 1))


def _small_far_from_the_middle() -> tuple[Any, Any]:
    x, y = normal(60, 20) * 1e-10, normal(70, 20) * 1e-10
    y[-1] = 1e3
    return x, y


MATRICES = {
    "normal": lambda: (normal(60, 20), normal(70, 20)),
    "far from the origin": _far_from_the_origin,
    "small, far from the middle": _small_far_from_the_middle,
    "some near and some equal": _some_near_and_some_equal,
    "of all magnitudes": _of_all_magnitudes,
    "batches": lambda: (normal(3, 1, 60, 8), normal(2, 70, 8)),
    "many rows": lambda: (normal(700, 2), normal(600, 2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("matrices", MATRICES.values(), ids=MATRICES)
def test_distances_of_many_rows_have_the_digits_of_differences(torch: Any, matrices: Any) -> None:
    given = [x.astype("f") for x in matrices()]
    weights = rng.standard_normal(gs.cdist(*map(gs.tensor, given)).shape)

    def run(lib: Any, dtype: str, twice: bool) -> Any:
        x, y = (lib.tensor(a.astype(dtype), requires_grad=True) for a in given)
        if lib is gs:
            distances = gs.cdist(x, y)
            assert distances.grad_fn.name() == "CdistBackward0"
        else:
            distances = lib.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        gradients = lib.autograd.grad(distances, (x, y), lib.tensor(weights.astype(dtype)), create_graph=twice)
        return [part.detach().numpy() for part in (distances, *gradients)]

    exact = run(torch, "d", False)
    for twice in (False, True):
        for found, expected in zip(run(gs, "f", twice), exact, strict=True):
            numpy.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5 * abs(expected).mean())


@pytest.mark.torch
def test_second_derivatives_of_many_distances_are_pytorchs(torch: Any) -> None:
    given = [normal(40, 20).astype("f"), normal(90, 20).astype("f")]

    def run(lib: Any, dtype: str) -> Any:
        x, y = (lib.tensor(a.astype(dtype), requires_grad=True) for a in given)
        apart = lib.cdist(x, y) if lib is gs else (x[:, None] - y).square().sum(-1).sqrt()
        first = lib.autograd.grad((apart**3).sum(), (x, y), create_graph=True)
        return [g.numpy() for g in lib.autograd.grad(sum((f * f).sum() for f in first), (x, y))]

    for found, expected in zip(run(gs, "f"), run(torch, "d"), strict=True):
        numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * abs(expected).mean())


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_row_that_is_not_finite_spoils_no_other_distance(value: float) -> None:
    x, y = normal(60, 20).astype("f"), normal(70, 20).astype("f")
    x[3, 4] = value
    found = gs.cdist(gs.tensor(x), gs.tensor(y)).numpy()
    expected = numpy.sqrt(numpy.square(x[:, None] - y).sum(-1))
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)


def test_distances_overflow_only_where_they_do() -> None:
    x, y = numpy.full((64, 64), 1e30, "f"), numpy.full((64, 64), -1e30, "f")
    numpy.testing.assert_allclose(gs.cdist(gs.tensor(x), gs.tensor(y)).numpy(), 1.6e31, rtol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("name", ["cdist", "pdist"])
def test_both_forms_of_many_distances_are_pytorchs(torch: Any, name: str, p: float) -> None:
    x, y = normal(70, 21).astype("f"), normal(3, 65, 21).astype("f")
    x[5], x[7] = x[6], x[8] + 1e-25

    def run(lib: Any, dtype: str) -> list[Any]:
        given = [lib.tensor(a.astype(dtype), requires_grad=True) for a in ((x, y) if name == "cdist" else (x,))]
        distances = getattr(lib, name)(*given, p)
        weights = numpy.resize([1.0, -2.0, 0.5], tuple(distances.shape)).astype(dtype)
        gradients = lib.autograd.grad(distances, given, lib.tensor(weights))
        return [part.detach().numpy() for part in (distances, *gradients)]

    expected = run(torch, "d")
    for form in both("distance_loops", run, gs, "f"):
        for found, wanted in zip(form, expected, strict=True):
            numpy.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_small_and_large_differences_of_many_rows_keep_their_digits() -> None:
    for size in (1e-30, 1e30):
        x = numpy.full((70, 64), size, "f")
        x[::2] *= -1
        for p, length in ((1.0, 64 * 2 * size), (2.0, 8 * 2 * size)):
            found, _ = both("distance_loops", lambda p=p, x=x: gs.pdist(gs.tensor(x), p).numpy())
            assert set(numpy.unique(found / numpy.float32(length)).round(5)) == {0, 1}


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_infinite_and_nan_rows_spoil_their_own_distances_alone(p: float) -> None:
    x = normal(70, 21).astype("f")
    x[3, 4], x[5, 6], x[9, 0] = math.inf, math.nan, -math.inf

    def run() -> list[Any]:
        rows = gs.tensor(x, requires_grad=True)
        distances = gs.pdist(rows, p)
        return [distances.detach().numpy(), gs.autograd.grad(distances.sum(), rows)[0].numpy()]

    for compiled, plain in zip(*both("distance_loops", run), strict=True):
        numpy.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_distances_of_rows_that_are_all_near_take_little_memory(offset: float) -> None:
    apart = 0 if not offset else rng.standard_normal((300, 256)) * 0.1
    x = gs.tensor((numpy.ones((300, 256)) * offset + apart).astype("f"), requires_grad=True)
    gs.cdist(x, x).sum().backward()  # loads what is compiled
    tracemalloc.start()
    try:
        gs.cdist(x, x).sum().backward()
        assert tracemalloc.get_traced_memory()[1] < 16 << 20  # differences of all pairs are 176 MiB
    finally:
        tracemalloc.stop()
