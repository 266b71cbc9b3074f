"""The names that ``gradscope`` itself has: tensors, operators, dtypes, modes; any module of the runtime loads them.

What stands here is what every other part of the package may count on: all operators are declared, tensors have their
methods, and the API of PyTorch 0.1 is attached where somebody asks for it.
"""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, Any

from .engine.backward import OTHER_NAMES as _OTHER_NAMES
from .errors import *
from .graph.graph_node import Node as _Node
from .late_attributes import attach as _attach
from .memory import device as _device
from .memory.device import (
    device as device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from .memory.dtype import (
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
from .memory.dtype import bool_ as _bool
from .memory.memory_format import (
    channels_last as channels_last,
    contiguous_format as contiguous_format,
    layout as layout,
    memory_format as memory_format,
    preserve_format as preserve_format,
    strided as strided,
)
from .modes import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from .ops.families import PUBLIC as _PUBLIC
from .settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_interop_threads as get_num_interop_threads,
    get_num_threads as get_num_threads,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled as is_warn_always_enabled,
    set_float32_matmul_precision as set_float32_matmul_precision,
    set_num_interop_threads as set_num_interop_threads,
    set_num_threads as set_num_threads,
    set_warn_always as set_warn_always,
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from .tensor.creation import *
from .tensor.creation import broadcast_shapes as broadcast_shapes
from .tensor.inclusive_range import *
from .tensor.formatting import set_printoptions as set_printoptions
from .tensor.tensor import Size as Size, Tensor as Tensor
from .tensor.tensor_types import *

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
half, float, double, bool = float16, float32, float64, _bool
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

_NOT_OURS = {"annotations", "TYPE_CHECKING", "Any"}

if TYPE_CHECKING:
    from .ops.interface import *
else:
    globals().update(_PUBLIC)

# What tensors, nodes and backward() have of PyTorch 0.1 loads with the rest of that API, when it is first used.
_V01 = "gradscope.autograd.v01.tensor_attributes"
_attach(Tensor, f"{_V01}.TensorAttributes", "volatile", "creator", "reinforce")
_attach(Tensor, f"{_V01}.TensorAttributes", "_multinomial_by_other_names", "_refused_backward")
_attach(_Node, f"{_V01}.NodeAttributes", "previous_functions")
_OTHER_NAMES.update(retain_variables="retain_graph", variables="tensors")


def is_tensor(value: Any) -> bool:  # type: ignore[valid-type]
    """Return whether `value` is a Tensor.

    See Also
    --------
    is_floating_point, is_complex

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_tensor(gs.ones(2)), gs.is_tensor([1.0])
    (True, False)
    """
    return isinstance(value, Tensor)


PUBLIC = {name: value for name, value in globals().items() if not name.startswith("_") and name not in _NOT_OURS}
"""By name."""
