"""Powers of numbers, remainders, and operators that take a number first, or none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.kernels.elementwise import LARGE
from gradscope.runtime.ops.declaration.registry import OPERATORS

# --- powers and remainders --------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("base", [2, 1, -1, 0, -3])
def test_an_integer_to_negative_powers_is_what_is_left_of_one_over_it(torch: Any, base: int) -> None:
    exponents = [-1, 0, 1, -2, 3] if base else [0, 1, 3]
    mine, theirs = ((base ** lib.tensor(exponents)).tolist() for lib in (gs, torch))
    assert mine == theirs


@pytest.mark.torch
def test_a_remainder_of_zero_has_the_sign_of_what_was_divided(torch: Any) -> None:
    values, divisors = [0.0, -0.0, 4.0, -4.0, 5.0, -5.0], [-2.0, 2.0, -2.0, 2.0, -2.0, 2.0]
    for kind in ("float32", "float64", "float16"):
        found = [
            lib.remainder(*(lib.tensor(v, dtype=getattr(lib, kind)) for v in (values, divisors))).numpy()
            for lib in (gs, torch)
        ]
        numpy.testing.assert_array_equal(*found)
        numpy.testing.assert_array_equal(*map(numpy.signbit, found))
    x = gs.tensor(values)
    x.remainder_(gs.tensor(divisors))
    assert numpy.signbit(x.numpy()).tolist() == [False, True, False, True, True, False]


# --- numbers in the place of tensors ----------------------------------------------------------------------------------

TWO = sorted(
    {
        name
        for op in OPERATORS.values()
        if op.promote and len(op.tensors) == 2 and not op.draws
        for name in (op.name.partition(".")[0], *op.alias)
        if hasattr(gs, name)
    }
)


@pytest.mark.torch
@pytest.mark.parametrize("name", TWO)
def test_a_number_stands_for_the_tensors_for_which_it_may(torch: Any, name: str) -> None:
    if not hasattr(torch, name):
        pytest.skip("PyTorch has it elsewhere")

    def outcome(lib: Any, owner: Any, numbers: tuple[bool, bool], kind: str) -> Any:
        tensor = lib.tensor([4, 3, 2], dtype=getattr(lib, kind))
        arguments = [5 if number else tensor for number in numbers]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(owner(lib), name)(*arguments).numpy()
        except TypeError:
            return TypeError
        except (NotImplementedError, RuntimeError):
            return RuntimeError

    for kind in ("float32", "int64", "int8"):
        calls = [(lambda lib: lib, (False, True)), (lambda lib: lib, (True, False))]
        if hasattr(torch.Tensor, name):
            calls.append((lambda lib: lib.Tensor, (False, True)))
        for owner, numbers in calls:
            found, expected = (outcome(lib, owner, numbers, kind) for lib in (gs, torch))
            if isinstance(expected, type) or isinstance(found, type):
                assert found is expected, (kind, numbers)
            else:
                assert found.dtype == expected.dtype
                numpy.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["f", "d"])
def test_cubes_are_products_as_pytorchs_are(torch: Any, kind: str) -> None:
    x = numpy.random.default_rng(0).standard_normal(1000).astype(kind)
    x[:6] = 0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1e-42
    for cube in (3, 3.0):
        actual, expected = (lib.tensor(x) ** cube for lib in (gs, torch))
        numpy.testing.assert_array_equal(actual.numpy(), expected.numpy())
    numpy.testing.assert_array_equal((gs.tensor(x) ** 3).numpy(), x * x * x)
    assert (gs.tensor(-2.0) ** 3).item() == -8


@pytest.mark.parametrize("kind", [gs.float32, gs.float64], ids=str)
@pytest.mark.parametrize("exponent", [3, 3.0, 2, 0.5, -1.5, 1, 0])
def test_powers_of_large_tensors_are_those_of_their_parts(exponent: float, kind: Any) -> None:
    x = (gs.arange(LARGE + 6, dtype=kind) / 1000 - 7).requires_grad_()
    g = gs.arange(LARGE + 6, dtype=kind) / 7
    result = x**exponent
    (gradient,) = gs.autograd.grad(result, x, g)
    for part in (slice(0, 7000), slice(LARGE // 2, LARGE + 6)):
        piece = x.detach()[part].clone().requires_grad_()
        (expected,) = gs.autograd.grad(piece**exponent, piece, g[part])
        assert (piece**exponent).detach().numpy().tobytes() == result.detach()[part].numpy().tobytes()
        assert expected.numpy().tobytes() == gradient[part].numpy().tobytes()


@pytest.mark.parametrize("kind", ["f", "d", "e"])
def test_logaddexp_of_many_is_as_exact_as_numpys(kind: str) -> None:
    extremes = [numpy.inf, -numpy.inf, numpy.nan, 0.0, 90.0, -90.0]
    a, b = (numpy.concatenate([part.ravel(), numpy.random.default_rng(0).normal(size=2000) * 5]).astype(kind)
            for part in numpy.meshgrid(extremes, extremes))  # fmt: skip
    with numpy.errstate(all="ignore"):
        expected = numpy.logaddexp(*((a, b) if kind == "e" else (a.astype("d"), b.astype("d")))).astype(kind)
    eps = numpy.finfo(kind).eps
    numpy.testing.assert_allclose(
        gs.logaddexp(gs.tensor(a), gs.tensor(b)).numpy(), expected, rtol=4 * eps, atol=eps / 2
    )
