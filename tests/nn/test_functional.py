"""Functions of neural networks in corner cases: NaN, infinities, certain answers, empty and 0-d tensors.

What PyTorch computes we compute too, with the same values and gradients.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal
from tests.runtime.ops.test_corners import compare

PLAIN = numpy.array([[0.2, 0.5, 0.9], [0.1, 0.7, 0.4]])
EXTREME = numpy.array([[numpy.nan, numpy.inf, -numpy.inf], [0.0, 1.0, -0.0]])
CERTAIN = numpy.array([[0.0, 1.0, 0.5], [1.0, 0.0, 1.0]])
NOTHING, SCALAR = numpy.empty((2, 0)), numpy.array(0.5)
REDUCTIONS = ("mean", "sum", "none")


@pytest.mark.torch
@pytest.mark.parametrize(
    "name",
    [
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "mse_loss",
        "smooth_l1_loss",
    ],
)
def test_losses_of_elements(torch: Any, name: str) -> None:
    pairs = [(x, x) for x in (PLAIN, EXTREME, CERTAIN, NOTHING, SCALAR)]
    pairs += [(PLAIN, CERTAIN), (CERTAIN, PLAIN), (PLAIN, EXTREME), (EXTREME, PLAIN), (PLAIN, SCALAR)]
    for (x, y), reduction in itertools.product(pairs, REDUCTIONS):
        compare(torch, lambda lib, a, b, r=reduction: getattr(lib.nn.functional, name)(a, b, reduction=r), [x, y])


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, [1.0, 0.0, 2.0]])
@pytest.mark.parametrize("target", [[0, 2], [1, -100], [-100, -100], [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]])
def test_cross_entropy(torch: Any, reduction: str, weight: Any, target: Any) -> None:
    def loss(lib: Any, x: Any, smoothing: float) -> Any:
        wanted = lib.tensor(target, dtype=lib.int64 if isinstance(target[0], int) else lib.float64)
        each = None if weight is None else lib.tensor(weight, dtype=lib.float64)
        return lib.nn.functional.cross_entropy(x, wanted, each, reduction=reduction, label_smoothing=smoothing)

    for x, smoothing in itertools.product((PLAIN, EXTREME, CERTAIN), (0.0, 0.1)):
        compare(torch, lambda lib, a, s=smoothing: loss(lib, a, s), [x])


@pytest.mark.torch
def test_no_classes_are_no_loss(torch: Any) -> None:
    for reduction in REDUCTIONS:
        compare(
            torch,
            lambda lib, x, r=reduction: lib.nn.functional.cross_entropy(x, lib.tensor([-100, -100]), reduction=r),
            [NOTHING],
        )


@pytest.mark.torch
def test_rows_without_columns(torch: Any) -> None:
    compare(torch, lambda lib, w: lib.nn.functional.embedding(lib.tensor([0, 1, 1]), w, 1), [NOTHING])


@pytest.mark.torch
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(torch: Any, dim: int) -> None:
    for x in (PLAIN, EXTREME):
        compare(torch, lambda lib, a: lib.nn.functional.glu(a, dim), [numpy.concatenate([x, x], axis=1)])


REFUSED = {
    "a probability beyond 1 as target": lambda lib: lib.nn.functional.binary_cross_entropy(
        lib.ones(2) / 2, lib.ones(2) * 2
    ),
    "a stride of 0": lambda lib: lib.nn.functional.max_pool2d(lib.ones(1, 1, 4, 4), 2, 0),
    "images without channels": lambda lib: lib.nn.functional.adaptive_avg_pool2d(lib.ones(2, 3), 2),
    "more cut off than there is": lambda lib: lib.nn.functional.pad(lib.ones(2), (-2, -1)),
    "classes of a scalar": lambda lib: lib.nn.functional.cross_entropy(lib.tensor(0.5), lib.tensor([0, 1])),
    "odd halves": lambda lib: lib.nn.functional.glu(lib.ones(2, 3)),
    "halves of a scalar": lambda lib: lib.nn.functional.glu(lib.tensor(1.0)),
    "an approximation by position": lambda lib: lib.nn.functional.gelu(lib.ones(2), "tanh"),
}


@pytest.mark.torch
@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_refusals(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


LOSSES = {
    "mse_loss": lambda m, *older, **named: m.nn.functional.mse_loss(m.zeros(2, 3), m.ones(2, 3) * 2, *older, **named),
    "smooth_l1_loss": lambda m, *older, **named: m.nn.functional.smooth_l1_loss(
        m.zeros(2, 3), m.ones(2, 3) * 2, *older, **named
    ),
    "kl_div": lambda m, *older, **named: m.nn.functional.kl_div(m.zeros(2, 3), m.ones(2, 3) / 3, *older, **named),
    "binary_cross_entropy": lambda m, *older, **named: m.nn.functional.binary_cross_entropy(
        m.ones(2, 3) / 3, m.ones(2, 3), None, *older, **named
    ),
    "MSELoss": lambda m, *older, **named: m.nn.MSELoss(*older, **named)(m.zeros(2, 3), m.ones(2, 3) * 2),
    "BCEWithLogitsLoss": lambda m, *older, **named: m.nn.BCEWithLogitsLoss(None, *older, **named)(
        m.zeros(2, 3), m.ones(2, 3)
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("older", [(False,), (None, False), (True, True), (False, False)], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_older_arguments_decide_the_reduction(torch: Any, loss: str, older: tuple[Any, ...]) -> None:
    found = []
    for lib in (gs, torch):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated, please use reduction="):
            found.append(LOSSES[loss](lib, *older).tolist())
    numpy.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.torch
def test_reductions_and_ignored_classes_by_position(torch: Any) -> None:
    def losses(lib: Any) -> list[Any]:
        x, target = lib.arange(6.0).reshape(2, 3), lib.tensor([0, 1])
        F = lib.nn.functional
        return [
            F.mse_loss(x, x * 2, None, None, "sum").item(),
            F.nll_loss(x, target, None, None, 1).item(),
            F.cross_entropy(x, target, None, None, 1, None, "none").tolist(),
            lib.nn.CrossEntropyLoss(None, None, 1)(x, target).item(),
            lib.nn.NLLLoss(None, None, 1, None, "sum")(x, target).item(),
        ]

    for mine, theirs in zip(losses(gs), losses(torch), strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-6)


# --- results into tensors that are there ------------------------------------------------------------------------------

INTO: dict[str, Any] = {
    "linear": lambda m, x, out: m.nn.functional.linear(x, m.ones(3, 4, dtype=m.float64), out=out),
    "gelu": lambda m, x, out: m.nn.functional.gelu(x, approximate="tanh", out=out),
    "softplus": lambda m, x, out: m.nn.functional.softplus(x, 2.0, out=out),
    "logsigmoid": lambda m, x, out: m.nn.functional.logsigmoid(x, out=out),
    "hardshrink": lambda m, x, out: m.nn.functional.hardshrink(x, out=out),
    "softshrink": lambda m, x, out: m.nn.functional.softshrink(x, out=out),
    "avg_pool2d": lambda m, x, out: m.nn.functional.avg_pool2d(x, 2, out=out),
    "avg_pool3d": lambda m, x, out: m.nn.functional.avg_pool3d(x[None], (1, 2, 2), out=out),
}


@pytest.mark.parametrize("name", INTO)
def test_a_result_is_written_where_it_is_wanted(torch: Any, name: str) -> None:
    found = []
    for m in (gs, torch):
        x, out = m.arange(-8.0, 8.0, dtype=m.float64).reshape(1, 4, 4), m.empty(0, dtype=m.float64)
        assert INTO[name](m, x, out) is out
        assert out.tolist() == INTO[name](m, x, None).tolist()
        found.append(out.numpy())
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            INTO[name](m, x.requires_grad_(), out)
    numpy.testing.assert_allclose(*found, rtol=1e-9)
