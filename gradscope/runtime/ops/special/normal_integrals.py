"""The distribution function of the normal distribution and its relatives, entropies, and ``x log(1 + y)``."""

from __future__ import annotations

import math

from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace
from ..declaration.registry import PUBLIC, operator, public
from ..declaration.samples import binary, unary
from ..execution import inplace_and_out
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import in_dtype_of
from .error_function import special

_ROOT_TWO = math.sqrt(2)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


operator(
    "special_erfcx(Tensor self)",
    special("erfcx", kernel="{}_cpu", refused="biuce"),
    promote="float",
    out=True,
    derivatives={"self": lambda g, self, result: g * (2 * self * result - 2 / math.sqrt(math.pi))},
    doc="Return ``exp(self**2) * erfc(self)``.",
    samples=unary(),
    reference="scipy.special.erfcx",
    supports="f",
)
operator(
    "special_log_ndtr(Tensor self)",
    special("log_ndtr", kernel="{}_cpu", refused="biuce"),
    promote="float",
    out=True,
    derivatives={"self": lambda g, self, F: g / F.special_erfcx(self * (-1 / _ROOT_TWO)) * math.sqrt(2 / math.pi)},
    doc="Return the logarithm of ``ndtr(self)``, without loss far below 0.",
    samples=unary(),
    reference="scipy.special.log_ndtr",
    supports="f",
)
operator(
    "special_ndtri(Tensor self)",
    special("ndtri", kernel="{}_cpu", refused="biuce"),
    promote="float",
    out=True,
    derivatives={"self": lambda g, result, F: g * F.exp(result * result * 0.5) * _ROOT_TWO_PI},
    doc="Return the inverse of ``ndtr``.",
    samples=unary(0.1, 0.9),
    reference="scipy.special.ndtri",
    supports="f",
)
operator(
    "special_entr(Tensor self)",
    special("entr", kernel="{}_cpu"),
    promote="float",
    out=True,
    derivatives={"self": lambda g, self, F: g * (-1 - F.log(self))},
    doc="Return ``-self * log(self)``, 0 at 0 and negative infinity below.",
    samples=unary(0.2, 2.0),
    reference="scipy.special.entr",
    supports="f",
)


def _xlog1py(xp: Namespace, self: Array, other: Array) -> Array:
    refuse_kinds("xlog1py_cpu", self, "c")
    if isinstance(other, (int, float)):  # its logarithm would be a double
        other = self.dtype.type(other)
    product = self * xp.log1p(other)
    return xp.where((self == 0) & (other == other), 0, product).astype(product.dtype, copy=False)


def _xlog1py_self(g: Gradient, self: Array, other: Array, F: Namespace) -> Gradient:
    return F.where((self == 0) & (other <= -1), F.zeros_like(g), F.special_xlog1py(g, in_dtype_of(other, g)))


operator(
    "special_xlog1py(Tensor self, Tensor other)",
    _xlog1py,
    promote="float",
    out=True,
    derivatives={"self": _xlog1py_self, "other": lambda g, self, other: g * self / (other + 1)},
    doc="Return ``self * log1p(other)``, and 0 where `self` is 0; one of them may be a number.",
    numbers="either",
    samples=binary(0.2, 2.0, scalar=None),
    reference="scipy.special.xlog1py",
    supports="f",
)


@public(namespace="special")
def ndtr(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the distribution function of the normal distribution: the probability of less than `self`.

    Far below 0 it loses its digits, as PyTorch's does; :func:`log_ndtr` does not.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.special.ndtr(gs.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    if out is not None:
        return inplace_and_out.into(out, "special_ndtr", [self], lambda: ndtr(self))
    return (1 + PUBLIC["erf"](self * math.sqrt(0.5))) * 0.5
