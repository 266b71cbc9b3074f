"""Products of several matrices, inner products along a dimension, Vandermonde matrices."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import gradcheck
from gradscope.runtime.ops.linalg.matrix_products import _best_splits
from tests.runtime.ops.matrix_cases import matrices, same_in_both
from tests.runtime.ops.operator_cases import assert_agrees


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 4)],
        [(2, 3), (3, 4), (4, 1)],
        [(10, 2), (2, 10), (10, 3), (3, 1), (1, 7)],
        [(3,), (3, 4), (4,)],
        [(3,), (3,)],
        [(2, 3), (3,)],
        [(3,), (3, 2)],
    ],
)
def test_chains_of_matrices(torch: Any, shapes: Any) -> None:
    assert_agrees(torch, lambda m, *tensors: m.linalg.multi_dot(tensors), *shapes)
    if all(len(shape) == 2 for shape in shapes):
        assert_agrees(torch, lambda m, *tensors: m.chain_matmul(*tensors), *shapes)


def test_the_order_with_the_fewest_multiplications() -> None:
    # The example of T. H. Cormen et al., Introduction to Algorithms, section 15.2: ((A1 (A2 A3)) ((A4 A5) A6)).
    best = _best_splits([30, 35, 15, 5, 10, 20, 25])
    assert (best[0, 5], best[0, 2], best[3, 5]) == (2, 0, 4)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_inner_products(torch: Any, kind: str) -> None:
    x, y = matrices(2, 3, kind=kind), matrices(4, 1, 3, kind=kind)
    same_in_both(torch, lambda m, a, b: m.linalg.vecdot(a, b), x, y)
    same_in_both(torch, lambda m, a, b: m.linalg.vecdot(a, b, dim=0), x, matrices(2, 3, kind=kind, seed=1))
    same_in_both(torch, lambda m, a, b: m.linalg.vecdot(a[0], b[0, 0]), x, y)


@pytest.mark.torch
@pytest.mark.parametrize("count", [None, 2, 4])
def test_powers_in_columns(torch: Any, count: Any) -> None:
    for array in (matrices(3), matrices(2, 3), matrices(3, kind="complex128"), numpy.array([1, 2, 3])):
        same_in_both(torch, lambda m, x: m.linalg.vander(x, N=count), array)
    for increasing in (True, False):
        for array in (matrices(3), numpy.array([1, 2, 3], dtype="int32")):
            same_in_both(torch, lambda m, x, up=increasing: m.vander(x.detach(), count, up), array)
        assert gradcheck(
            lambda x, up=increasing: gs.vander(x, count, up), (gs.from_numpy(matrices(3)).requires_grad_(),)
        )
    assert_agrees(torch, lambda m, x: m.linalg.vander(x), (3,))
    # PyTorch writes over what the gradient of this one needs, and raises.
    assert gs.vander(gs.ones(3).requires_grad_()).grad_fn.name() == "FlipBackward0"


def test_results_are_written_into_given_tensors() -> None:
    out = gs.empty(0)
    assert gs.linalg.multi_dot([gs.ones(2, 2), gs.ones(2, 2)], out=out) is out
    assert out.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    gs.linalg.vecdot(gs.ones(2, 3), gs.ones(3), out=out.resize_(0))
    assert out.tolist() == [3.0, 3.0]


def test_a_vector_of_one_expanded_number_is_multiplied_by_blas() -> None:
    """The gradient of a sum comes so; NumPy's ``matmul`` leaves BLAS for it, and adds one product after the other."""
    matrix = numpy.random.default_rng(0).standard_normal((64, 1 << 12)).astype("f")
    number = numpy.broadcast_to(numpy.float32(0.1), (1 << 12,))
    numpy.testing.assert_array_equal(
        gs.mv(gs.tensor(matrix), gs.tensor(0.1).expand(1 << 12)).numpy(), matrix @ number.copy()
    )
