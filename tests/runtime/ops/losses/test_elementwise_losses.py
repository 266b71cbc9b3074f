"""Losses beside PyTorch's: shapes, weights, ignored targets, reductions; and their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
REDUCTIONS = ["none", "mean", "sum"]


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


def between(*shape: int) -> Any:
    return rng.random(size=shape) * 0.8 + 0.1


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4, 3), (3,), (2, 3, 4), (2, 3, 2, 2), (2, 3, 2, 2, 2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore", [-100, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(
    torch: Any, shape: tuple[int, ...], reduction: str, weighted: bool, ignore: int, smoothing: float
) -> None:
    classes, size = (shape[0], ()) if len(shape) == 1 else (shape[1], (shape[0], *shape[2:]))
    target = rng.integers(0, classes, size=size)
    weight = between(classes) if weighted else None

    def loss(lib: Any, scores: Any) -> Any:
        return lib.nn.functional.cross_entropy(
            scores,
            lib.tensor(target),
            None if weight is None else lib.tensor(weight),
            reduction=reduction,
            ignore_index=ignore,
            label_smoothing=smoothing,
        )

    compare(torch, loss, normal(*shape), names=not smoothing)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_of_probabilities(torch: Any, reduction: str) -> None:
    for smoothing in (0.0, 0.2):
        compare(
            torch,
            lambda lib, x, t: lib.nn.functional.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing),  # noqa: B023
            normal(5, 3),
            between(5, 3),
            names=False,
        )


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("name", "settings"),
    [("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.7}), ("huber_loss", {"delta": 0.7})],
)
def test_regression(torch: Any, name: str, settings: dict[str, Any], reduction: str) -> None:
    def loss(lib: Any, x: Any, t: Any) -> Any:
        return getattr(lib.nn.functional, name)(x, t, reduction=reduction, **settings)

    compare(torch, loss, normal(3, 4), normal(3, 4))


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(torch: Any, reduction: str) -> None:
    compare(
        torch,
        lambda lib, x, t: lib.nn.functional.binary_cross_entropy(x, t, reduction=reduction),
        between(3, 4),
        between(3, 4),
    )
    positive = between(4) * 3
    for pos_weight in (None, positive):
        compare(
            torch,
            lambda lib, x, t: lib.nn.functional.binary_cross_entropy_with_logits(
                x,
                t,
                reduction=reduction,
                pos_weight=None if pos_weight is None else lib.tensor(pos_weight),  # noqa: B023
            ),
            normal(3, 4),
            between(3, 4),
        )


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["none", "batchmean", "sum"])
@pytest.mark.parametrize("logs", [False, True])
def test_kl_div(torch: Any, reduction: str, logs: bool) -> None:
    compare(
        torch,
        lambda lib, x, t: lib.nn.functional.kl_div(x, t, reduction=reduction, log_target=logs),
        normal(3, 4),
        between(3, 4),
        names=False,
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.functional.binary_cross_entropy(lib.tensor([1.5]), lib.tensor([1.0])),
        lambda lib: lib.nn.functional.binary_cross_entropy_with_logits(lib.zeros(2), lib.zeros(3)),
        lambda lib: lib.nn.functional.nll_loss(lib.zeros(2, 3), lib.tensor([1, 5])),
        lambda lib: lib.nn.functional.nll_loss(lib.zeros(2, 3), lib.tensor([1, -1])),
        lambda lib: lib.nn.functional.nll_loss(lib.zeros(2, 3), lib.tensor([1, 0, 1])),
        lambda lib: lib.nn.functional.nll_loss(lib.zeros(2, 3), lib.tensor([1.0, 0.0])),
        lambda lib: lib.nn.functional.nll_loss(lib.zeros(2, 3), lib.tensor([1, 0]), weight=lib.ones(2)),
        lambda lib: lib.nn.functional.mse_loss(lib.zeros(2), lib.zeros(2), reduction="x"),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


KINDS = ["float32", "float64", "float16", "int64", "bool", "complex64"]
LOSSES = ["mse_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits"]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of_target", KINDS)
def test_dtypes_are_taken_mixed_and_refused_as_pytorch_does(torch: Any, name: str, kind: str, of_target: str) -> None:
    def loss(lib: Any) -> Any:
        x, target = (lib.ones(2, dtype=getattr(lib, k)) for k in (kind, of_target))
        return getattr(lib.nn.functional, name)(x, target)

    try:
        expected = loss(torch)
    except RuntimeError:
        same_complaint(torch, loss)
        return
    assert str(loss(gs).dtype).removeprefix("gradscope.") == str(expected.dtype).removeprefix("torch.")


@pytest.mark.torch
def test_kl_div_of_what_is_no_probability_is_nan(torch: Any) -> None:
    for lib in (gs, torch):
        losses = lib.nn.functional.kl_div(lib.zeros(3), lib.tensor([-1.0, 0.0, math.nan]), reduction="none")
        assert [math.isnan(loss) for loss in losses.tolist()] == [True, False, True]


def test_certain_answers_have_finite_losses() -> None:
    probabilities = gs.tensor([0.0, 1.0, 0.5])
    losses = gs.nn.functional.binary_cross_entropy(probabilities, gs.ones(3), reduction="none")
    assert losses.tolist() == [100.0, 0.0, pytest.approx(math.log(2))]
    scores = gs.tensor([1e4, -1e4], requires_grad=True)
    loss = gs.nn.functional.binary_cross_entropy_with_logits(scores, gs.tensor([0.0, 1.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 2e4
    assert scores.grad.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_nothing_but_ignored_targets_is_nan_without_a_gradient(smoothing: float) -> None:
    scores = gs.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    loss = gs.nn.functional.cross_entropy(scores, gs.tensor([1]), ignore_index=1, label_smoothing=smoothing)
    loss.backward()
    assert math.isnan(loss.item())
    assert scores.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_cross_entropy_makes_two_nodes() -> None:
    loss = gs.nn.functional.cross_entropy(gs.zeros(2, 3, requires_grad=True), gs.tensor([0, 1]))
    assert loss.grad_fn.name() == "NllLossBackward0"
    assert loss.grad_fn.next_functions[0][0].name() == "LogSoftmaxBackward0"
    assert loss.grad_fn._saved_ignore_index == -100
    assert loss.grad_fn._saved_reduction == 1


def test_writing_the_log_probabilities_is_seen() -> None:
    logs = gs.zeros(2, 3, requires_grad=True).log_softmax(1)
    loss = gs.nn.functional.nll_loss(logs, gs.tensor([0, 1]))
    with gs.no_grad():
        logs.zero_()
    with pytest.raises(gs.SavedTensorModifiedError):
        loss.backward()


def test_other_shapes_warn() -> None:
    with pytest.warns(UserWarning, match="Using a target size"):
        gs.nn.functional.mse_loss(gs.zeros(2, 1), gs.zeros(2))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_elements(torch: Any, name: str, reduction: str) -> None:
    weight = between(2, 3)

    def loss(lib: Any, x: Any, y: Any) -> Any:
        return getattr(lib.nn.functional, name)(x, y, reduction=reduction, weight=lib.tensor(weight))

    compare(torch, loss, normal(2, 3), normal(2, 3), names=False)
    same_complaint(torch, lambda m: getattr(m.nn.functional, name)(m.ones(2), m.ones(2), weight=m.ones(3)))


def test_linear_cross_entropy_is_the_cross_entropy_of_scores() -> None:
    functional = gs.nn.functional
    x, weight, bias = gs.randn(4, 3), gs.randn(5, 2, 3), gs.randn(5, 2)
    target = gs.tensor([[0, 1], [2, -100], [4, 3], [1, 1]])
    scores = gs.einsum("ni,cki->nck", x, weight) + bias
    for options in ({}, {"reduction": "sum"}, {"label_smoothing": 0.1}, {"weight": gs.rand(5)}):
        found = functional.linear_cross_entropy(x, weight, target, linear_bias=bias, **options)
        gs.testing.assert_close(found, functional.cross_entropy(scores, target, **options))
    ignored = functional.linear_cross_entropy(x, weight, target.clamp_min(0), linear_bias=bias, ignore_index=0)
    gs.testing.assert_close(ignored, functional.cross_entropy(scores, target.clamp_min(0), ignore_index=0))


@pytest.mark.torch
@pytest.mark.parametrize("call", ["smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_many_elements_and_of_extremes(torch: Any, call: str, reduction: str) -> None:
    generator = numpy.random.default_rng(0)
    x = numpy.concatenate([generator.normal(size=3000) * 2, [0.5, -0.5, 0.0, 1e30, -1e30, 200.0, -200.0]]).astype("f")
    target = (generator.random(len(x)) > 0.5).astype("f")
    options = {"smooth_l1_loss": {"beta": 0.5}, "huber_loss": {"delta": 0.5}}.get(call, {})
    found = []
    for lib in (gs, torch):
        leaf = lib.tensor(x, requires_grad=True)
        loss = getattr(lib.nn.functional, call)(leaf, lib.tensor(target), reduction=reduction, **options)
        (first,) = lib.autograd.grad(loss.sum(), leaf, create_graph=True)
        (second,) = lib.autograd.grad((first * first).sum(), leaf)
        found.append([part.detach().numpy() for part in (loss, first, second)])
    for ours, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
