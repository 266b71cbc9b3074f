"""Modules, their parameters, and the functions they compute."""

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
