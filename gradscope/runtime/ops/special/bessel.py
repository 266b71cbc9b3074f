"""Bessel functions, modified ones, and the Airy function.

Those that PyTorch gives no derivative have none here either. Derivatives are those of the *Digital Library of
Mathematical Functions*, chapters 9 and 10.
"""

from __future__ import annotations

import math

from ..declaration.annotations import Array, Gradient, Namespace
from ..declaration.references import from_library
from ..declaration.registry import operator
from ..declaration.samples import unary
from .error_function import native, refuse, special, special_in_one_pass

# --- modified Bessel functions of the first kind ----------------------------------------------------------------------


def _i1_over(i1: Array, x: Array, F: Namespace) -> Array:
    """Return ``i1(x) / x`` given its numerator, scaled or not; close to 0, where that has lost its digits, 1/2."""
    near = F.abs(x) <= _NEAR
    return F.where(near, F.zeros_like(x) + 0.5, i1 / F.where(near, F.ones_like(x), x))


_NEAR = 1e-16

operator(
    "i0(Tensor self)",
    special_in_one_pass("i0", "i0s"),
    promote="float",
    inplace=True,
    out=True,
    alias=("special.i0",),
    derivatives={"self": lambda g, self, F: g * F.special_i1(self)},
    doc="Return the modified Bessel function of the first kind of order 0.",
    samples=unary(0.2, 4.0),
    reference="scipy.special.i0",
    supports="f",
)
operator(
    "special_i1(Tensor self)",
    special_in_one_pass("i1", "i1s", kernel="{}_cpu"),
    promote="float",
    out=True,
    derivatives={"self": lambda g, self, result, F: g * (F.i0(self) - _i1_over(result, self, F))},
    doc="Return the modified Bessel function of the first kind of order 1: the derivative of i0.",
    samples=unary(0.2, 4.0),
    reference="scipy.special.i1",
    supports="f",
)
operator(
    "special_i0e(Tensor self)",
    special("i0e", kernel="{}_cpu"),
    promote="float",
    out=True,
    derivatives={"self": lambda g, self, result, F: g * (F.special_i1e(self) - F.sgn(self) * result)},
    doc="Return ``exp(-abs(self)) * i0(self)``, which does not overflow.",
    samples=unary(0.2, 4.0),
    reference="scipy.special.i0e",
    supports="f",
)


def _i1e_self(g: Gradient, self: Array, result: Array, F: Namespace) -> Gradient:
    return g * (F.special_i0e(self) - F.sgn(self) * result - _i1_over(result, self, F))


operator(
    "special_i1e(Tensor self)",
    special("i1e", kernel="{}_cpu"),
    promote="float",
    out=True,
    derivatives={"self": _i1e_self},
    doc="Return ``exp(-abs(self)) * i1(self)``, which does not overflow.",
    samples=unary(0.2, 4.0),
    reference="scipy.special.i1e",
    supports="f",
)

# --- without derivatives ----------------------------------------------------------------------------------------------

for _name, _native, _doc in (
    ("bessel_j0", "j0", "the Bessel function of the first kind of order 0"),
    ("bessel_j1", "j1", "the Bessel function of the first kind of order 1"),
    ("bessel_y0", "y0", "the Bessel function of the second kind of order 0"),
    ("bessel_y1", "y1", "the Bessel function of the second kind of order 1"),
    ("modified_bessel_i0", "i0", "the modified Bessel function of the first kind of order 0"),
    ("modified_bessel_i1", "i1", "the modified Bessel function of the first kind of order 1"),
    ("modified_bessel_k0", "k0", "the modified Bessel function of the second kind of order 0"),
    ("modified_bessel_k1", "k1", "the modified Bessel function of the second kind of order 1"),
    (
        "scaled_modified_bessel_k0",
        "k0e",
        "``exp(self)`` times the modified Bessel function of the second kind of order 0",
    ),
    (
        "scaled_modified_bessel_k1",
        "k1e",
        "``exp(self)`` times the modified Bessel function of the second kind of order 1",
    ),
):
    operator(
        f"special_{_name}(Tensor self)",
        special(_name, _native, "{}_cpu", "biuce"),
        promote="float",
        out=True,
        doc=f"Return {_doc}.",
        samples=unary(0.2, 4.0),
        reference=f"scipy.special.{_native}",
        supports="f",
    )
del _name, _native, _doc


def _spherical_bessel_j0(xp: Namespace, self: Array) -> Array:
    refuse("spherical_bessel_j0_cpu", self, "biuce")
    at_limit = (self == 0) | (abs(self) == math.inf)
    inside = xp.where(at_limit, 1, self)
    return xp.where(at_limit, self == 0, xp.sin(inside) / inside).astype(self.dtype, copy=False)


operator(
    "special_spherical_bessel_j0(Tensor self)",
    _spherical_bessel_j0,
    promote="float",
    out=True,
    doc="Return the spherical Bessel function of the first kind of order 0: ``sin(self) / self``, and 1 at 0.",
    samples=unary(0.2, 4.0),
    reference=lambda x: from_library("scipy.special.spherical_jn")(0, x),
    supports="f",
)

_FAR = 1e6
"""Beyond, SciPy's airy() returns NaN."""


def _airy_ai(xp: Namespace, self: Array) -> Array:
    refuse("airy_ai_cpu", self, "biuce")
    size = abs(self)
    far = (size > _FAR) & (size < math.inf)
    near = native("airy", xp.where(far, 0, self).astype(self.dtype, copy=False))[0]
    # The leading term of the expansion at negative infinity (DLMF 9.7.9); at infinity it is 0.
    size = xp.where(far, size, 1).astype("float64")
    wave = xp.sin(size**1.5 * (2 / 3) + math.pi / 4) / (math.sqrt(math.pi) * size**0.25)
    return xp.where(far, xp.where(self > 0, 0, wave), near).astype(self.dtype, copy=False)


operator(
    "special_airy_ai(Tensor self)",
    _airy_ai,
    promote="float",
    out=True,
    doc="Return the Airy function Ai. CuPy has none: on a GPU it raises NotImplementedError.",
    samples=unary(-2.0, 3.0),
    reference=lambda x: from_library("scipy.special.airy")(x)[0],
    differs=((lambda x: (abs(x) > _FAR) & (abs(x) < math.inf), "SciPy has NaN far from 0"),),
    supports="f",
)
