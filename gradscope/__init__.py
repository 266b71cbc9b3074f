"""Gradscope: a debugger for gradients, and the autograd runtime it looks into.

``import gradscope as gs`` gives PyTorch's names: tensors and operators here, modules in ``gs.nn``, optimizers in
``gs.optim``, the autograd interface in ``gs.autograd``. The instruments live in :mod:`gradscope.inspect`,
:mod:`gradscope.check` and :mod:`gradscope.testing`, and load when they are first used.
"""

from __future__ import annotations

import importlib
import os as _os
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"


if TYPE_CHECKING:
    from . import (
        amp as amp,
        autograd as autograd,
        backends as backends,
        check as check,
        compiler as compiler,
        cuda as cuda,
        distributed as distributed,
        distributions as distributions,
        fft as fft,
        func as func,
        inspect as inspect,
        jit as jit,
        linalg as linalg,
        masked as masked,
        nn as nn,
        optim as optim,
        overrides as overrides,
        profiler as profiler,
        random as random,
        serialization as serialization,
        signal as signal,
        special as special,
        testing as testing,
        utils as utils,
        version as version,
    )
    from .amp.autocast_mode import *
    from .compiler import compile as compile
    from .func import vmap as vmap
    from .serialization import load as load, save as save
    from .runtime.names import *

_LAZY = (
    *("amp", "autograd", "backends", "check", "compiler", "cuda", "distributed", "distributions", "fft"),
    *("func", "inspect", "jit", "linalg", "masked", "nn", "optim", "overrides", "profiler", "random"),
    *("serialization", "signal", "special", "testing", "utils", "version"),
)

_ELSEWHERE = {"compile": "compiler", "load": "serialization", "save": "serialization", "vmap": "func"}
_ELSEWHERE |= dict.fromkeys(
    (
        *("autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache"),
        *("get_autocast_dtype", "is_autocast_available", "is_autocast_cache_enabled", "is_autocast_enabled"),
        *("set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled"),
    ),
    "amp.autocast_mode",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"gradscope.{name}")
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f"gradscope.{_ELSEWHERE[name]}"), name)
    if name == "names" or (name.startswith("_") and name != "__all__"):
        raise AttributeError(f"module 'gradscope' has no attribute {name!r}")
    public = _public()
    if name == "__all__":
        return [*public, *_LAZY, *_ELSEWHERE]
    if name in public:
        return public[name]
    raise AttributeError(f"module 'gradscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_public(), *_LAZY, *_ELSEWHERE})


def _public() -> dict[str, Any]:
    """Load the runtime, and put its names here, where the next who asks finds them."""
    public = importlib.import_module("gradscope.runtime.names").PUBLIC
    globals().update(public)
    return public


if "GRADSCOPE_LISTEN" in _os.environ:  # a program that fronts may debug, without a change to it
    importlib.import_module("gradscope.inspect.wire.listening").listen_as_told(_os.environ["GRADSCOPE_LISTEN"])
