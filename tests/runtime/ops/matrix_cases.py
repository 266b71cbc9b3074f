"""What the tests of decompositions share: matrices, and one function run by both libraries on the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import gradscope as gs


def matrices(*shape: int, kind: str = "float64", seed: int = 0) -> Any:
    """Return matrices of random numbers as an array."""
    generator = numpy.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if numpy.dtype(kind).kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(kind)


def positive(*shape: int, kind: str = "float64", seed: int = 0) -> Any:
    """Return Hermitian positive-definite matrices as an array."""
    x = matrices(*shape, shape[-1], kind=kind, seed=seed)
    return (x @ x.conj().swapaxes(-1, -2) + numpy.eye(shape[-1])).astype(kind)


def host(tensor: Any) -> Any:
    """Return a tensor of either library as an array."""
    return tensor.detach().resolve_conj().numpy() if hasattr(tensor, "resolve_conj") else tensor.detach().numpy()


def results(lib: Any, use: Callable[..., Any], arrays: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Return the results of ``use(lib, *tensors)``, and the gradients of a real function of those that have one."""
    tensors = [lib.from_numpy(numpy.array(a)) for a in arrays]
    leaves = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point or t.dtype.is_complex]
    found = use(lib, *tensors)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    ends = [f for f in found if f.requires_grad and f.numel()]
    if ends:
        total = 0.0
        for end in ends:
            weights = lib.from_numpy(numpy.cos(numpy.arange(end.numel(), dtype=float)).reshape(tuple(end.shape)))
            total = total + (weights * (end.abs() ** 2 if end.is_complex() else end * end)).sum()
        total.backward()
    return [host(f) for f in found], [None if leaf.grad is None else host(leaf.grad) for leaf in leaves]


def same_in_both(torch: Any, use: Callable[..., Any], *arrays: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    """Assert that both libraries give the same results, dtypes and gradients."""
    found, expected = results(gs, use, arrays), results(torch, use, arrays)
    for ours, theirs, part in zip(found, expected, ("result", "gradient"), strict=True):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            if a is None or b is None:
                assert a is b, part
                continue
            assert (a.shape, a.dtype) == (b.shape, b.dtype), part
            numpy.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=part)
