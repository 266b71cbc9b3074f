"""bfloat16: the upper half of a float32, which NumPy has no dtype for.

The dtype is that of ml_dtypes, imported when the first array of it is made. Arrays of it are of a class of their own,
so that operators leave their common path for them by the look that they take at the class anyway: what computes, does
so in float32, and what comes out is rounded once, to the nearest with ties to even, as PyTorch's kernels do. That holds
of operators (:func:`gradscope.runtime.ops.execution.general.forward`) and of each NumPy call on such an array.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy

__all__ = ["BFloat16Array", "marked", "numpy_dtype", "plain", "rounded", "widened"]

KIND, CHAR = "V", "E"
"""NumPy's letters for the kind and the type of the dtype."""

_SINGLE = numpy.dtype(numpy.float32)

known: bool = False
"""Whether there may be arrays of it: while there are none, nobody looks for them."""


@cache
def numpy_dtype() -> numpy.dtype:
    """Return the NumPy dtype, which ml_dtypes makes known."""
    import ml_dtypes  # it loads at first use: few programs compute in bfloat16

    global known
    known = True
    return numpy.dtype(ml_dtypes.bfloat16)


class BFloat16Array(numpy.ndarray):
    """An array of bfloat16; NumPy computes with it in float32 and rounds the result, unless another float is wider."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        if method == "at":
            return _written(inputs[0], lambda wide: ufunc.at(wide, *map(widened, inputs[1:])))
        targets = tuple(None if target is None else widened(target) for target in out)
        if targets:
            options["out"] = targets
        asked = _taken_dtype(options)
        results = getattr(ufunc, method)(*map(widened, inputs), **options)
        if not targets:
            return _narrowed(results) if (narrows(inputs) if asked is None else asked) else results
        for target, wide in zip(out, targets, strict=True):
            if type(target) is BFloat16Array:
                write(target, wide)
        return out[0] if len(out) == 1 else out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _MOVING:
            return marked(func(*map(plain, args), **kwargs))
        if func is numpy.copyto:
            return _written(args[0], lambda wide: func(wide, *map(_deeply_wide, args[1:]), **kwargs))
        options = {name: _deeply_wide(value) for name, value in kwargs.items()}
        asked = _taken_dtype(options)
        results = func(*map(_deeply_wide, args), **options)
        return _narrowed(results) if (narrows(args) if asked is None else asked) else results

    def astype(self, dtype: Any, order: Any = "K", *options: Any, copy: bool = True, **more: Any) -> Any:  # type: ignore[override]
        """Return a copy of another dtype; of bfloat16 it is of this class, others are NumPy's own."""
        target = numpy.dtype(dtype)
        if target.char == CHAR:
            return self.copy(order) if copy else self
        return plain(self).astype(target, order)

    def item(self, *place: Any) -> float:
        """Return an element as a Python number."""
        return plain(self).astype(_SINGLE).item(*place)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return plain(self).astype(_SINGLE).tolist()


_MOVING = {numpy.broadcast_to, numpy.transpose, numpy.swapaxes, numpy.moveaxis, numpy.expand_dims, numpy.squeeze}
"""Functions that return a view, of which the array itself is asked."""


def plain(value: Any) -> Any:
    """Return an array of bfloat16 as a view of NumPy's own class, for what only moves elements; others as they are."""
    return value.view(numpy.ndarray) if type(value) is BFloat16Array else value


def marked(value: Any) -> Any:
    """Return arrays of bfloat16, also in tuples and lists, in the class that says so; all else as it is.

    Raises
    ------
    TypeError
        For an array of bfloat16 on another device.
    """
    if isinstance(value, numpy.ndarray):
        if value.dtype.char != CHAR or type(value) is not numpy.ndarray:
            return value
        numpy_dtype()  # an array that was unpickled may be the first one
        return value.view(BFloat16Array)
    if type(value) in (tuple, list):
        return type(value)(map(marked, value))
    if getattr(getattr(value, "dtype", None), "char", "") == CHAR and not isinstance(value, numpy.generic):
        raise elsewhere_error()
    return value


def elsewhere_error() -> TypeError:
    """Return the error for an array of bfloat16 that is not NumPy's: it would not be computed with in float32."""
    return TypeError(
        "bfloat16 is here on the CPU only: no tensor of it can be on CUDA\nConvert it first, with .half()."
    )


def widened(value: Any) -> Any:
    """Return an array or a NumPy number of bfloat16 in float32; all else as it is."""
    if type(value) is BFloat16Array:
        return value.view(numpy.ndarray).astype(_SINGLE)
    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.char == CHAR:
        return value.astype(_SINGLE)
    return value


def rounded(value: Any) -> BFloat16Array:
    """Return a real array rounded to bfloat16, laid out alike; what is too large becomes infinite, as in PyTorch."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        return numpy.asarray(value).astype(numpy_dtype()).view(BFloat16Array)


def write(target: BFloat16Array, value: Any) -> None:
    """Write values, rounded, into an array."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        target.view(numpy.ndarray)[...] = plain(value)


def _taken_dtype(options: dict[str, Any]) -> bool | None:
    """Return whether a call is asked for bfloat16 by ``dtype=``, for which float32 is put; None without one."""
    if options.get("dtype") is None:
        return None
    asked = numpy.dtype(options["dtype"]).char == CHAR
    if asked:
        options["dtype"] = _SINGLE
    return asked


def narrows(values: Any) -> bool:
    """Whether what is computed of `values` is bfloat16: no array among them is of another float."""
    for value in values:
        if type(value) in (list, tuple):
            if not narrows(value):
                return False
        elif isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "fc":
            return False
    return True


def _deeply_wide(value: Any) -> Any:
    return type(value)(map(_deeply_wide, value)) if type(value) in (tuple, list) else widened(value)


def _narrowed(value: Any) -> Any:
    """Return floats among the results of a call rounded, all else as it is."""
    if type(value) in (tuple, list):
        return type(value)(map(_narrowed, value))
    floating = isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind == "f"
    return rounded(value) if floating else value


def _written(target: Any, change: Any) -> None:
    """Have `change` write into `target`, in float32 if it is an array of bfloat16."""
    if type(target) is not BFloat16Array:
        change(target)
        return
    wide = widened(target)
    change(wide)
    write(target, wide)
