"""Switches of oneDNN, which is not used; ``enabled`` does here what it does to a recurrent network in PyTorch.

While it is True, one direction of one layer is one node. While it is False the layer is composed of single steps, some
ten nodes each: slower, but a debugger stops inside of a step.

Examples
--------
>>> import gradscope as gs
>>> network = gs.nn.LSTM(2, 3)
>>> network(gs.zeros(4, 1, 2))[0].grad_fn.name()
'MkldnnRnnLayerBackward0'
>>> with gs.backends.mkldnn.flags(enabled=False):
...     network(gs.zeros(4, 1, 2))[0].grad_fn.name()
'StackBackward0'
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType

from ..runtime import settings
from .switches import is_available, put

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "fp32_precision", "is_available"]


class _Switches(ModuleType):
    """The class of this module: ``enabled`` is a setting of the runtime."""

    @property
    def enabled(self) -> bool:
        return settings.get_mkldnn_enabled()

    @enabled.setter
    def enabled(self, value: bool) -> None:
        settings.set_mkldnn_enabled(value)


enabled: bool
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> AbstractContextManager[None]:
    """Set all switches for the length of a block; what is not named is set to its default, as in PyTorch."""
    return put(
        __name__,
        enabled=enabled,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )


sys.modules[__name__].__class__ = _Switches
