"""Modules on several devices, of which there is one: DataParallel runs its module there.

Examples
--------
>>> import gradscope as gs
>>> model = gs.nn.DataParallel(gs.nn.Linear(2, 1))
>>> model(gs.ones(3, 2)).shape, list(model.state_dict())
(gradscope.Size([3, 1]), ['module.weight', 'module.bias'])
"""

from __future__ import annotations

from typing import Any

from .modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """A module that runs another one, on the device where that is.

    Parameters
    ----------
    device_ids, output_device, dim
        Taken for PyTorch's sake.

    See Also
    --------
    Module

    Examples
    --------
    >>> import gradscope as gs
    >>> model = gs.nn.DataParallel(gs.nn.Linear(2, 1))
    >>> model(gs.ones(3, 2)).shape, model.device_ids
    (gradscope.Size([3, 1]), [])
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the module."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """A module in several processes, which gradscope does not have: making one raises RuntimeError."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "gradscope has no distributed package, so no DistributedDataParallel: a program runs in one process\n"
            "Use the module itself."
        )
