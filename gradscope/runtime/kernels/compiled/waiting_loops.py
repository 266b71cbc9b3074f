"""Waiting for another thread awake, without the interpreter's lock: who sleeps takes some 20 microseconds to wake."""

from __future__ import annotations

import platform
from typing import Any

import numba
from llvmlite import ir
from numba import types

from .jit import i8, kernel

__all__ = ["wait_for_change"]

_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")


@numba.extending.intrinsic
def _now_in(_: Any, counter: Any) -> Any:
    """Return the first element of an array, which another thread may just have written."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, ordering="acquire", align=8)

    return i8(counter), generated


@numba.extending.intrinsic
def _pause(_: Any) -> Any:
    """Leave the processor to who shares it, for some ten nanoseconds."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _HAS_PAUSE:
            nothing = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), nothing), [])
        return context.get_dummy_value()

    return types.void(), generated


@kernel(types.Array(i8, 1, "C"), i8, i8, i8)
def wait_for_change(counter, seen, turns, more):
    """Turn until the first element is another than has been seen, then some turns more; or so many turns in all."""
    for _ in range(turns):
        if _now_in(counter) != seen:
            break
        _pause()
    else:
        more = 0
    for _ in range(more):
        _pause()
