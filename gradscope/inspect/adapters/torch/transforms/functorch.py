"""Tensors inside of ``torch.func.grad``, ``vmap`` and others: the values that the transforms have wrapped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._functorch import pyfunctorch

__all__ = ["BLIND", "batched_sizes", "innermost", "is_wrapped", "outside_of_transforms", "unwrapped"]

_C = torch._C._functorch
is_wrapped = _C.is_functorch_wrapped_tensor

_CLEAR = "temporarily_clear_interpreter_stack"

outside_of_transforms: Callable[[], AbstractContextManager[Any]] = getattr(pyfunctorch, _CLEAR, nullcontext)
"""Makes a context in which operators do what they do where no transform is at work."""

BLIND = "" if hasattr(pyfunctorch, _CLEAR) else "a functorch transform (torch.func) of this PyTorch lets nobody out"
"""Why backwards inside of transforms cannot be looked into; empty where they can."""


def innermost(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that transforms have wrapped, as it lies in memory."""
    while is_wrapped(tensor):
        tensor = _C.get_unwrapped(tensor)
    return tensor


def batched_sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the sizes of the dimensions that :func:`unwrapped` puts in front."""
    if not is_wrapped(tensor):
        return ()
    inner = _C.get_unwrapped(tensor)
    outer = batched_sizes(inner)
    return (*outer, inner.shape[_C.maybe_get_bdim(tensor)]) if _C.is_batchedtensor(tensor) else outer


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that transforms have wrapped: first the dimensions of vmaps, the outermost before the others.

    Parameters
    ----------
    tensor : Tensor
        Wrapped or not; the caller is outside of transforms, and records no graph.
    """
    return _unwrapped(tensor)[0]


def _unwrapped(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return the same, and how many dimensions of vmaps it has."""
    if not is_wrapped(tensor):
        return tensor.detach(), 0
    inner, batches = _unwrapped(_C.get_unwrapped(tensor))
    if not _C.is_batchedtensor(tensor):
        return inner, batches
    return inner.movedim(batches + _C.maybe_get_bdim(tensor), batches), batches + 1
