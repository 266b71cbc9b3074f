"""range(): the deprecated sequence that includes its end."""

from __future__ import annotations

import math
from typing import Any

from ..memory import device as devices
from ..memory import dtype as dtypes
from ..user_warnings import warn
from .creation import check_memory, finish, need_kind, numpy_dtype, range_numbers
from .tensor import Tensor

__all__ = ["range"]


def range(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the values from `start` to `end`, inclusive, in steps of `step`; deprecated, use :func:`arange`.

    Without `dtype` they are of the default dtype, also where the arguments are integers.

    See Also
    --------
    arange, linspace

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     gs.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warn(
        "gradscope.range is deprecated and will be removed in a future release because its behavior is inconsistent "
        "with Python's range builtin. Instead, use gradscope.arange, which produces values in [start, end)."
    )
    if layout is not None:
        check_memory("range", layout, False)
    first, last, stride = range_numbers("range", start, end, step)
    kind = dtypes.default_dtype.numpy if dtype is None and out is None else numpy_dtype(dtype, out)
    need_kind("range", kind, "iufV")
    if kind.kind not in dtypes.FLOATING:
        first, last, stride = int(first), int(last), int(stride)
        if stride == 0:
            raise RuntimeError(f"step must be nonzero\nAs an integer {step} is 0.")
    count = math.floor((last - first) / stride) + 1
    module = devices.module_for(devices.wanted(device))
    values = module.arange(count, dtype="float64" if kind.kind in dtypes.FLOATING else "int64") * stride + first
    return finish(values.astype(kind, copy=False), requires_grad, out, "range")
