"""Keeping torch.compile out: its Dynamo reads every function that is called while it works, and ours are not for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["COMPILED", "leave_uncompiled"]

COMPILED = "what torch.compile has compiled, which is one node with its own backward inside"

_dynamo = torch._C._dynamo.eval_frame
# The function is new in PyTorch 2.7; before, Dynamo gives up on each of the functions by itself.
_STRATEGY = getattr(_dynamo, "_FrameExecStrategy", None)


def leave_uncompiled(*functions: Callable[..., Any], calls: bool = True) -> None:
    """Have functions run as they are when a function that is being compiled, or has a graph break, calls them.

    Parameters
    ----------
    calls : bool
        And what they call; False for what calls the program's own code.
    """
    if _STRATEGY is None:
        return
    skip, default = _dynamo._FrameAction.SKIP, _dynamo._FrameAction.DEFAULT
    for function in functions:
        _dynamo.set_code_exec_strategy(function.__code__, _STRATEGY(skip, skip if calls else default))
