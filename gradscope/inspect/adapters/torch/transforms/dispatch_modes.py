"""Modes that a program has entered (fake tensors, tracing, counts of operations), put aside while one looks."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["all_modes_aside", "modes_aside"]

_WITHOUT_DISPATCH = (torch.Tensor, torch.nn.Parameter)


def modes_aside(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Return a block in which no mode sees what is done with a tensor; its class does, where that dispatches itself."""
    if type(tensor) in _WITHOUT_DISPATCH:
        aside: AbstractContextManager[object] = torch._C._DisableTorchDispatch()
        return aside
    return all_modes_aside()


def all_modes_aside() -> AbstractContextManager[object]:
    """Return a block in which no mode sees what is done; the classes of tensors do."""
    return _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()
