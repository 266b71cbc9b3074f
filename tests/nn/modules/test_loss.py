"""Losses as modules: shown, kept and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.nn.modules.layers import normal, rng
from tests.side_by_side import compare, same_complaint

SIGNS, CLASSES, LABELS = [1.0, -1.0, 1.0, -1.0], [0, 2, 1, 1], [[0, -1, 1], [2, 1, -1], [-1, 0, 0], [0, 1, 2]]
WEIGHT = [0.5, 1.0, 2.0]


def weight(lib: Any) -> Any:
    return lib.tensor(WEIGHT, dtype=lib.float64)


# How it is made, the shapes of its inputs, and its target.
LOSSES: dict[str, tuple[Any, list[tuple[int, ...]], Any]] = {
    "ranking": (lambda lib: lib.nn.MarginRankingLoss(0.2), [(4,), (4,)], SIGNS),
    "hinge": (lambda lib: lib.nn.HingeEmbeddingLoss(), [(4,)], SIGNS),
    "cosine": (lambda lib: lib.nn.CosineEmbeddingLoss(0.1, reduction="sum"), [(4, 3), (4, 3)], SIGNS),
    "triplet": (lambda lib: lib.nn.TripletMarginLoss(swap=True), [(4, 3), (4, 3), (4, 3)], None),
    "triplet with distance": (lambda lib: lib.nn.TripletMarginWithDistanceLoss(), [(4, 3), (4, 3), (4, 3)], None),
    "triplet with similarity": (
        lambda lib: lib.nn.TripletMarginWithDistanceLoss(distance_function=lib.nn.CosineSimilarity()),
        [(4, 3), (4, 3), (4, 3)],
        None,
    ),
    "soft margin": (lambda lib: lib.nn.SoftMarginLoss(), [(4,)], SIGNS),
    "multilabel soft margin": (lambda lib: lib.nn.MultiLabelSoftMarginLoss(weight(lib)), [(4, 3)], [[0.0, 1.0, 1.0]]),
    "multilabel margin": (lambda lib: lib.nn.MultiLabelMarginLoss(), [(4, 3)], LABELS),
    "multi margin": (lambda lib: lib.nn.MultiMarginLoss(2, 0.5, weight(lib)), [(4, 3)], CLASSES),
    "poisson": (lambda lib: lib.nn.PoissonNLLLoss(full=True), [(4,)], [1.0, 2.0, 0.0, 4.0]),
    "gaussian": (lambda lib: lib.nn.GaussianNLLLoss(full=True), [(4,), (4,)], [0.5, 1.0, 2.0, 0.1]),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LOSSES)
def test_loss_is_that_of_pytorch(torch: Any, name: str) -> None:
    make, shapes, target = LOSSES[name]
    made = {lib: make(lib) for lib in (gs, torch)}
    assert repr(made[gs]) == repr(made[torch])
    assert list(made[gs].state_dict()) == list(made[torch].state_dict())
    assert vars(made[gs]).keys() - vars(gs.nn.ReLU()).keys() == vars(made[torch]).keys() - vars(torch.nn.ReLU()).keys()

    def loss(lib: Any, *inputs: Any) -> Any:
        return made[lib](*inputs, *([] if target is None else [lib.tensor(target)]))

    rng = numpy.random.default_rng(0)
    compare(torch, loss, *(rng.normal(size=shape) for shape in shapes), twice=False, names=False)


@pytest.mark.torch
def test_ctc(torch: Any) -> None:
    made = {lib: lib.nn.CTCLoss(2, "sum", True) for lib in (gs, torch)}
    assert repr(made[gs]) == repr(made[torch])

    def loss(lib: Any, x: Any) -> Any:
        return made[lib](x.log_softmax(2), lib.tensor([[0, 1], [1, 1]]), lib.tensor([4, 2]), lib.tensor([2, 2]))

    compare(torch, loss, numpy.random.default_rng(0).normal(size=(4, 2, 3)), twice=False)


def test_the_former_name_of_nll_loss_warns() -> None:
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        loss = gs.nn.NLLLoss2d(ignore_index=1)
    assert isinstance(loss, gs.nn.NLLLoss)
    assert loss.ignore_index == 1


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.TripletMarginLoss(margin=-1),
        lambda lib: lib.nn.TripletMarginWithDistanceLoss(margin=0),
        lambda lib: lib.nn.MultiMarginLoss(p=3),
        lambda lib: lib.nn.MultiMarginLoss(weight=lib.ones(2, 2)),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


@pytest.mark.torch
@pytest.mark.parametrize(
    "make",
    [
        lambda n: n.L1Loss(),
        lambda n: n.MSELoss(reduction="sum"),
        lambda n: n.SmoothL1Loss(beta=0.5),
        lambda n: n.HuberLoss(delta=0.5),
        lambda n: n.KLDivLoss(reduction="batchmean"),
        lambda n: n.BCEWithLogitsLoss(),
        lambda n: n.CrossEntropyLoss(),
    ],
)
def test_loss_of_two_tensors(torch: Any, make: Any) -> None:
    made = {lib: make(lib.nn) for lib in (gs, torch)}
    assert repr(made[gs]) == repr(made[torch])
    compare(torch, lambda lib, x, y: made[lib](x, y), normal(4, 3), rng.random((4, 3)), names=False, twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["NLLLoss", "CrossEntropyLoss"])
def test_loss_of_classes_with_weights(torch: Any, name: str) -> None:
    target, weight = numpy.array([0, 2, 1]), rng.random(3)
    made = {lib: getattr(lib.nn, name)(weight=lib.tensor(weight)) for lib in (gs, torch)}
    assert list(made[gs].state_dict()) == ["weight"]
    compare(torch, lambda lib, x: made[lib](x, lib.tensor(target)), normal(3, 3), twice=False)


@pytest.mark.torch
def test_binary_cross_entropy_of_probabilities(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.nn.BCELoss()(x.sigmoid(), lib.zeros_like(x)), normal(4), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (2, 3, 0), (3,)])
def test_the_mean_cross_entropy_of_no_probabilities_is_nan(torch: Any, shape: tuple[int, ...]) -> None:
    mine, theirs = (lib.nn.CrossEntropyLoss()(lib.zeros(shape), lib.ones(shape)).item() for lib in (gs, torch))
    assert mine == pytest.approx(theirs, nan_ok=True)
