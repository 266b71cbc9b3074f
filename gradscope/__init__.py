"""Gradscope: a debugger for gradients, and the autograd runtime it looks into.

``import gradscope as gs`` gives PyTorch's names: tensors and operators here, modules in ``gs.nn``, optimizers in
``gs.optim``, the autograd interface in ``gs.autograd``. The instruments live in :mod:`gradscope.inspect`,
:mod:`gradscope.check` and :mod:`gradscope.testing`, and load when they are first used.
"""

from __future__ import annotations

import importlib
import math as _math
import os as _os
from typing import TYPE_CHECKING, Any

from .runtime.engine.backward import OTHER_NAMES as _OTHER_NAMES
from .runtime.errors import *
from .runtime.graph.graph_node import Node as _Node
from .runtime.late_attributes import attach as _attach
from .runtime.memory import device as _device
from .runtime.memory.device import (
    device as device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from .runtime.memory.dtype import (
    bfloat16 as bfloat16,
    complex64 as complex64,
    complex128 as complex128,
    dtype as dtype,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    promote_types as promote_types,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
)
from .runtime.memory.dtype import bool_ as _bool
from .runtime.memory.memory_format import (
    channels_last as channels_last,
    contiguous_format as contiguous_format,
    layout as layout,
    memory_format as memory_format,
    preserve_format as preserve_format,
    strided as strided,
)
from .runtime.modes import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from .runtime.ops.families import PUBLIC as _PUBLIC
from .runtime.settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_threads as get_num_threads,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    set_float32_matmul_precision as set_float32_matmul_precision,
    set_num_threads as set_num_threads,
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from .runtime.tensor.creation import *
from .runtime.tensor.creation import broadcast_shapes as broadcast_shapes
from .runtime.tensor.formatting import set_printoptions as set_printoptions
from .runtime.tensor.tensor import Size as Size, Tensor as Tensor
from .runtime.tensor.tensor_types import *

__version__ = "0.2.0"

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
half, float, double, bool = float16, float32, float64, _bool
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

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
    from .runtime.ops.interface import *
else:
    globals().update(_PUBLIC)

# What tensors, nodes and backward() have of PyTorch 0.1 loads with the rest of that API, when it is first used.
_V01 = "gradscope.autograd.v01.tensor_attributes"
_attach(Tensor, f"{_V01}.TensorAttributes", "volatile", "creator", "reinforce")
_attach(Tensor, f"{_V01}.TensorAttributes", "_multinomial_by_other_names", "_refused_backward")
_attach(_Node, f"{_V01}.NodeAttributes", "previous_functions")
_OTHER_NAMES.update(retain_variables="retain_graph", variables="tensors")

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
    raise AttributeError(f"module 'gradscope' has no attribute {name!r}")


def is_tensor(value: Any) -> bool:  # type: ignore[valid-type]
    """Return whether `value` is a Tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_tensor(gs.ones(2)), gs.is_tensor([1.0])
    (True, False)
    """
    return isinstance(value, Tensor)


if "GRADSCOPE_LISTEN" in _os.environ:  # a program that fronts may debug, without a change to it
    importlib.import_module("gradscope.inspect.wire.listening").listen_as_told(_os.environ["GRADSCOPE_LISTEN"])
