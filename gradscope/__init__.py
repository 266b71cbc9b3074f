"""Gradscope: a debugger for gradients, and the autograd runtime it looks into.

``import gradscope as gs`` gives PyTorch's names: tensors and operators here, modules in ``gs.nn``, optimizers in
``gs.optim``, the autograd interface in ``gs.autograd``. The instruments live in :mod:`gradscope.inspect`,
:mod:`gradscope.check` and :mod:`gradscope.testing`, and load when they are first used.

- :mod:`~.amp`: mixed precision: autocast, and the scaling of losses
- :mod:`~.autograd`: ``backward()``, ``grad()``, ``Function``, hooks on graphs, gradcheck
- :mod:`~.backends`: switches of libraries that PyTorch uses
- :mod:`~.check`: what ``gradscope check`` does: wrong writes in place, found while a script runs or in its source
- :mod:`~.cli`: the ``gradscope`` command
- :mod:`~.compiler`: what ``torch.compile`` needs to find
- :mod:`~.cuda`: devices that CuPy finds, and their streams and memory
- :mod:`~.debuggee`: ``python -m gradscope.debuggee``: a script that waits for a front
- :mod:`~.distributed`: what a program asks of process groups where there are none
- :mod:`~.distributions`: distributions, transforms, constraints, divergences
- :mod:`~.fft`: Fourier transforms
- :mod:`~.func`: ``grad``, ``vmap``, ``jacrev`` and others that take functions and return functions
- :mod:`~.inspect`: the instruments: graph, debugger, recorder, doctor
- :mod:`~.jit`: TorchScript's decorators, which change nothing
- :mod:`~.linalg`: decompositions, solvers, norms
- :mod:`~.masked`: reductions of the elements under a mask
- :mod:`~.nn`: layers, losses, and their functional forms
- :mod:`~.notebook`: what ``%load_ext gradscope`` adds to a notebook
- :mod:`~.optim`: optimizers and schedules
- :mod:`~.overrides`: ``__torch_function__``
- :mod:`~.profiler`: which operators and blocks take how long
- :mod:`~.program_files`: whose a source file is, and what the cells of a notebook are called
- :mod:`~.random`: seeds and generators
- :mod:`~.runtime`: tensors, the graph, the engine and all operators
- :mod:`~.serialization`: ``save()`` and ``load()``
- :mod:`~.signal`: windows
- :mod:`~.special`: special functions
- :mod:`~.testing`: assertions, Hypothesis strategies, the pytest plugin
- :mod:`~.utils`: data loaders, checkpoints, DLPack
- :mod:`~.version`: the version, and versions of what PyTorch is built with

PYTEST_DONT_REWRITE: it may be imported before pytest, which warns then that it cannot rewrite its assertions.
"""

from __future__ import annotations

import importlib
import os as _os
from typing import TYPE_CHECKING, Any

__version__ = "0.10.0"


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


def load_ipython_extension(shell: Any) -> None:
    """Add to a notebook what :mod:`gradscope.notebook` has; IPython calls this for ``%load_ext gradscope``."""
    importlib.import_module("gradscope.notebook").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take it away again; IPython calls this for ``%unload_ext gradscope``."""
    importlib.import_module("gradscope.notebook").unload_ipython_extension(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *_public(), *_LAZY, *_ELSEWHERE})


def _public() -> dict[str, Any]:
    """Load the runtime, and put its names here, where the next who asks finds them."""
    public = importlib.import_module("gradscope.runtime.names").PUBLIC
    globals().update(public)
    return public


if "GRADSCOPE_LISTEN" in _os.environ:  # a program that fronts may debug, without a change to it
    importlib.import_module("gradscope.inspect.wire.listening").listen_as_told(_os.environ["GRADSCOPE_LISTEN"])
