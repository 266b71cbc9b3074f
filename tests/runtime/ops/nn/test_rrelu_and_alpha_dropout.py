"""Random slopes, dropout that keeps mean and variance, dropout of channels, Gumbel softmax, shuffled channels."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
F = gs.nn.functional


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


# --- rectifiers of random slope ---------------------------------------------------------------------------------------


@pytest.mark.torch
def test_rrelu_of_one_slope_is_that_of_pytorch(torch: Any) -> None:
    """Outside training the slope is the mean of the bounds; between equal bounds nothing is random."""
    x = normal(3, 4)
    for function in (
        lambda lib, x: lib.nn.functional.rrelu(x, 0.1, 0.9),
        lambda lib, x: lib.nn.functional.rrelu(x, 0.3, 0.3, True),
        lambda lib, x: lib.rrelu_(x * 1, 0.1, 0.9),
        lambda lib, x: lib.nn.functional.rrelu(x * 1, 0.3, 0.3, True, True),
        lambda lib, x: lib.nn.RReLU(0.1, 0.9).eval()(x),
    ):
        compare(torch, function, x)


def test_rrelu_draws_its_slopes_and_its_gradient_is_they() -> None:
    gs.manual_seed(0)
    x = -gs.ones(10000, requires_grad=True)
    x.retain_grad()
    y = F.rrelu(x, 0.2, 0.6, training=True)
    y.sum().backward()
    slopes = -y.detach().numpy()
    assert 0.2 <= slopes.min() < 0.21
    assert 0.59 < slopes.max() <= 0.6
    assert slopes.mean() == pytest.approx(0.4, abs=0.01)
    assert x.grad.tolist() == slopes.tolist()
    assert gs.nn.RReLU()(gs.ones(3)).tolist() == [1.0, 1.0, 1.0]


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    gs.manual_seed(0)
    x = gs.randn(500, 500, requires_grad=True)
    y = F.alpha_dropout(x, 0.3, training=True)
    assert y.mean().item() == pytest.approx(0.0, abs=0.02)
    assert y.std().item() == pytest.approx(1.0, abs=0.02)
    y.sum().backward()
    kept = x.grad.numpy() != 0
    assert kept.mean() == pytest.approx(0.7, abs=0.01)
    assert len(numpy.unique(y.detach().numpy()[~kept].round(5))) == 1


@pytest.mark.torch
def test_alpha_dropout_that_is_certain(torch: Any) -> None:
    x = normal(2, 3)
    for name in ("alpha_dropout", "feature_alpha_dropout"):
        compare(torch, lambda lib, x: getattr(lib.nn.functional, name)(x, 1.0, True), x)  # noqa: B023
        compare(torch, lambda lib, x: getattr(lib, name + "_")(x * 1, 1.0, True), x)  # noqa: B023
    compare(torch, lambda lib, x: lib.feature_dropout(x, 1.0, True), x)
    compare(torch, lambda lib, x: lib.feature_dropout_(x * 1, 1.0, True), x)


def test_alpha_dropout_outside_training_is_the_input_itself() -> None:
    x = gs.ones(3, 2)
    assert F.alpha_dropout(x) is F.feature_alpha_dropout(x) is x
    assert gs.alpha_dropout(x, 0.5, False) is gs.alpha_dropout(x, 0.0, True) is x
    assert gs.nn.AlphaDropout().eval()(x) is gs.nn.FeatureAlphaDropout().eval()(x) is x


def test_alpha_dropout_in_place() -> None:
    gs.manual_seed(0)
    x = gs.randn(4, 3)
    assert F.alpha_dropout(x, 0.5, True, inplace=True) is x
    assert x._version == 2


def channels(y: Any, count: int) -> Any:
    rows = y.numpy().reshape(count, -1)
    assert (rows == rows[:, :1]).all()
    return rows[:, 0]


@pytest.mark.filterwarnings("ignore:dropout2d. Received a 3D input:UserWarning")
@pytest.mark.parametrize(
    ("function", "shape", "count"),
    [
        (F.dropout1d, (10, 20, 3), 200),
        (F.dropout1d, (200, 3), 200),
        (F.dropout2d, (10, 20, 2, 2), 200),
        (F.dropout2d, (10, 20, 3), 200),
        (F.dropout3d, (10, 20, 2, 2, 2), 200),
        (F.dropout3d, (200, 2, 2, 2), 200),
        (lambda x: F.feature_alpha_dropout(x, 0.5, True), (10, 20, 3), 200),
    ],
)
def test_whole_channels_are_dropped(function: Any, shape: tuple[int, ...], count: int) -> None:
    gs.manual_seed(0)
    found = channels(function(gs.ones(*shape)), count)
    assert 60 < (found == found.max()).sum() < 140
    assert len(numpy.unique(found)) == 2


def test_channels_of_one_example_in_place() -> None:
    gs.manual_seed(0)
    x = gs.ones(50, 4)
    assert F.dropout1d(x, inplace=True) is x
    assert set(channels(x, 50)) == {0.0, 2.0}


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 3), (3, 3, 3), (2, 2, 2, 2, 2)], ids=str)
def test_dropout2d_warns_of_other_dimensions(torch: Any, shape: tuple[int, ...]) -> None:
    said = []
    for lib in (gs, torch):
        with pytest.warns(UserWarning, match="dropout2d: Received") as caught:
            lib.nn.functional.dropout2d(lib.ones(*shape))
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_gumbel_softmax_draws_by_the_probabilities() -> None:
    gs.manual_seed(0)
    logits = gs.tensor([0.2, 0.3, 0.5]).log().expand(20000, 3)
    draws = F.gumbel_softmax(logits, hard=True)
    assert set(draws.unique().tolist()) == {0.0, 1.0}
    numpy.testing.assert_allclose(draws.mean(0).numpy(), [0.2, 0.3, 0.5], atol=0.02)
    soft = F.gumbel_softmax(logits[:10], tau=0.5)
    numpy.testing.assert_allclose(soft.sum(-1).numpy(), numpy.ones(10), rtol=1e-5)


def test_a_hard_draw_has_the_gradient_of_the_soft_one() -> None:
    grads = []
    for hard in (False, True):
        gs.manual_seed(3)
        logits = gs.tensor([[0.1, 0.5, -0.3]], requires_grad=True)
        drawn = F.gumbel_softmax(logits, tau=0.7, hard=hard)
        (drawn * gs.tensor([1.0, 2.0, 4.0])).sum().backward()
        grads.append(logits.grad.tolist())
    assert drawn.grad_fn.name() == "AddBackward0"
    assert grads[0] == grads[1]
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        F.gumbel_softmax(logits, eps=1.0)


@pytest.mark.torch
def test_shuffled_channels(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.channel_shuffle(x, 3), normal(2, 6, 2))
    compare(torch, lambda lib, x: lib.nn.functional.channel_shuffle(x, 2), normal(1, 4, 2, 3))


@pytest.mark.torch
def test_bilinear(torch: Any) -> None:
    arrays = normal(2, 3), normal(2, 4), normal(5, 3, 4), normal(5)
    compare(torch, lambda lib, *inputs: lib.bilinear(*inputs), *arrays, names=False)


def test_noise_is_drawn_on_the_device(other_device: str) -> None:
    x = gs.randn(4, 6, 2).to(other_device).requires_grad_()
    for function in (
        lambda x: F.rrelu(x, training=True),
        lambda x: F.rrelu(x),
        lambda x: F.alpha_dropout(x, 0.5, True),
        lambda x: F.feature_alpha_dropout(x, 0.5, True),
        lambda x: F.gumbel_softmax(x, hard=True),
        lambda x: F.dropout1d(x),
        lambda x: F.channel_shuffle(x, 2),
    ):
        y = function(x)
        y.sum().backward()
        assert y.device.type == x.grad.device.type == other_device


WRONG = {
    "bounds the wrong way round": lambda lib: lib.nn.functional.rrelu(lib.ones(2), 0.5, 0.2, True),
    "bounds without end": lambda lib: lib.rrelu(lib.ones(2), 0.5, float("inf")),
    "integers in training": lambda lib: lib.nn.functional.rrelu(lib.ones(2).long(), training=True),
    "integers": lambda lib: lib.nn.functional.rrelu(lib.ones(2).long()),
    "no probability": lambda lib: lib.nn.functional.alpha_dropout(lib.ones(2), 2.0),
    "no channels": lambda lib: lib.nn.functional.feature_alpha_dropout(lib.ones(2), 0.5, True),
    "alpha dropout of integers": lambda lib: lib.nn.functional.alpha_dropout(lib.ones(2).long(), 0.5, True),
    "matrix of channels": lambda lib: lib.nn.Softmax2d()(lib.ones(2, 2)),
    "channels alone": lambda lib: lib.channel_shuffle(lib.ones(2, 3), 2),
    "groups that do not fit": lambda lib: lib.channel_shuffle(lib.ones(2, 3, 2), 2),
    "no groups": lambda lib: lib.channel_shuffle(lib.ones(2, 4, 2), 0),
    "dropout1d of a vector": lambda lib: lib.nn.functional.dropout1d(lib.ones(2)),
    "dropout1d of images": lambda lib: lib.nn.functional.dropout1d(lib.ones(2, 2, 2, 2)),
    "no probability in a module": lambda lib: lib.nn.AlphaDropout(2),
    "features of a vector": lambda lib: lib.feature_dropout(lib.ones(2), 0.5, True),
}


@pytest.mark.torch
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)
