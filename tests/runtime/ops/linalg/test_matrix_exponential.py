"""The exponential of matrices, small and large ones."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import gradcheck, gradgradcheck
from tests.runtime.ops.matrix_cases import matrices, same_in_both


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 0.1, 1.0, 4.0])
def test_values_and_gradients_are_pytorchs(torch: Any, kind: str, scale: float) -> None:
    array = (matrices(2, 3, 3, kind=kind) * scale).astype(kind)
    loose = {"rtol": 2e-3, "atol": 1e-4} if kind == "float32" else {"rtol": 1e-7}
    same_in_both(torch, lambda m, x: m.linalg.matrix_exp(x), array, **loose)


def test_matrices_of_very_different_size_in_one_batch() -> None:
    array = matrices(4, 3, 3) * numpy.array([1e-6, 0.3, 5.0, 40.0])[:, None, None]
    array = array - array.swapaxes(-1, -2)  # the exponential of a skew matrix is a rotation
    found = gs.matrix_exp(gs.from_numpy(array)).numpy()
    numpy.testing.assert_allclose(
        found @ found.swapaxes(-1, -2), numpy.broadcast_to(numpy.eye(3), found.shape), atol=1e-9
    )
    for one, alone in zip(found, array, strict=True):
        numpy.testing.assert_allclose(one, gs.matrix_exp(gs.from_numpy(alone)).numpy(), atol=1e-10)


def test_a_nilpotent_matrix_has_a_finite_series() -> None:
    A = gs.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]], dtype=gs.float64)
    assert gs.allclose(gs.matrix_exp(A), gs.eye(3, dtype=gs.float64) + A + A @ A / 2)


def test_half_precision_and_nan() -> None:
    assert gs.matrix_exp(gs.zeros(2, 2, dtype=gs.float16)).dtype is gs.float16
    assert gs.matrix_exp(gs.full((2, 2), float("nan"))).isnan().all()


def test_two_derivatives_where_squaring_is_needed() -> None:
    A = gs.from_numpy(matrices(2, 2) * 8).requires_grad_()
    scaled = lambda x: gs.matrix_exp(x) / 1000  # noqa: E731
    assert gradcheck(scaled, (A,))
    assert gradgradcheck(scaled, (A,))
