"""One function run by gradscope and by PyTorch on the same numbers: values, first and second derivatives, names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

import gradscope as gs

Function = Callable[..., Any]


def outcome(lib: Any, function: Function, arrays: Sequence[Any], *, twice: bool) -> tuple[list[Any], str | None]:
    """Return value, gradients and gradients of their squares as arrays, and the name of the last node."""
    inputs = [None if a is None else lib.tensor(a, requires_grad=numpy.asarray(a).dtype.kind in "fc") for a in arrays]
    leaves = [x for x in inputs if x is not None and x.requires_grad]
    result = function(lib, *inputs)
    found = [result.detach().numpy()]
    if result.grad_fn is None:
        return found, None
    weights = numpy.cos(numpy.arange(result.numel(), dtype=float)).reshape(tuple(result.shape))
    first = lib.autograd.grad((result * lib.tensor(weights)).sum(), leaves, create_graph=twice)
    found += [g.detach().numpy() for g in first]
    squares = sum((g * g).sum() for g in first)
    if twice and squares.requires_grad:
        for leaf, g in zip(leaves, lib.autograd.grad(squares, leaves, allow_unused=True), strict=True):
            # PyTorch has a special tensor of zeros, which only force=True turns into an array.
            found.append(numpy.zeros(tuple(leaf.shape)) if g is None else g.numpy(force=True))
    return found, result.grad_fn.name()


def compare(
    torch: Any, function: Function, *arrays: Any, names: bool = True, twice: bool = True, rtol: float = 1e-7
) -> None:
    """Assert that ``function(lib, *tensors)`` is the same in both libraries."""
    mine, name = outcome(gs, function, arrays, twice=twice)
    theirs, other = outcome(torch, function, arrays, twice=twice)
    for index, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        assert a.shape == b.shape, f"number {index}"
        numpy.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9, err_msg=f"number {index}")
    for rest in (mine[len(theirs) :], theirs[len(mine) :]):
        assert not any(a.any() for a in rest), "a second derivative that the other library takes for constant"
    if names:
        assert name == other


def complaint(lib: Any, function: Function) -> tuple[type[BaseException], str]:
    """Return what a wrong call raises, and the first line of its message."""
    try:
        function(lib)
    except Exception as error:
        base = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return base, str(error).split("\n")[0].replace("torch", "gradscope")
    raise AssertionError("nothing was raised")


def same_complaint(torch: Any, function: Function) -> None:
    """Assert that both libraries raise the same class, and that our message starts as PyTorch's does."""
    mine, text = complaint(gs, function)
    theirs, other = complaint(torch, function)
    assert mine is theirs
    assert text.startswith(other.rstrip(".")), (text, other)
