"""Activation functions beside PyTorch's, and what makes them robust: large arguments, infinite gradients, kinks."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.declaration.registry import OPERATORS
from tests.runtime.kernels.both_forms import numpy_alone
from tests.side_by_side import compare, same_complaint

KINKS = [0.0, -1.0, 1.0, 3.0, -3.0, 0.5, -0.5, 6.0, 25.0, -25.0]
POINTS = numpy.concatenate([numpy.random.default_rng(0).normal(size=40) * 2, KINKS])

# PyTorch has no second derivative of these.
ONCE = ("hardsigmoid", "hardswish")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu", ()),
        ("leaky_relu", (0.2,)),
        ("elu", (0.7,)),
        ("celu", (0.7,)),
        ("selu", ()),
        ("hardtanh", (-0.5, 1)),
        ("relu6", ()),
        ("hardsigmoid", ()),
        ("hardswish", ()),
        ("silu", ()),
        ("mish", ()),
        ("gelu", ()),
        ("softplus", (2.0,)),
        ("logsigmoid", ()),
        ("hardshrink", ()),
        ("softshrink", ()),
        ("softsign", ()),
        ("tanhshrink", ()),
        ("threshold", (0.3, 7.0)),
        ("sigmoid", ()),
        ("softmax", (0,)),
        ("log_softmax", (0,)),
        ("softmin", (0,)),
    ],
)
def test_activation_is_that_of_pytorch(torch: Any, name: str, arguments: tuple[Any, ...]) -> None:
    compare(torch, lambda lib, x: getattr(lib.nn.functional, name)(x, *arguments), POINTS, twice=name not in ONCE)


@pytest.mark.torch
def test_activations_with_settings(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.nn.functional.gelu(x, approximate="tanh"), POINTS)
    rng = numpy.random.default_rng(1)
    for weights in (3, 1):
        x, w = rng.normal(size=(2, 3, 4)), rng.normal(size=weights)
        compare(torch, lambda lib, x, w: lib.nn.functional.prelu(x, w), x, w)
    compare(torch, lambda lib, x: lib.nn.functional.glu(x), rng.normal(size=(2, 4)), names=False)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.functional.gelu(lib.tensor([1])),
        lambda lib: lib.softmax(lib.tensor([1]), 0),
        lambda lib: lib.softmax(lib.zeros(2, 3), 5),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


@pytest.mark.parametrize("name", ["relu_", "sigmoid_", "selu_"])
def test_in_place_forms_rewrite_history(name: str) -> None:
    x = gs.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    expected = getattr(gs, name[:-1])(y)
    (gradient,) = gs.autograd.grad(expected.sum(), x, retain_graph=True)
    result = getattr(gs, name)(y)
    assert result is y
    assert y._version == 1
    assert y.tolist() == expected.tolist()
    (found,) = gs.autograd.grad(y.sum(), x)
    assert found.tolist() == gradient.tolist()


def test_an_infinite_gradient_at_an_inactive_element_gives_zero() -> None:
    for size in (4, 4096):
        x = gs.full((size,), -1.0, requires_grad=True)
        x.relu().backward(gs.full((size,), math.inf))
        assert not x.grad._array.any()


def test_a_large_relu_masks_bit_for_bit_as_a_small_one() -> None:
    rng = numpy.random.default_rng(2)
    for kind in (gs.float16, gs.float32, gs.float64):
        x = gs.tensor(rng.normal(size=5000), dtype=kind, requires_grad=True)
        g = gs.tensor(rng.normal(size=5000), dtype=kind)
        x.relu().backward(g)
        expected = numpy.where(x.detach().numpy() <= 0, 0, g.numpy())
        assert x.grad.dtype is kind
        assert x.grad.numpy().tobytes() == (expected + 0).tobytes()


def test_relu_passes_nan_and_its_gradient() -> None:
    x = gs.tensor([math.nan, 1.0], requires_grad=True)
    y = x.relu()
    y.sum().backward()
    assert math.isnan(y[0].item())
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [gs.float32, gs.float64])
def test_large_arguments_neither_overflow_nor_warn(dtype: gs.dtype) -> None:
    x = gs.tensor([-1e4, -100.0, 0.0, 100.0, 1e4], dtype=dtype, requires_grad=True)
    functional = gs.nn.functional
    for function in (functional.sigmoid, functional.silu, functional.softplus, functional.logsigmoid, functional.mish,
                     functional.elu, functional.gelu):  # fmt: skip
        y = function(x)
        assert numpy.isfinite(y.detach().numpy()).all()
        (g,) = gs.autograd.grad(y.sum(), x)
        assert numpy.isfinite(g.numpy()).all()


def test_softmax_of_large_scores_sums_to_one() -> None:
    x = gs.tensor([[1e4, 0.0, -1e4], [3e38, 3e38, 0.0]])
    assert x.softmax(1).sum(1).tolist() == [1.0, 1.0]
    assert x.log_softmax(1)[1, 0].item() == pytest.approx(-math.log(2))


def test_softmax_of_nothing() -> None:
    assert gs.zeros(0, 3).softmax(1).shape == (0, 3)
    assert gs.zeros(3, 0).log_softmax(1).shape == (3, 0)
    assert gs.tensor(5.0).softmax(0).item() == 1.0


def test_softmax_converts_first() -> None:
    x = gs.tensor([1, 2])
    assert x.softmax(0, dtype=gs.float64).dtype is gs.float64


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (200, 400), (1 << 15,), ((1 << 15) + 1,)])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int64"])
def test_relu_of_every_size(shape, kind):
    array = numpy.asarray(numpy.random.default_rng(0).normal(size=shape) * 3).astype(kind)
    if array.size > 3 and array.dtype.kind == "f":
        array.flat[1], array.flat[-1] = numpy.nan, -numpy.inf
    wanted = numpy.maximum(array, 0)
    assert numpy.array_equal(gs.relu(gs.tensor(array)).numpy(), wanted, equal_nan=array.dtype.kind == "f")
    assert numpy.array_equal(gs.tensor(array).relu_().numpy(), wanted, equal_nan=array.dtype.kind == "f")


@pytest.mark.torch
@pytest.mark.parametrize("name", ["leaky_relu", "rrelu", "hardtanh", "relu6", "hardshrink", "softshrink"])
def test_the_gradient_of_what_is_straight_but_for_a_kink_is_recorded(torch: Any, name: str) -> None:
    def facts(lib: Any) -> Any:
        x = lib.tensor([-2.0, -0.5, 0.0, 0.4, 1.0, math.nan], requires_grad=True)
        (grad,) = lib.autograd.grad(getattr(lib.nn.functional, name)(x).sum(), x, create_graph=True)
        (second,) = lib.autograd.grad(grad.sum(), x)
        return grad.tolist(), second.tolist()

    assert facts(gs) == facts(torch)


@pytest.mark.parametrize("size", [1023, 1024, 1 << 16, (1 << 16) + 1, 200_000])
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_rectifier_passes_the_gradient_where_its_input_is_above_0_or_nan(size: int, dtype: str, order: Any) -> None:
    rng = numpy.random.default_rng(size)
    x, g = (numpy.asarray(rng.standard_normal((size, 2)), dtype, order=order) for _ in range(2))
    x[::7], x[3::11], g[5::13] = numpy.nan, 0, numpy.inf
    with numpy_alone():
        found = OPERATORS["threshold_backward"].run_forward(numpy, g, x, 0)
    numpy.testing.assert_array_equal(found, numpy.where(x <= 0, numpy.zeros((), dtype), g))
    assert found.dtype == dtype


@pytest.mark.parametrize("size", [8, 1 << 15])
@pytest.mark.parametrize("settings", [(1e300, 0.0), (0.0, -1e300)])
def test_a_threshold_that_the_dtype_has_no_place_for_is_refused_whatever_the_size(
    size: int, settings: tuple[float, float]
) -> None:
    with pytest.raises(RuntimeError, match="cannot be converted"):
        gs.nn.functional.threshold(gs.zeros(size), *settings)
