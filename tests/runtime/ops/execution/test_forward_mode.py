"""Every operator in forward mode, driven by the registry: against finite differences, and against PyTorch.

``pytest -k "forward_mode and mul"`` runs the checks of one operator.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import forward_ad
from gradscope.autograd.gradcheck import gradcheck, gradgradcheck
from gradscope.runtime.ops.declaration.registry import OPERATORS, Operator
from gradscope.runtime.tensor.tensor import Tensor
from tests.pytorch_versions import require_pytorch
from tests.runtime.ops import operator_cases as cases
from tests.runtime.ops.test_operators import NOT_A_DERIVATIVE, closed_over

DIFFERENTIABLE = [op for op in OPERATORS.values() if op.samples is not None and cases.has_derivative(op)]
INPLACE = [op for op in DIFFERENTIABLE if op.inplace_function is not None]
# PyTorch has no forward mode for these, or not for all reductions.
BACKWARD_ONLY_IN_TORCH = (
    "scatter_reduce", "index_reduce", "cholesky", "ormqr", "embedding_bag.bags", "grid_sampler_2d", "grid_sampler_3d",
    "multi_margin_loss", "multilabel_margin_loss", "cdist.rows", "pdist.rows",
    "igamma", "igammac", "special_zeta",
)  # fmt: skip
# Its tangents of these are not what finite differences say (2.13), but test_forward_mode holds ours to that.
WRONG_IN_TORCH = ("cholesky_inverse", "triangular_solve")
NOT_COMPARED = BACKWARD_ONLY_IN_TORCH + WRONG_IN_TORCH
# It has forward mode, or the right one, only since; see require_pytorch().
NEWER_IN_TORCH = {
    "affine_grid_generator": "2.8", "channel_shuffle": "2.8", "linalg_lstsq": "2.8", "logsumexp": "2.8",
    "_upsample_lanczos2d_aa": "2.13", "aminmax": "2.13", "linalg_slogdet": "2.13", "nextafter": "2.13", "sgn": "2.13",
}  # fmt: skip
COMPARED = [op for op in DIFFERENTIABLE if cases.has_counterpart(op) and op.name not in NOT_COMPARED]

_FEW = 3
"""Samples of a dtype whose derivatives are looked at in every run."""

_FEW_SECOND = 1
"""Samples whose second derivatives are looked at first."""


def each(operators: list[Operator]) -> Any:
    """Run a test once for each operator."""
    return pytest.mark.parametrize("op", operators, ids=lambda op: op.name)


def checked_samples(op: Operator, kind: str) -> list[cases.Sample]:
    """Return the samples at which an operator's derivative is the one that calculus says."""
    return cases.samples(op, kind)[: NOT_A_DERIVATIVE.get(op.name, 3 if kind == "complex128" else None)]


def kinds_of(op: Operator) -> list[str]:
    """Return the dtypes an operator is checked in."""
    return ["float64", "complex128"] if "c" in op.supports else ["float64"]


@each(DIFFERENTIABLE)
def test_forward_mode(op):
    """The tangent is the directional derivative of finite differences."""
    for kind in kinds_of(op):
        check_forward_mode(op, checked_samples(op, kind)[:_FEW])


@pytest.mark.slow
@each(DIFFERENTIABLE)
def test_forward_mode_of_more_samples(op):
    for kind in kinds_of(op):
        check_forward_mode(op, checked_samples(op, kind)[_FEW:])


def check_forward_mode(op, samples):
    for sample in samples:
        function, inputs = closed_over(op, sample)
        assert gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=True)


@pytest.mark.slow
@each(DIFFERENTIABLE)
def test_forward_mode_over_backward(op):
    """The tangent of the gradient is that of finite differences of the gradient."""
    check_forward_mode_over_backward(op, checked_samples(op, "float64")[:_FEW_SECOND])


@pytest.mark.slow
@each(DIFFERENTIABLE)
def test_forward_mode_over_backward_of_more_samples(op):
    check_forward_mode_over_backward(op, checked_samples(op, "float64")[_FEW_SECOND:])


def check_forward_mode_over_backward(op: Operator, samples: list[cases.Sample]) -> None:
    for sample in samples:
        function, inputs = closed_over(op, sample)
        options = {"check_rev_over_rev": False, "check_undefined_grad": False, "fast_mode": True}
        assert gradgradcheck(function, inputs, check_fwd_over_rev=True, **options)


# --- in place ---------------------------------------------------------------------------------------------------------


def tangent_of_shape(shape: tuple[int, ...], dtype: Any, seed: int) -> numpy.ndarray:
    """Return random values, the same ones for the same seed."""
    generator = numpy.random.default_rng(seed)
    values = generator.uniform(-1, 1, shape)
    if numpy.dtype(dtype).kind == "c":
        values = values + 1j * generator.uniform(-1, 1, shape)
    return numpy.asarray(values).astype(dtype)


def with_tangents(sample: cases.Sample) -> cases.Sample:
    """Return a sample whose tensors that require grad are dual tensors instead."""
    count = 0

    def make(tensor: Tensor) -> Tensor:
        nonlocal count
        if not tensor.requires_grad:
            return tensor
        count += 1
        values = tangent_of_shape(tuple(tensor.shape), tensor.dtype.numpy, count)
        return forward_ad.make_dual(tensor.detach(), gs.from_numpy(values))

    args, kwargs = (cases.convert(part, make) for part in sample)
    return args, kwargs


def tangent(tensor: Tensor) -> Any:
    """Return the values of a tensor's tangent."""
    return cases.host(forward_ad.unpack_dual(tensor).tangent)


@each(INPLACE)
def test_forward_mode_of_the_inplace_form(op):
    """The in-place form leaves the tangent that the plain form computes, in the tensor or in the base of a view."""
    for sample in cases.samples(op):
        with forward_ad.dual_level():
            (self, *rest), kwargs = with_tangents(sample)
            expected = op.function(self, *rest, **kwargs)
            target = self.clone()
            if op.view is None and (expected.shape != self.shape or expected.dtype is not self.dtype):
                continue  # the in-place form refuses it
            op.inplace_function(target, *rest, **kwargs)
            numpy.testing.assert_allclose(tangent(target), tangent(expected), err_msg=op.name)
            if op.view is not None:
                continue
            base = gs.stack([self, self])
            op.inplace_function(base[1], *rest, **kwargs)
            numpy.testing.assert_allclose(tangent(base)[1], tangent(expected), err_msg=f"{op.name}, through a view")
            untouched = tangent(self)  # None where there is no derivative by the first argument
            numpy.testing.assert_array_equal(tangent(base)[0], 0 if untouched is None else untouched)


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@each(DIFFERENTIABLE)
def test_forward_mode_on_another_device(op, other_device):
    """Tangents stay on the device, with NumPy's values."""
    for sample in cases.samples(op)[:2]:
        with forward_ad.dual_level():
            expected = [tangent(output) for output in cases.call(op, with_tangents(sample))]
            count = 0

            def make(tensor: Tensor) -> Tensor:
                nonlocal count
                moved = cases.moved(tensor, other_device)
                if not tensor.requires_grad:
                    return moved
                count += 1
                values = tangent_of_shape(tuple(tensor.shape), tensor.dtype.numpy, count)
                return forward_ad.make_dual(moved.detach(), gs.from_numpy(values).to(other_device))

            args, kwargs = (cases.convert(part, make) for part in sample)
            found = [forward_ad.unpack_dual(output).tangent for output in cases.call(op, (args, kwargs))]
            assert all(t is None or t.device.type == other_device for t in found)
            for a, b in zip(map(cases.host, found), expected, strict=True):
                cases.same(a, b, op.name)


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def torch_tangents(torch: Any, op: Operator, sample: cases.Sample) -> list[Any]:
    """Return the tangents of PyTorch's outputs."""
    count = 0

    def make(value: Any) -> Any:
        nonlocal count
        if isinstance(value, torch.Tensor) and value.requires_grad:
            count += 1
            dtype = value.detach().numpy().dtype
            values = torch.from_numpy(tangent_of_shape(tuple(value.shape), dtype, count))
            return torch.autograd.forward_ad.make_dual(value.detach(), values)
        if isinstance(value, (list, tuple)):
            return type(value)(make(item) for item in value)
        return {key: make(item) for key, item in value.items()} if isinstance(value, dict) else value

    with torch.autograd.forward_ad.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = (make(cases.to_torch(torch, part)) for part in sample)
        found = cases.own(op, cases.counterpart(torch, op))(*args, **kwargs)
        outputs = [found] if isinstance(found, torch.Tensor) else list(found)
        return [cases.host(torch.autograd.forward_ad.unpack_dual(o).tangent) for o in outputs]


@pytest.mark.torch
@each(COMPARED)
def test_forward_mode_in_torch(op, torch):
    """Which outputs have tangents, and their values, are PyTorch's."""
    require_pytorch(torch, NEWER_IN_TORCH.get(op.name, "2.4"))
    for kind in kinds_of(op):
        for sample in checked_samples(op, kind):
            wanted = torch_tangents(torch, op, sample)
            with forward_ad.dual_level():
                found = [tangent(output) for output in cases.call(op, with_tangents(sample))]
            assert len(found) == len(wanted)
            for a, b in zip(found, wanted, strict=True):
                cases.same(a, b, op.name, rtol=1e-7, atol=1e-9)
