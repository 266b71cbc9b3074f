"""Losses of margins and of distributions beside PyTorch's: reductions, weights, shapes; and their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
REDUCTIONS = ["none", "mean", "sum"]
SIGNS = numpy.array([1.0, -1.0, 1.0, -1.0])


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


def positive(*shape: int) -> Any:
    return rng.random(size=shape) + 0.1


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_signs(torch: Any, reduction: str) -> None:
    def of(name: str, **settings: Any) -> Any:
        def loss(lib: Any, *inputs: Any) -> Any:
            return getattr(lib.nn.functional, name)(*inputs, lib.tensor(SIGNS), reduction=reduction, **settings)

        return loss

    compare(torch, of("margin_ranking_loss", margin=0.3), normal(4), normal(4))
    compare(torch, of("hinge_embedding_loss", margin=0.3), normal(4))
    compare(torch, of("cosine_embedding_loss", margin=0.1), normal(4, 3), normal(4, 3))
    compare(torch, of("soft_margin_loss"), normal(4))
    compare(torch, of("soft_margin_loss"), normal(3, 4))


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cosine_embedding_of_two_vectors(torch: Any, reduction: str) -> None:
    def loss(lib: Any, x: Any, y: Any) -> Any:
        return lib.nn.functional.cosine_embedding_loss(x, y, lib.tensor(-1), -0.9, reduction=reduction)

    compare(torch, loss, normal(3), normal(3))


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("swap", [False, True])
def test_triplets(torch: Any, reduction: str, swap: bool) -> None:
    def euclidean(lib: Any, *inputs: Any, p: float = 2) -> Any:
        return lib.nn.functional.triplet_margin_loss(*inputs, 2.0, p, swap=swap, reduction=reduction)

    def squared(lib: Any, *inputs: Any) -> Any:
        return lib.nn.functional.triplet_margin_with_distance_loss(
            *inputs, distance_function=lambda x, y: ((x - y) ** 2).sum(-1), swap=swap, reduction=reduction
        )

    inputs = normal(4, 3), normal(4, 3), normal(4, 3)
    compare(torch, euclidean, *inputs)
    compare(torch, lambda lib, *given: euclidean(lib, *given, p=3), *inputs)
    compare(torch, squared, *inputs)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 2.0]])
def test_losses_of_classes(torch: Any, reduction: str, weight: Any) -> None:
    def weights(lib: Any) -> Any:
        return None if weight is None else lib.tensor(weight, dtype=lib.float64)

    def soft(lib: Any, x: Any, y: Any) -> Any:
        return lib.nn.functional.multilabel_soft_margin_loss(x, y, weights(lib), reduction=reduction)

    compare(torch, soft, normal(4, 3), rng.random((4, 3)))
    for p in (1, 2):
        for target, shape in (([0, 2, 1, 1], (4, 3)), (1, (3,)), ([1], (3,))):
            compare(
                torch,
                lambda lib, x: lib.nn.functional.multi_margin_loss(
                    x,
                    lib.tensor(target),  # noqa: B023
                    p,  # noqa: B023
                    0.7,
                    weights(lib),
                    reduction=reduction,
                ),
                normal(*shape),
                twice=False,  # PyTorch has no second derivative of it
            )


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("target", [[[0, 2, -1], [1, -1, 2], [-1, 0, 1], [2, 2, 0]], [0, 2, -1]])
def test_multilabel_margin(torch: Any, reduction: str, target: Any) -> None:
    def loss(lib: Any, x: Any) -> Any:
        return lib.nn.functional.multilabel_margin_loss(x, lib.tensor(target), reduction=reduction)

    compare(torch, loss, normal(*numpy.shape(target)), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("full", [False, True])
def test_likelihoods(torch: Any, reduction: str, full: bool) -> None:
    counts = numpy.array([0.0, 1.0, 2.0, 5.0])
    for logarithm in (True, False):
        compare(
            torch,
            lambda lib, x: lib.nn.functional.poisson_nll_loss(
                x,
                lib.tensor(counts),
                logarithm,  # noqa: B023
                full,
                reduction=reduction,
            ),
            positive(4),
        )
    for variances in ((4, 3), (4,), (4, 1)):
        compare(
            torch,
            lambda lib, x, y, v: lib.nn.functional.gaussian_nll_loss(x, y, v, full, reduction=reduction),
            normal(4, 3),
            normal(4, 3),
            positive(*variances),
        )
    compare(
        torch,
        lambda lib, x, y: lib.nn.functional.gaussian_nll_loss(x, y, 0.5, full, reduction=reduction),
        normal(4),
        normal(4),
    )


@pytest.mark.torch
def test_losses_by_the_number_of_the_reduction(torch: Any) -> None:
    """The functions of the package itself take 0, 1 and 2, as PyTorch's do."""
    for reduction in (0, 1, 2):

        def losses(lib: Any, x: Any, y: Any, reduction: int = reduction) -> Any:
            target = lib.tensor(SIGNS)
            log_probs = lib.stack([x, y], 1).reshape(4, 1, 2).log_softmax(2)
            found = [
                lib.margin_ranking_loss(x, y, target, 0.2, reduction),
                lib.hinge_embedding_loss(x, target, 0.2, reduction),
                lib.cosine_embedding_loss(x[:, None], y[:, None], target, 0.2, reduction),
                lib.triplet_margin_loss(x[:, None], y[:, None], target[:, None], reduction=reduction),
                lib.poisson_nll_loss(x, y.exp(), True, False, 1e-8, reduction),
                lib.kl_div(x, y.exp(), reduction),
                lib.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction=reduction),
                lib.ctc_loss(log_probs, lib.tensor([[1, 1]]), [4], [2], 0, reduction),
            ]
            return lib.cat([part.reshape(-1) for part in found])

        compare(torch, losses, normal(4), normal(4), twice=False)


def losses_of(name: str, *arguments: Any, **settings: Any) -> Any:
    """Return a call of a loss: a tuple stands for ones of that shape, a list for a tensor."""

    def call(lib: Any) -> Any:
        def made(value: Any) -> Any:
            if isinstance(value, list):
                return lib.tensor(value)
            return lib.ones(*value) if isinstance(value, tuple) else value

        given = {key: made(value) for key, value in settings.items()}
        return getattr(lib.nn.functional, name)(*map(made, arguments), **given)

    return call


WRONG = {
    "other dimensions": losses_of("margin_ranking_loss", (2,), (2, 1), (2,)),
    "vectors for a row of targets": losses_of("cosine_embedding_loss", (4,), (4,), (1,)),
    "a matrix of targets": losses_of("cosine_embedding_loss", (4, 3), (4, 3), (4, 1)),
    "triplet of other dimensions": losses_of("triplet_margin_loss", (2, 3), (3,), (2, 3)),
    "no margin": losses_of("triplet_margin_loss", (2, 3), (2, 3), (2, 3), margin=0),
    "negative margin": losses_of("triplet_margin_with_distance_loss", (2, 3), (2, 3), (2, 3), margin=-1),
    "no such class": losses_of("multi_margin_loss", (2, 3), [0, 3]),
    "a cubic margin": losses_of("multi_margin_loss", (2, 3), [0, 1], p=3),
    "a matrix of weights": losses_of("multi_margin_loss", (2, 3), [0, 1], weight=(2, 2)),
    "too few weights": losses_of("multi_margin_loss", (2, 3), [0, 1], weight=(2,)),
    "too many targets": losses_of("multi_margin_loss", (2, 3), [0, 1, 2]),
    "targets of numbers": losses_of("multi_margin_loss", (2, 3), [0.0, 1.0]),
    "images of classes": losses_of("multi_margin_loss", (2, 3, 2), [0, 1]),
    "no such label": losses_of("multilabel_margin_loss", (2, 3), [[0, 3, -1], [0, 0, 0]]),
    "labels of another shape": losses_of("multilabel_margin_loss", (2, 3), [[0, 1], [0, 0]]),
    "labels of numbers": losses_of("multilabel_margin_loss", (2, 3), [[0.0, 1, 1], [0, 0, 1]]),
    "negative variance": losses_of("gaussian_nll_loss", (2, 3), (2, 3), -1.0),
    "negative variances": losses_of("gaussian_nll_loss", (2,), (2,), [1.0, -1.0]),
    "variances of another size": losses_of("gaussian_nll_loss", (2, 3), (2, 3), (3,)),
    "reduction of a likelihood": losses_of("gaussian_nll_loss", (2, 3), (2, 3), (2, 3), reduction="x"),
    "unknown reduction": losses_of("poisson_nll_loss", (2,), (2,), reduction="x"),
    "targets to be learnt": lambda lib: lib.nn.functional.soft_margin_loss(
        lib.ones(2), lib.ones(2, requires_grad=True)
    ),
    "weights to be learnt": lambda lib: lib.nn.functional.multi_margin_loss(
        lib.ones(2, 3), lib.tensor([0, 1]), weight=lib.ones(3, requires_grad=True)
    ),
    "integers": lambda lib: lib.nn.functional.soft_margin_loss(lib.ones(2).long(), lib.ones(2).long()),
}


@pytest.mark.torch
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_a_large_margin_is_exact() -> None:
    scores = gs.tensor([-1000.0, 1000.0], requires_grad=True)
    loss = gs.nn.functional.soft_margin_loss(scores, gs.ones(2), reduction="sum")
    loss.backward()
    assert loss.item() == 1000.0
    assert scores.grad.tolist() == [-1.0, 0.0]


def test_no_examples() -> None:
    scores, labels = gs.zeros(0, 3, requires_grad=True), gs.zeros(0, 3, dtype=gs.int64)
    F = gs.nn.functional
    for loss in (F.multilabel_margin_loss(scores, labels), F.multi_margin_loss(scores, labels[:, 0])):
        loss.backward()
        assert loss.item() == 0.0
        assert scores.grad.shape == (0, 3)
    assert F.multi_margin_loss(scores, labels[:, 0], reduction="none").shape == (0,)


def test_an_infinite_weight_is_no_nan() -> None:
    scores = gs.tensor([[0.0, 3.0], [3.0, 0.0]], requires_grad=True)
    loss = gs.nn.functional.multi_margin_loss(scores, gs.tensor([1, 0]), weight=gs.tensor([math.inf, math.inf]))
    loss.backward()
    assert loss.item() == 0.0
    assert scores.grad is not None
    assert scores.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
