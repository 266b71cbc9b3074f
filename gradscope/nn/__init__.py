"""Modules, their parameters, and the functions they compute.

- :mod:`~.modules`: ``Module`` and all layers
- :mod:`~.functional`: what layers compute, as functions
- :mod:`~.init`: initial values
- :mod:`~.parameter`: parameters, buffers, and those that wait for their shape
- :mod:`~.utils`: clipping, parametrizations, pruning, packed sequences
- :mod:`~.grad`: gradients of convolutions by themselves
- :mod:`~.attention`: which kernel scaled dot-product attention may take
- :mod:`~.parallel`: DataParallel
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import attention, functional, grad, init, modules, parallel, parameter, utils
from .modules import *  # noqa: F403
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
if not TYPE_CHECKING:
    __all__ += modules.__all__
