"""Corner cases against PyTorch: ties, NaN, infinities, 0-d and empty tensors, integers, bools, complex numbers.

What PyTorch computes we compute too, with the same values, dtypes and gradients. What it refuses we may be able to do.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.runtime.ops import operator_cases as cases

ORDINARY = (1.5, -0.5, 0.0, 2.0, 1.5, -3.0)
EXTREME = (numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.0)
OTHERS = (2.0, 1.5, -0.5, 1.0, 0.0, -3.0)
KINDS = ("float64", "int64", "bool", "complex128")
SHAPES = ((), (0,), (3,), (2, 3))


# Where we differ, and why.
DIFFERENT = {
    "digamma": "its slope at a pole is infinite; PyTorch's is the square of an inverse rounding error",
    "i0": "it is infinite at infinity; PyTorch says NaN",
    "ldexp": "infinity times 2 ** -infinity is multiplied in another order",
    "log2": "complex infinities are divided part by part",
    "logcumsumexp": "after minus infinity comes no NaN; no complex numbers",
    "logit": "the sign of an infinite slope at -0.0",
    "cumprod": "a complex product starts with 1 in PyTorch, which makes NaN of infinities",
}
# Kinds in which they do.
REGULAR = {"cumprod": ("float64", "int64", "bool"), "log2": ("float64", "int64", "bool"), "i0": ("int64", "bool")}


def choices(name: str, kind: str) -> tuple[tuple[float, ...], ...]:
    """Return the numbers at which an operator is compared."""
    if name not in DIFFERENT or kind in REGULAR.get(name, ()):
        return (ORDINARY, EXTREME)
    return ((1.5, -0.5, 0.25, 2.0, 1.5, -2.5),) if kind == "float64" else ()


def array(shape: tuple[int, ...], kind: str, numbers: tuple[float, ...]) -> Any:
    values = numpy.resize(numpy.array(numbers), shape)
    if kind == "int64":
        values = numpy.nan_to_num(values * 2, nan=5, posinf=9, neginf=-9)
    return numpy.array(values > 0.3 if kind == "bool" else values).astype(kind)


def outcome(lib: Any, use: Callable[..., Any], arrays: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return results and gradients as arrays."""
    tensors = [lib.from_numpy(a.copy()) for a in arrays]
    leaves = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point or t.dtype.is_complex]
    found = use(lib, *tensors)
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    ends = [o for o in outputs if o.requires_grad]
    total = sum((o * (lib.arange(o.numel()) + 1.0).reshape(tuple(o.shape)).to(o.dtype)).sum() for o in ends)
    if ends:
        (total.real if total.is_complex() else total).backward()
    return [cases.host(o) for o in outputs], [cases.host(leaf.grad) for leaf in leaves]


# PyTorch takes complex numbers, and refuses their gradient, which is simple.
LENIENT = {"nan_to_num"}


def compare(torch: Any, use: Callable[..., Any], arrays: list[Any], name: str = "") -> None:
    what = ", ".join(f"{a.dtype}{a.tolist()}" for a in arrays)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = outcome(torch, use, arrays)
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            if name not in LENIENT:
                with pytest.raises(type(error)):
                    outcome(gs, use, arrays)
            return
        found = outcome(gs, use, arrays)
    for ours, theirs, part in zip(found, expected, ("result", "gradient"), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            tolerance = 1e-5 if getattr(b, "dtype", None) == numpy.float32 else 1e-9
            cases.same(a, b, f"{part} of {what}", rtol=100 * tolerance, atol=tolerance)


UNARY = [
    "abs",
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "i0",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "logit",
    "nan_to_num",
    "neg",
    "rad2deg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]


@pytest.mark.torch
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_one_tensor(torch: Any, name: str, kind: str) -> None:
    for shape, numbers in itertools.product(SHAPES, choices(name, kind)):
        compare(torch, lambda lib, x: getattr(lib, name)(x), [array(shape, kind, numbers)], name)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name",
    [
        "celu",
        "elu",
        "hardshrink",
        "hardswish",
        "hardtanh",
        "leaky_relu",
        "logsigmoid",
        "mish",
        "relu6",
        "selu",
        "silu",
        "softplus",
        "softshrink",
    ],
)
def test_activations(torch: Any, name: str) -> None:
    for shape, numbers in itertools.product(SHAPES, (ORDINARY, EXTREME)):
        compare(torch, lambda lib, x: getattr(lib.nn.functional, name)(x), [array(shape, "float64", numbers)])


BINARY = [
    "add",
    "atan2",
    "copysign",
    "eq",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "ge",
    "gt",
    "heaviside",
    "hypot",
    "ldexp",
    "le",
    "logaddexp",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "nextafter",
    "pow",
    "remainder",
    "sub",
    "true_divide",
    "xlogy",
]


@pytest.mark.torch
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", ["float64", "int64", "bool"])
def test_functions_of_two_tensors(torch: Any, name: str, kind: str) -> None:
    shapes = (((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (3,)), ((0,), (1,)))
    numbers = ((ORDINARY, OTHERS), (EXTREME, EXTREME), (OTHERS, EXTREME))[: 1 if name in DIFFERENT else None]
    for (a, b), (first, second) in itertools.product(shapes, numbers):
        arrays = [array(a, kind, first), array(b, kind, second)]
        compare(torch, lambda lib, x, y: getattr(lib, name)(x, y), arrays, name)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", ["add", "bitwise_and", "eq", "floor_divide", "fmod", "mul", "ne", "pow", "remainder", "sub", "true_divide"]
)
@pytest.mark.parametrize("number", [2, -1, 0, 1.5, True, 300, numpy.nan, numpy.inf])
def test_a_tensor_and_a_number(torch: Any, name: str, number: Any) -> None:
    for kind, shape in itertools.product(("float64", "float32", "int64", "uint8", "bool"), ((), (3,), (2, 0))):
        if kind == "uint8" and name == "pow" and number == 300:
            continue  # PyTorch refuses here and wraps around elsewhere
        compare(torch, lambda lib, x: getattr(lib, name)(x, number), [array(shape, kind, (1.5, 2.0, 0.0))], name)


REDUCTIONS = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logcumsumexp",
    "logsumexp",
    "max",
    "mean",
    "median",
    "min",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "norm",
    "quantile",
    "softmax",
    "sort",
    "std",
    "sum",
]


@pytest.mark.torch
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_reductions_along_a_dimension(torch: Any, name: str, kind: str) -> None:
    level = (0.3,) if "quantile" in name else ()

    shapes = ((), (3,), (2, 3), (3, 1))
    for shape, numbers, dim in itertools.product(shapes, choices(name, kind), (0, -1)):
        compare(torch, lambda lib, x, d=dim: getattr(lib, name)(x, *level, dim=d), [array(shape, kind, numbers)])


@pytest.mark.torch
@pytest.mark.parametrize("name", ["count_nonzero", "mean", "nansum", "norm", "sum"])
@pytest.mark.parametrize("dim", [(), (0, 1), (-1,)])
def test_reductions_along_several_dimensions_or_none(torch: Any, name: str, dim: Any) -> None:
    for shape in ((2, 3), (2, 0)):
        compare(torch, lambda lib, x: getattr(lib, name)(x, dim=dim), [array(shape, "float64", ORDINARY)])


# --- refusals ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "division of integers by zero": lambda lib: lib.tensor([1, 2]) // lib.tensor([1, 0]),
    "remainder of integers by zero": lambda lib: lib.tensor([1, 2]) % 0,
    "order of complex numbers": lambda lib: lib.tensor([1j]) < lib.tensor([2j]),
    "maximum of complex numbers": lambda lib: lib.tensor([1j]).amax(),
    "clamp of complex numbers": lambda lib: lib.tensor([1j]).clamp(0, 1),
    "absolute values of bools": lambda lib: abs(lib.tensor([True])),
    "bools to the power of bools": lambda lib: lib.tensor([True]).pow_(lib.tensor([True])),
    "True to the power of bools": lambda lib: lib.pow(True, lib.tensor([True])),
    "product of matrices of bools": lambda lib: lib.ones(2, 2).bool() @ lib.ones(2, 2).bool(),
    "product of batches of bools": lambda lib: lib.ones(1, 2, 2).bool() @ lib.ones(1, 2, 2).bool(),
    "product of bools and a vector": lambda lib: lib.ones(2, 2).bool() @ lib.ones(2).bool(),
    "dot product of bools": lambda lib: lib.ones(2).bool() @ lib.ones(2).bool(),
    "linear of bools": lambda lib: lib.nn.functional.linear(lib.ones(2).bool(), lib.ones(2, 2).bool()),
    "trace of bools": lambda lib: lib.ones(2, 2).bool().trace(),
    "sort of complex numbers": lambda lib: lib.tensor([1j]).sort(),
    "sign of complex numbers": lambda lib: lib.tensor([1j]).sign(),
    "erf of complex numbers": lambda lib: lib.erf(lib.tensor([1j])),
    "argmax of bools": lambda lib: lib.tensor([True]).argmax(),
    "median of bools": lambda lib: lib.tensor([True, False]).median(),
    "shift of bools": lambda lib: lib.tensor([True]) << lib.tensor([True]),
    "nanmean of integers": lambda lib: lib.tensor([1]).nanmean(),
    "nanmean in integers": lambda lib: lib.ones(2).nanmean(dtype=lib.int64),
    "lerp of integers": lambda lib: lib.lerp(lib.tensor([1]), lib.tensor([2]), 0.5),
    "inverse of half precision": lambda lib: lib.inverse(lib.eye(2, dtype=lib.float16)),
    "a number that does not fit": lambda lib: lib.zeros(2, dtype=lib.uint8).fill_(300),
    "NaN as an integer": lambda lib: lib.zeros(2, dtype=lib.int64).fill_(float("nan")),
    "flipud of a scalar": lambda lib: lib.flipud(lib.tensor(1.0)),
    "fliplr of a vector": lambda lib: lib.fliplr(lib.tensor([1.0])),
    "shapes that do not broadcast": lambda lib: lib.where(
        lib.tensor([True, False]), lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0])
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_refusals_are_of_pytorchs_class_and_name_no_other_library(torch: Any, use: Callable[[Any], Any]) -> None:
    cases.assert_same_refusal(torch, use)
    with pytest.raises((RuntimeError, TypeError, IndexError)) as caught:
        use(gs)
    message = str(caught.value)
    assert "numpy" not in message.lower()
    assert "ufunc" not in message
    assert "operands" not in message


@pytest.mark.torch
@pytest.mark.parametrize("decimals", [1, 3, -1])
def test_numbers_are_rounded_to_decimals(torch: Any, decimals: int) -> None:
    values = [2.125, -13.55, 0.0, 1234.5678, float("inf"), float("nan")]
    found, expected = (lib.tensor(values, dtype=lib.float64).round(decimals=decimals).numpy() for lib in (gs, torch))
    numpy.testing.assert_array_equal(found, expected)
    with pytest.raises(NotImplementedError):
        gs.tensor([21]).round(decimals=decimals)


@pytest.mark.torch
def test_a_0d_tensor_is_put_into(torch: Any) -> None:
    for lib in (gs, torch):
        assert lib.tensor(3).put(lib.tensor(0), lib.tensor(5)).item() == 5
        assert lib.tensor(3.0).put(lib.tensor([0, 0]), lib.tensor([5.0, 1.0]), accumulate=True).item() == 9.0


@pytest.mark.torch
@pytest.mark.parametrize(
    "kinds", [("float16", "int64"), ("float64", "int64"), ("float32", "float64"), ("int64", "int64")]
)
def test_ldexp_is_as_wide_as_its_first_argument(torch: Any, kinds: tuple[str, str]) -> None:
    found, expected = (
        lib.ldexp(lib.ones(2, dtype=getattr(lib, kinds[0])), lib.tensor([1, 2], dtype=getattr(lib, kinds[1])))
        for lib in (gs, torch)
    )
    assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
    assert found.tolist() == expected.tolist()


IN_ROWS = {
    "x[:, list]": lambda m, x: x[:, [0, 2]],
    "x[:, matrix]": lambda m, x: x[:, m.tensor([[0, 1], [2, 0]])],
    "x[:, mask]": lambda m, x: x[:, m.tensor([True, False, True, True])],
    "x[list, list]": lambda m, x: x[[0, 1], [1, 2]],
    "index_select": lambda m, x: x.index_select(1, m.tensor([1, 0])),
    "cumsum": lambda m, x: x.cumsum(0),
    "cumprod": lambda m, x: x.cumprod(1),
    "roll": lambda m, x: x.roll(1, 0),
    "softmax": lambda m, x: x.softmax(0),
    "log_softmax": lambda m, x: x.log_softmax(1),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (4,)),
    "batch_norm": lambda m, x: m.nn.functional.batch_norm(x, None, None, training=True),
    "renorm": lambda m, x: x.renorm(2, 0, 1.0),
    "stack": lambda m, x: m.stack([x, x], 2),
    "sum": lambda m, x: x[None].sum(0),
}


@pytest.mark.torch
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("use", IN_ROWS)
def test_what_pytorch_gives_in_rows_can_be_viewed(torch: Any, use: str, turned: bool) -> None:
    for lib in (gs, torch):
        x = lib.arange(12.0).reshape(4, 3).t() if turned else lib.arange(12.0).reshape(3, 4)
        found = IN_ROWS[use](lib, x)
        assert found.is_contiguous()
        found.view(-1)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["cat", "stack", "hstack"])
def test_what_is_joined_has_the_dtype_all_promote_to(torch: Any, name: str) -> None:
    found, expected = (
        getattr(lib, name)([lib.tensor([1]), lib.tensor([1.5]), lib.tensor([True])]) for lib in (gs, torch)
    )
    assert found.dtype is gs.float32
    assert found.tolist() == expected.tolist()
