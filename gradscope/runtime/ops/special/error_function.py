"""The error function, its relatives, and how a special function is taken from SciPy or CuPy."""

from __future__ import annotations

import math

from ...kernels import error_function_kernel as kernel
from ...kernels import forms
from ...kernels.elementwise import whole
from ...kernels.forms import pointwise
from ...memory import device
from ..declaration.annotations import Array, Formula, Namespace
from ..declaration.registry import operator
from ..declaration.samples import unary
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import is_half, single

__all__ = ["erf_forward", "native", "special", "special_in_one_pass"]

_ROOT_PI = math.sqrt(math.pi)


def native(name: str, *arrays: Array) -> Array:
    """Return SciPy's (on a GPU, CuPy's) special function `name` of arrays of one dtype, in that dtype."""
    function = device.special_function(arrays[0], name)
    if is_half(arrays[0]):  # SciPy has no loop for half precision, and some of CuPy's return double
        return function(*map(single, arrays)).astype(arrays[0].dtype)
    return function(*arrays)


def special(name: str, native_name: str | None = None, kernel: str = "{}_vml_cpu", refused: str = "biuc") -> Formula:
    """Return the forward of a special function of one array.

    Parameters
    ----------
    name : str
        PyTorch's name, which its complaint of the dtype has.
    native_name : str, optional
        The name in ``scipy.special`` and ``cupyx.scipy.special``, if it is another.
    kernel : str
        The name of PyTorch's kernel, with ``{}`` for the function's.
    refused : str
        The kinds of dtypes that it does not take; ``e`` is half precision.
    """

    def forward(xp: Namespace, self: Array) -> Array:
        refuse(kernel.format(name), self, refused)
        return native(native_name or name, self)

    return forward


def special_in_one_pass(name: str, loop: str, kernel: str = "{}_vml_cpu") -> Formula:
    """Return what :func:`special` does; of large float32 arrays on the CPU a compiled loop computes it."""
    known, loop = special(name, kernel=kernel), f"special_function_loops.{loop}"

    @whole
    def forward(xp: Namespace, self: Array) -> Array:
        if self.size >= forms.FEW and xp is device.numpy and self.dtype.char == "f":
            return pointwise(loop, lambda x: known(xp, x), self)
        return known(xp, self)

    return forward


def refuse(kernel: str, array: Array, kinds: str) -> None:
    """Raise, in PyTorch's words, for an array of one of the dtype kinds; ``e`` is half precision."""
    refuse_kinds(kernel, array, "f" if "e" in kinds and is_half(array) else kinds)


_erfinv_of_positive = special_in_one_pass("erfinv", "erfinvs")


@whole
def _erfinv(xp: Namespace, self: Array) -> Array:
    return xp.copysign(_erfinv_of_positive(xp, self), self)  # SciPy's of -0.0 is 0.0


def erf_forward(xp: Namespace, self: Array) -> Array:
    """Return the error function of an array."""
    if self.dtype.char == "f" and xp is device.numpy:  # SciPy's takes eight times as long
        return pointwise("error_function_loops.erf", lambda x: kernel.erf(xp, x), self)
    return _erf_of_doubles(xp, self)


_erf_of_doubles = special("erf")

operator(
    "erf(Tensor self)",
    erf_forward,
    promote="float",
    inplace=True,
    out=True,
    alias=("special.erf",),
    derivatives={"self": lambda g, self, F: g * F.exp(-(self * self)) * (2 / _ROOT_PI)},
    doc="Return the error function.",
    samples=unary(),
    reference="mpmath.erf",
    supports="f",
)
operator(
    "erfc(Tensor self)",
    special_in_one_pass("erfc", "erfcs"),
    promote="float",
    inplace=True,
    out=True,
    alias=("special.erfc",),
    derivatives={"self": lambda g, self, F: g * F.exp(-(self * self)) * (-2 / _ROOT_PI)},
    doc="Return ``1 - erf(self)`` without loss.",
    samples=unary(),
    reference="scipy.special.erfc",
    supports="f",
)
operator(
    "erfinv(Tensor self)",
    _erfinv,
    promote="float",
    inplace=True,
    out=True,
    alias=("special.erfinv",),
    derivatives={"self": lambda g, result, F: g * F.exp(result * result) * (_ROOT_PI / 2)},
    doc="Return the inverse of the error function.",
    samples=unary(-0.9, 0.9),
    reference="scipy.special.erfinv",
    differs=((lambda x: x == 0, "SciPy's of -0.0 is 0.0"),),
    supports="f",
)
