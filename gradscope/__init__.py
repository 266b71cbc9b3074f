"""Gradscope: a debugger for gradients, and the autograd runtime it looks into.

``import gradscope as gs`` gives PyTorch's names: tensors and operators here, modules in ``gs.nn``, optimizers in
``gs.optim``, the autograd interface in ``gs.autograd``. The instruments live in :mod:`gradscope.inspect`,
:mod:`gradscope.check` and :mod:`gradscope.testing`, and load when they are first used.
"""

from __future__ import annotations

import importlib
import math as _math
from typing import TYPE_CHECKING, Any

from .runtime.engine.backward import OTHER_NAMES as _OTHER_NAMES
from .runtime.errors import InplaceError, SavedTensorFreedError, SavedTensorModifiedError
from .runtime.graph.graph_node import Node as _Node
from .runtime.late_attributes import attach as _attach
from .runtime.memory import device as _device
from .runtime.memory.device import device, get_default_device, set_default_device
from .runtime.memory.dtype import (
    bfloat16,
    complex64,
    complex128,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from .runtime.memory.dtype import bool_ as bool
from .runtime.memory.memory_format import (
    channels_last,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from .runtime.modes import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .runtime.ops.families import PUBLIC as _PUBLIC
from .runtime.settings import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    get_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    set_float32_matmul_precision,
    set_num_threads,
    use_deterministic_algorithms,
)
from .runtime.tensor.creation import *
from .runtime.tensor.creation import broadcast_shapes
from .runtime.tensor.formatting import set_printoptions
from .runtime.tensor.tensor import Size, Tensor
from .runtime.tensor.tensor_types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    set_default_tensor_type,
    typename,
)

__version__ = "0.2.0"

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

if TYPE_CHECKING:
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

_AMP = (
    *("autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache"),
    *("get_autocast_dtype", "is_autocast_available", "is_autocast_cache_enabled", "is_autocast_enabled"),
    *("set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled"),
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"gradscope.{name}")
    if name == "vmap":
        return importlib.import_module("gradscope.func").vmap
    if name in _AMP:
        return getattr(importlib.import_module("gradscope.amp.autocast_mode"), name)
    if name == "compile":
        return importlib.import_module("gradscope.compiler").compile
    if name in ("load", "save"):
        return getattr(importlib.import_module("gradscope.serialization"), name)
    raise AttributeError(f"module 'gradscope' has no attribute {name!r}")


def is_tensor(value: Any) -> bool:  # type: ignore[valid-type]
    """Return whether `value` is a Tensor."""
    return isinstance(value, Tensor)
