"""Compiles kernels: at import for the types they name, without the interpreter's lock; the code is kept on disk.

- :mod:`~.scalars`: exp, tanh, erf and the like of one number, the largest of a row, which kernels inline
- :mod:`~.doubles`: functions of one number for which single precision has too few digits, likewise
- :mod:`~.halves`: half precision to single and back, of one number
- :mod:`~.tiles`: parts of matrix products whose sums stay in registers
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
from numba import types

__all__ = [
    "IN1", "IN2", "OUT1", "OUT2", "KernelError", "f4", "i8", "kernel", "of_each", "of_pairs", "pointer_to_float",
    "pointer_to_word", "scalar", "with_functions",
]  # fmt: skip

f4, i8 = types.float32, types.int64
# Contiguous arrays: read-only ones are read too. Vectors, and matrices of rows.
IN1, IN2 = (types.Array(f4, ndim, "C", readonly=True) for ndim in (1, 2))
OUT1, OUT2 = (types.Array(f4, ndim, "C") for ndim in (1, 2))

# Sums may be taken in the order that suits vectors. NaN and infinities keep their meaning: "nnan" and "ninf" are not in
# here. In scalar functions the order of operations is theirs, for it keeps them exact.
_LOOPS = {"contract", "nsz", "reassoc"}
_SCALARS = {"contract"}


class KernelError(Exception):
    """A kernel that cannot be compiled; what the compiler says of it is the cause.

    Attributes
    ----------
    kernel : str
        Its name.
    """

    def __init__(self, kernel: str) -> None:
        super().__init__(f"{kernel}() cannot be compiled")
        self.kernel = kernel


def kernel(*arguments: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that compiles a loop for arguments of these types, once and for the next processes too.

    The decorator raises KernelError where the loop cannot be compiled.
    """
    signature = types.void(*arguments)

    def compiled(loop: Callable[..., None]) -> Callable[..., None]:
        try:
            return _compile(signature, loop)
        except Exception as error:  # what a compiler complains of is of every class
            raise KernelError(loop.__name__) from error

    return compiled


def _compile(signature: Any, loop: Callable[..., None]) -> Callable[..., None]:
    options = {"fastmath": _LOOPS, "nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(signature, cache=True, **options)(loop)
    except RuntimeError:  # there is no folder that can be written to
        return numba.njit(signature, **options)(loop)


def with_functions(name: str, loop: Any, **functions: Callable[..., Any]) -> Callable[..., None]:
    """Return a loop under another name, in which names of its module stand for these functions of :func:`scalar`.

    Numba inlines what is global; of what a closure holds it would not find the compiled code on disk again.
    """
    code = loop.__code__.replace(co_name=name, co_qualname=name)
    return FunctionType(code, loop.__globals__ | functions, name)


def of_each(name: str, function: Callable[..., Any], given: Any = IN1, result: Any = OUT1) -> Callable[..., None]:
    """Return the kernel of a name that writes a function of each number of a vector."""
    return kernel(given, result)(with_functions(name, _of_each, _function=function))


def of_pairs(name: str, function: Callable[..., Any], given: Any = IN1, result: Any = OUT1) -> Callable[..., None]:
    """Return the kernel of a name that writes a function of the numbers of two vectors."""
    return kernel(given, given, result)(with_functions(name, _of_pairs, _function=function))


def _function(*numbers: Any) -> Any:
    """Stands for a function in these loops."""


def _of_each(x: Any, result: Any) -> None:
    for i in range(x.size):
        result[i] = _function(x[i])


def _of_pairs(x: Any, y: Any, result: Any) -> None:
    for i in range(x.size):
        result[i] = _function(x[i], y[i])


def scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of numbers one that kernels call; the compiler puts it into their loops."""
    return numba.njit(fastmath=_SCALARS, error_model="numpy")(function)


def _pointer(kind: Any) -> Any:
    """Return a function that kernels call: it makes of an address, a number, a pointer to what is there."""
    pointer = types.CPointer(kind)

    def from_address(_: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
        def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(address), generated

    return numba.extending.intrinsic(from_address)


pointer_to_float, pointer_to_word = _pointer(f4), _pointer(types.uint64)
