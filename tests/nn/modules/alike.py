"""One module in gradscope and in PyTorch with the same parameters: outputs, first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import gradscope as gs


def pair(torch: Any, make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the module of either library in float64, with PyTorch's parameters in both."""
    mine, theirs = make(gs.nn), make(torch.nn)
    for lib, module in ((gs, mine), (torch, theirs)):
        module.to(lib.float64)
    mine.load_state_dict({name: gs.tensor(value.detach().numpy()) for name, value in theirs.state_dict().items()})
    return mine, theirs


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors of a nest of tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors_in(part)]
    return [] if value is None else [value]


def derivatives(lib: Any, module: Any, use: Callable[..., Any], arrays: Any, *, twice: bool) -> list[Any]:
    """Return outputs, gradients of inputs and parameters, and gradients of the squares of those."""
    inputs = [lib.tensor(a, requires_grad=numpy.asarray(a).dtype.kind == "f") for a in arrays]
    outputs = tensors_in(use(lib, module, *inputs))
    found = [output.detach().numpy() for output in outputs]
    outputs = [output for output in outputs if output.requires_grad]
    leaves = [x for x in inputs if x.requires_grad] + list(module.parameters())
    weights = [numpy.cos(numpy.arange(o.numel(), dtype=float)).reshape(tuple(o.shape)) for o in outputs]
    total = sum((o * lib.tensor(w)).sum() for o, w in zip(outputs, weights, strict=True))
    first = lib.autograd.grad(total, leaves, create_graph=twice, allow_unused=True)
    found += [None if g is None else g.detach().numpy() for g in first]
    if twice:
        squares = sum((g * g).sum() for g in first if g is not None)
        second = lib.autograd.grad(squares, leaves, allow_unused=True)
        found += [numpy.zeros(tuple(x.shape)) if g is None else g.numpy() for x, g in zip(leaves, second, strict=True)]
    return found


def assert_alike(
    torch: Any, make: Callable[[Any], Any], use: Callable[..., Any], *arrays: Any, twice: bool = True
) -> None:
    """Assert that ``use(lib, module, *tensors)`` has the same outputs and derivatives in both libraries."""
    modules = pair(torch, make)
    results = [derivatives(lib, m, use, arrays, twice=twice) for lib, m in zip((gs, torch), modules, strict=True)]
    for index, (a, b) in enumerate(zip(*results, strict=True)):
        if a is None or b is None:
            assert a is b, f"number {index}"
            continue
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"number {index}"
        numpy.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10, err_msg=f"number {index}")
