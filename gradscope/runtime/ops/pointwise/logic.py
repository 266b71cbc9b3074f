"""Comparisons, and logical and bitwise operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...memory import dtype as dtypes
from ..declaration.annotations import Array, Cases, Formula, Make, Namespace
from ..declaration.extremes import elementwise, integral
from ..declaration.registry import METHODS, operator
from ..declaration.samples import binary, integers, unary
from ..execution.array_errors import real_ufunc, refuse_kinds

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

# --- comparisons ------------------------------------------------------------------------------------------------------


def _compared(ufunc: str) -> Formula:
    """Return the forward of an in-place comparison: its truth in the dtype of the first operand."""

    def forward(xp: Namespace, self: Array, other: Array) -> Array:
        kind = dtypes.result_numpy([self, other])
        if hasattr(other, "dtype"):
            other = other.astype(kind, copy=False)
        return getattr(xp, ufunc)(self.astype(kind, copy=False), other).astype(self.dtype)

    return forward


def _inplace_comparison(name: str, ufunc: str, aliases: tuple[str, ...]) -> None:
    """Declare ``name_``, which has a gradient of zeros, and an operator of its own where `other` is a number."""
    supports = "fc" if name in ("eq", "ne") else "f"
    zeros: Formula = lambda g, F: F.zeros_like(g)  # noqa: E731
    node = f"{name.title()}Backward"
    number = operator(
        f"{name}.write_Scalar(Tensor self, Scalar other)",
        _compared(ufunc),
        inplace=True,
        node=f"{node}0",
        method=False,
        derivatives={"self": zeros},
        samples=lambda make: [((make(2, 3), 1.5), {}), ((make(), 1), {}), ((make(0, 2), 0), {})],
        reference=f"numpy.{ufunc}",
        extremes=elementwise(1, 1.0),
        doc=f"The in-place form of {name}() with a number.",
        supports=supports,
    )
    tensor = operator(
        f"{name}.write_Tensor(Tensor self, Tensor other)",
        _compared(ufunc),
        inplace=True,
        node=f"{node}1",
        method=False,
        derivatives={"self": zeros, "other": zeros},
        samples=lambda make: [((make(2, 3), make(2, 3)), {}), ((make(2, 3), make(3)), {}), ((make(), make()), {})],
        reference=f"numpy.{ufunc}",
        extremes=elementwise(2),
        doc=f"The in-place form of {name}() with a tensor.",
        supports=supports,
    )

    def in_place(self: Array, other: Array) -> Tensor:
        op = tensor if hasattr(other, "_array") else number
        return op.inplace_function(self, other)  # type: ignore[misc]

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"In-place form of :func:`{name}`: 1 where it holds and 0 elsewhere, in the dtype of the tensor."
    for public_name in (name, *aliases):
        METHODS[f"{public_name}_"] = in_place


for _name, _ufunc, _alias, _doc in (
    ("eq", "equal", (), "equal"),
    ("ne", "not_equal", ("not_equal",), "different"),
    ("lt", "less", ("less",), "less"),
    ("le", "less_equal", ("less_equal",), "less or equal"),
    ("gt", "greater", ("greater",), "greater"),
    ("ge", "greater_equal", ("greater_equal",), "greater or equal"),
):
    operator(
        f"{_name}(Tensor self, Tensor other)",
        _ufunc if _name in ("eq", "ne") else real_ufunc(_ufunc, f'"{_name}_cpu" not implemented for {{}}'),
        promote="numeric",
        out=True,
        alias=_alias,
        samples=binary(),
        reference=f"numpy.{_ufunc}",
        doc=f"Say elementwise whether `self` is {_doc} (compared with `other`).",
    )
    _inplace_comparison(_name, _ufunc, _alias)

# --- logic ------------------------------------------------------------------------------------------------------------

for _name in ("logical_and", "logical_or", "logical_xor"):
    operator(
        f"{_name}(Tensor self, Tensor other)",
        _name,
        promote="numeric",
        numbers=None,
        inplace=True,
        out=True,
        samples=binary(scalar=None),
        reference=f"numpy.{_name}",
        doc=f"Elementwise {_name.replace('_', ' ')}.",
    )
operator(
    "logical_not(Tensor self)",
    "logical_not",
    inplace=True,
    out="castable",
    samples=unary(),
    reference="numpy.logical_not",
    extremes=elementwise(),
    doc="Elementwise logical not.",
)
for _name in ("isnan", "isinf", "isfinite"):
    operator(
        f"{_name}(Tensor self)",
        _name,
        samples=unary(),
        reference=f"numpy.{_name}",
        extremes=elementwise(),
        doc=f"Elementwise {_name}.",
    )

# --- bits -------------------------------------------------------------------------------------------------------------

for _name, _doc in (("and", "and"), ("or", "or"), ("xor", "exclusive or")):
    operator(
        f"bitwise_{_name}(Tensor self, Tensor other)",
        f"bitwise_{_name}",
        promote="numeric",
        numbers="either",
        inplace=True,
        out=True,
        samples=integers(2),
        reference=f"numpy.bitwise_{_name}",
        extremes=integral(2),
        doc=f"Elementwise bitwise {_doc}.",
    )
operator(
    "bitwise_not(Tensor self)",
    "invert",
    inplace=True,
    out=True,
    samples=integers(1),
    reference="numpy.invert",
    extremes=integral(),
    doc="Elementwise bitwise not.",
)


def _shift_samples(make: Make) -> Cases:
    return [
        ((make(*a, low=0, high=9, dtype="int64"), make(*b, low=0, high=4, dtype="int64")), {})
        for a, b in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), ()), ((0, 2), (2,)))
    ]


def _shift(side: str) -> Formula:
    def forward(xp: Namespace, self: Array, other: Array) -> Array:
        refuse_kinds(f"{side[0]}shift_cpu", self, "b")
        return getattr(xp, f"{side}_shift")(self, other)

    return forward


for _name in ("left", "right"):
    operator(
        f"bitwise_{_name}_shift(Tensor self, Tensor other)",
        _shift(_name),
        promote="numeric",
        numbers="either",
        inplace=True,
        out=True,
        samples=_shift_samples,
        reference=f"numpy.{_name}_shift",
        extremes=integral(2, kinds=("int64", "int8", "uint8")),
        doc=f"Move the bits of `self` to the {_name} by `other`.",
    )

del _name, _ufunc, _alias, _doc
