"""Embeddings and bags of them beside PyTorch's: padding, frequencies, norms, factors, empty bags; and their errors."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
INDICES = numpy.array([[0, 2, 4], [2, 2, 1]])
MODES = ["sum", "mean", "max"]


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("padding", [None, 2, -1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding(torch: Any, padding: int | None, by_frequency: bool) -> None:
    def look_up(lib: Any, indices: Any, weight: Any) -> Any:
        return lib.nn.functional.embedding(indices, weight, padding, scale_grad_by_freq=by_frequency)

    compare(torch, look_up, INDICES, normal(5, 3))


@pytest.mark.torch
def test_embedding_renormalizes_in_place(torch: Any) -> None:
    rows, found = normal(5, 3), {}
    for lib in (gs, torch):
        weight = lib.tensor(rows)
        lib.nn.functional.embedding(lib.tensor(INDICES), weight, max_norm=1.0)
        found[lib] = (weight.numpy(), weight._version)
    numpy.testing.assert_allclose(found[gs][0], found[torch][0])
    assert found[gs][1] == found[torch][1] == 1


@pytest.mark.torch
def test_renormalized_rows(torch: Any) -> None:
    rows = normal(5, 3) * 3
    for norm in (1.0, 2.0, float("inf")):
        found = [lib.embedding_renorm_(lib.tensor(rows), lib.tensor([4, 0, 4]), 1.0, norm) for lib in (gs, torch)]
        numpy.testing.assert_allclose(*[weight.numpy() for weight in found])


# --- bags -------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [None, 2, -1])
@pytest.mark.parametrize(
    ("offsets", "ended"),
    [([0, 2, 2, 3], False), ([0, 0], False), ([0], False), ([0, 6], False), ([0, 6], True), ([0, 2, 6], True)],
)
def test_bags_in_a_row(torch: Any, mode: str, padding: int | None, offsets: list[int], ended: bool) -> None:
    settings = {"mode": mode, "padding_idx": padding, "include_last_offset": ended}
    indices = INDICES.reshape(-1)

    def bags(lib: Any, weight: Any) -> Any:
        return lib.nn.functional.embedding_bag(lib.tensor(indices), weight, lib.tensor(offsets), **settings)

    # PyTorch has no second derivative of it.
    compare(torch, bags, normal(5, 3), twice=False)
    found = []
    for lib in (gs, torch):
        given = lib.arange(15.0).reshape(5, 3) % 7, lib.tensor(indices), lib.tensor(offsets)
        found.append(lib.embedding_bag(*given, False, MODES.index(mode), False, None, ended, padding))
    for mine, theirs in zip(*found, strict=True):
        # PyTorch leaves out which bag an index is in where it does not need it.
        if tuple(theirs.shape) != (0,):
            numpy.testing.assert_allclose(mine.numpy(), theirs.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("mode", MODES)
def test_bags_as_rows(torch: Any, mode: str) -> None:
    compare(
        torch,
        lambda lib, weight: lib.nn.functional.embedding_bag(lib.tensor(INDICES), weight, mode=mode, padding_idx=4),
        normal(5, 3),
        twice=False,
    )


@pytest.mark.torch
@pytest.mark.parametrize("padding", [None, 2])
def test_factors(torch: Any, padding: int | None) -> None:
    def bags(lib: Any, weight: Any, factors: Any) -> Any:
        settings = {"mode": "sum", "per_sample_weights": factors, "padding_idx": padding}
        return lib.nn.functional.embedding_bag(lib.tensor(INDICES), weight, **settings)

    compare(torch, bags, normal(5, 3), normal(2, 3), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("mode", MODES)
def test_nothing_in_the_bags(torch: Any, mode: str) -> None:
    def bags(lib: Any, weight: Any) -> Any:
        nothing = lib.zeros(0, dtype=lib.int64)
        return lib.nn.functional.embedding_bag(nothing, weight, lib.tensor([0, 0]), mode=mode)

    compare(torch, bags, normal(5, 3), twice=False)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_by_frequency(mode: str) -> None:
    """Each row's gradient is divided by how often all bags together named it."""
    weight, indices = gs.zeros(5, 2, requires_grad=True), gs.from_numpy(INDICES)
    grads = []
    for by_frequency in (False, True):
        weight.grad = None
        gs.nn.functional.embedding_bag(indices, weight, mode=mode, scale_grad_by_freq=by_frequency).sum().backward()
        grads.append(weight.grad.numpy())
    times = numpy.maximum(numpy.bincount(INDICES.reshape(-1), minlength=5), 1)
    numpy.testing.assert_allclose(grads[1], grads[0] / times[:, None], rtol=1e-6)


@pytest.mark.torch
def test_bags_renormalize_in_place(torch: Any) -> None:
    rows, found = normal(5, 3), []
    for lib in (gs, torch):
        weight = lib.tensor(rows)
        bags = lib.nn.functional.embedding_bag(lib.tensor(INDICES), weight, max_norm=1.0)
        found.append([weight.numpy(), bags.numpy()])
        assert weight._version == 1
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_bags_stay_on_the_device(mode: str, other_device: str) -> None:
    rows, found = normal(5, 3), []
    for place in ("cpu", other_device):
        weight = gs.from_numpy(rows).to(place).detach().requires_grad_()
        indices, offsets = (gs.tensor(x).to(place) for x in ([0, 2, 4, 2, 2, 1], [0, 2, 2, 3]))
        bags = gs.nn.functional.embedding_bag(indices, weight, offsets, mode=mode, padding_idx=4)
        (bags * bags).sum().backward()
        found.append([bags.detach().cpu().numpy(), weight.grad.cpu().numpy()])
    for here, there in zip(*found, strict=True):
        numpy.testing.assert_allclose(here, there)


def bag(indices: Any, offsets: Any = None, **settings: Any) -> Any:
    def call(lib: Any) -> Any:
        given = {key: value(lib) if callable(value) else value for key, value in settings.items()}
        starts = None if offsets is None else lib.tensor(offsets)
        return lib.nn.functional.embedding_bag(lib.tensor(indices), lib.ones(4, 2), starts, **given)

    return call


WRONG = {
    "an index beyond the rows": lambda lib: lib.nn.functional.embedding(lib.tensor([7]), lib.zeros(3, 2)),
    "no offsets": bag([0, 1]),
    "three dimensions": bag([[[0, 1]]]),
    "a first bag that starts late": bag([0, 1], [1]),
    "a last bag that starts beyond the end": bag([0, 1], [0, 3]),
    "a matrix of offsets": bag([0, 1], [[0]]),
    "unknown mode": bag([0, 1], [0], mode="median"),
    "no such row": bag([0, 9], [0]),
    "factors of means": bag([0, 1], [0], per_sample_weights=lambda lib: lib.ones(2)),
    "too many factors": bag([0, 1], [0], mode="sum", per_sample_weights=lambda lib: lib.ones(3)),
    "factors of another dtype": bag([0, 1], [0], mode="sum", per_sample_weights=lambda lib: lib.ones(2).double()),
    "frequencies of maxima": bag([0, 1], [0], mode="max", scale_grad_by_freq=True),
    "sparse maxima": bag([0, 1], [0], mode="max", sparse=True),
    "padding that is no row": bag([0, 1], [0], padding_idx=7),
    "indices that are no integers": bag([0.0, 1.0], [0]),
    "rows of integers": lambda lib: lib.nn.functional.embedding_bag(lib.tensor([[0]]), lib.ones(4, 2).long()),
    "padding in a module": lambda lib: lib.nn.EmbeddingBag(3, 2, padding_idx=5),
    "a weight of another shape": lambda lib: lib.nn.EmbeddingBag(3, 2, _weight=lib.ones(2, 2)),
    "rows of another shape": lambda lib: lib.nn.Embedding(3, 2, _weight=lib.ones(2, 2)),
    "a vector for rows": lambda lib: lib.nn.EmbeddingBag.from_pretrained(lib.ones(2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_an_infinite_row_of_padding_is_no_nan() -> None:
    weight = gs.tensor([[1.0], [numpy.inf]])
    bags = gs.nn.functional.embedding_bag(gs.tensor([[0, 1]]), weight, mode="sum", padding_idx=1)
    assert bags.tolist() == [[1.0]]


def test_the_gradient_of_a_maximum_that_is_nan_goes_to_the_nan() -> None:
    weight = gs.tensor([[1.0], [numpy.nan], [2.0]], requires_grad=True)
    gs.nn.functional.embedding_bag(gs.tensor([[0, 1, 2]]), weight, mode="max").sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[0.0], [1.0], [0.0]]
