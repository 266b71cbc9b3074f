"""Initial values: distributions, structure, and that writing them leaves no history."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.nn import init
from tests.side_by_side import same_complaint


def spread(tensor: gs.Tensor) -> tuple[float, float, float]:
    values = tensor.double().numpy()
    return float(values.mean()), float(values.std()), float(abs(values).max())


@pytest.mark.parametrize(
    ("fill", "deviation", "bound"),
    [
        (lambda t: init.uniform_(t, -2, 2), 2 / math.sqrt(3), 2),
        (lambda t: init.normal_(t, 0, 3), 3, math.inf),
        (lambda t: init.xavier_uniform_(t, 2.0), 2 * math.sqrt(2 / 500), 2 * math.sqrt(6 / 500)),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / 500), math.inf),
        (lambda t: init.kaiming_uniform_(t, math.sqrt(5)), 1 / math.sqrt(3 * 200), 1 / math.sqrt(200)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 300), math.inf),
        (lambda t: init.trunc_normal_(t, 0, 1, -1, 1), 0.5396, 1),
    ],
)
def test_distributions(fill: Any, deviation: float, bound: float) -> None:
    gs.manual_seed(0)
    weight = gs.nn.Parameter(gs.empty(300, 200))
    assert fill(weight) is weight
    mean, found, largest = spread(weight.detach())
    assert mean == pytest.approx(0, abs=0.05 * deviation)
    assert found == pytest.approx(deviation, rel=0.03)
    assert largest <= bound * (1 + 1e-6)
    assert weight.is_leaf
    assert weight._version > 0


def test_constants_and_structure() -> None:
    weight = gs.empty(2, 3)
    assert init.ones_(weight).tolist() == [[1.0] * 3] * 2
    assert init.zeros_(weight).tolist() == [[0.0] * 3] * 2
    assert init.constant_(weight, 2.5)[0, 0].item() == 2.5
    assert init.eye_(weight).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_dirac_passes_channels_on() -> None:
    weight = init.dirac_(gs.empty(4, 2, 3, 3), groups=2)
    x = gs.rand(1, 4, 5, 5)
    assert gs.conv2d(x, weight, padding=1, groups=2).tolist() == x.tolist()


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    matrix = init.orthogonal_(gs.empty(*shape, dtype=gs.float64), gain=2).numpy().reshape(shape[0], -1)
    rows, columns = matrix.shape
    product = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    numpy.testing.assert_allclose(product, 4 * numpy.eye(min(rows, columns)), atol=1e-12)


@pytest.mark.torch
def test_gains_and_errors_are_those_of_pytorch(torch: Any) -> None:
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert init.calculate_gain("leaky_relu", 0.2) == torch.nn.init.calculate_gain("leaky_relu", 0.2)
    for wrong in (
        lambda lib: lib.nn.init.calculate_gain("x"),
        lambda lib: lib.nn.init.xavier_uniform_(lib.empty(3)),
        lambda lib: lib.nn.init.eye_(lib.empty(3)),
        lambda lib: lib.nn.init.kaiming_uniform_(lib.empty(3, 3), mode="x"),
        lambda lib: lib.nn.init.orthogonal_(lib.empty(3)),
    ):
        same_complaint(torch, wrong)


def test_nothing_to_fill_warns() -> None:
    with pytest.warns(UserWarning, match="zero-element"):
        init.kaiming_uniform_(gs.empty(0, 3))


def test_sparse_columns() -> None:
    gs.manual_seed(0)
    weight = gs.nn.Parameter(gs.empty(40, 30))
    assert init.sparse_(weight, 0.31, std=2.0) is weight
    zeros = (weight == 0).sum(0)
    assert zeros.tolist() == [13] * 30
    assert len({tuple(column) for column in (weight == 0).T.tolist()}) == 30
    assert weight.detach()[weight != 0].std().item() == pytest.approx(2.0, rel=0.1)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.init.sparse_(lib.empty(3), 0.1),
        lambda lib: lib.nn.init.dirac_(lib.empty(3, 2, 3), 2),
        lambda lib: lib.nn.init.eye_(lib.empty(2)),
    ],
)
def test_wrong_shapes_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_former_names_warn() -> None:
    former = [name for name in init.__all__ if name + "_" in init.__all__]
    assert len(former) == 11
    with pytest.warns(FutureWarning, match=r"`nn.init.constant` is now deprecated in favor of `nn.init.constant_`\."):
        assert init.constant(gs.empty(2), 1.5).tolist() == [1.5, 1.5]
    with pytest.warns(FutureWarning, match=r"nn\.init\.eye_"):
        assert init.eye(gs.empty(1, 2)).tolist() == [[1.0, 0.0]]
