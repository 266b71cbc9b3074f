"""Variance, standard deviation and norms."""

from __future__ import annotations

import math
from typing import Any

from . import writes
from .reductions import count_of, spread
from .registry import OPERATORS, operator, public
from .shapes import axes_of

# --- variance ---------------------------------------------------------------------------------------------------------


def _need_floats(name: str, array: Any) -> None:
    if array.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}(): only support floating point and complex dtypes, got {array.dtype}\nConvert it with .float()."
        )


def _moments(xp: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Return variance and mean along dimensions."""
    axes, count = axes_of(dim, self.ndim), count_of(self.shape, dim)
    if count:
        mean = xp.add.reduce(self, axis=axes, keepdims=True) / self.dtype.type(count)
    else:
        mean = xp.full([1 if i in axes else s for i, s in enumerate(self.shape)], math.nan, dtype=self.dtype)
    apart = self - mean
    squares = apart * apart if self.dtype.kind == "f" else apart.real**2 + apart.imag**2
    total = xp.add.reduce(squares, axis=axes, keepdims=True)
    freedom = count - (1 if correction is None else correction)
    if freedom > 0:
        variance = total / total.dtype.type(freedom)
    else:
        variance = xp.where(total == 0, math.nan, math.inf).astype(total.dtype)
    if keepdim:
        return variance, mean
    shape = tuple(s for i, s in enumerate(self.shape) if i not in axes)
    return variance.reshape(shape), mean.reshape(shape)


def _variance_self(g: Any, self: Any, dim: Any, correction: Any, keepdim: bool, F: Any) -> Any:
    freedom = count_of(self.shape, dim) - (1 if correction is None else correction)
    scale = 2 / freedom if freedom > 0 else math.nan
    return spread(g, self.shape, dim, keepdim, F) * (self - F.mean(self, dim, True)) * scale


def _half_over(g: Any, deviation: Any, F: Any) -> Any:
    """Return ``g / (2 * deviation)``, the gradient of a variance from that of its root; 0 where the root is 0."""
    zero = deviation == 0
    return F.where(zero, F.zeros_like(g), g / (F.where(zero, F.ones_like(deviation), deviation) * 2))


def _variance(name: str) -> Any:
    def forward(xp: Any, self: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        _need_floats(name, self)
        variance, mean = _moments(xp, self, dim, correction, keepdim)
        first = xp.sqrt(variance) if name.startswith("std") else variance
        return (first, mean) if name.endswith("mean") else first

    return forward


def _samples(make: Any) -> Any:
    return [
        ((make(3, 4),), {}),
        ((make(3, 4), 1), {"correction": 0}),
        ((make(2, 3, 4), (0, -1)), {"keepdim": True}),
        ((make(2, 3, 2), [1]), {"correction": 0.5}),
    ]


_ARGUMENTS = "(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)"
operator(
    f"var.correction{_ARGUMENTS}",
    _variance("var"),
    method=False,
    derivatives={"self": _variance_self},
    doc="Return the variance.",
    samples=_samples,
    supports="f",
)
operator(
    f"std.correction{_ARGUMENTS}",
    _variance("std"),
    method=False,
    derivatives={
        "self": lambda g, self, result, dim, correction, keepdim, F: _variance_self(
            _half_over(g, result, F), self, dim, correction, keepdim, F
        )
    },
    doc="Return the standard deviation.",
    samples=_samples,
    supports="f",
)


def _both_self(g: Any, self: Any, dim: Any, correction: Any, keepdim: bool, F: Any) -> Any:
    """Return the sum of what the variance and the mean send back; either gradient may be missing."""
    parts = []
    if g[0] is not None:
        parts.append(_variance_self(g[0], self, dim, correction, keepdim, F))
    if g[1] is not None:
        count = max(count_of(self.shape, dim), 1)
        parts.append(spread(g[1], self.shape, dim, keepdim, F) / count)
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


operator(
    f"var_mean.correction{_ARGUMENTS}",
    _variance("var_mean"),
    method=False,
    output_list=True,
    derivatives={"self": _both_self},
    doc="Return variance and mean.",
    samples=_samples,
    supports="f",
)
operator(
    f"std_mean.correction{_ARGUMENTS}",
    _variance("std_mean"),
    method=False,
    outputs=("result0", "result1"),
    output_list=True,
    derivatives={
        "self": lambda g, self, result0, dim, correction, keepdim, F: _both_self(
            [None if g[0] is None else _half_over(g[0], result0, F), g[1]], self, dim, correction, keepdim, F
        )
    },
    doc="Return standard deviation and mean.",
    samples=_samples,
    supports="f",
)


def _choices(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """Return (dim, correction) from PyTorch's two ways to call: var(dim, correction=1) and var(dim, unbiased)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    return dim, 1 if correction is None else correction


@public
def var(
    self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None, out: Any = None
) -> Any:
    """Return the variance of all elements, or along dimension(s) `dim`.

    Parameters
    ----------
    dim : int or sequence of int, optional
    unbiased : bool, optional
        Older form of `correction`: True is 1, False 0.
    keepdim : bool
    correction : number
        What is subtracted from the number of elements (1).
    """
    if out is not None:
        return writes.into(out, "var", [self], lambda: var(self, dim, unbiased, keepdim, correction=correction))
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["var.correction"].function(self, dim, correction=correction, keepdim=keepdim)


@public
def std(
    self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None, out: Any = None
) -> Any:
    """Return the standard deviation; the parameters are those of :func:`var`."""
    if out is not None:
        return writes.into(out, "std", [self], lambda: std(self, dim, unbiased, keepdim, correction=correction))
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["std.correction"].function(self, dim, correction=correction, keepdim=keepdim)


@public(method=False)
def var_mean(self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Return variance and mean; the parameters are those of :func:`var`."""
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["var_mean.correction"].function(self, dim, correction=correction, keepdim=keepdim)


@public(method=False)
def std_mean(self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Return standard deviation and mean; the parameters are those of :func:`var`."""
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["std_mean.correction"].function(self, dim, correction=correction, keepdim=keepdim)


# --- norms ------------------------------------------------------------------------------------------------------------


def _vector_norm(xp: Any, self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    _need_floats("linalg.vector_norm", self)
    axes = axes_of(dim, self.ndim)
    if ord == 2:
        squares = self * self if self.dtype.kind == "f" else self.real**2 + self.imag**2
        return xp.sqrt(xp.add.reduce(squares, axis=axes, keepdims=keepdim))
    if ord == 0:
        return (self != 0).sum(axis=axes, keepdims=keepdim).astype(self.real.dtype)
    size = abs(self)
    if ord == 1:
        return xp.add.reduce(size, axis=axes, keepdims=keepdim)
    if abs(ord) == math.inf:
        if not count_of(self.shape, dim):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not "
                f"have an identity\nThe shape is {list(self.shape)}."
            )
        return size.max(axis=axes, keepdims=keepdim) if ord > 0 else size.min(axis=axes, keepdims=keepdim)
    return xp.add.reduce(size**ord, axis=axes, keepdims=keepdim) ** (1 / ord)


def _vector_norm_self(g: Any, self: Any, result: Any, ord: Any, dim: Any, keepdim: bool, F: Any) -> Any:
    shape = self.shape
    if ord == 0:
        return F.zeros_like(self)
    if ord == 1:
        return F.sgn(self) * spread(g, shape, dim, keepdim, F)
    if abs(ord) == math.inf:
        size, norm = F.abs(self), spread(result, shape, dim, keepdim, F)
        mask = (size == norm) | (size != size)
        shares = spread(g, shape, dim, keepdim, F) / F.sum(mask, dim, True)
        return F.sgn(self) * (mask * shares)
    # A subgradient, 0, where the norm is 0.
    zero = result == 0
    safe = F.where(zero, F.ones_like(result), result)
    if ord == 2:
        return self * spread(F.where(zero, F.zeros_like(g), g / safe), shape, dim, keepdim, F)
    scale = spread(F.where(zero, F.zeros_like(g), g * safe ** (1 - ord)), shape, dim, keepdim, F)
    size = F.abs(self)
    away = F.where(size == 0, F.ones_like(size), size)
    return F.sgn(self) * scale * F.where(size == 0, F.zeros_like(size), away ** (ord - 1))


operator(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False)",
    _vector_norm,
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": _vector_norm_self},
    doc="Return the norm of order `ord` of vectors.",
    samples=lambda make: [
        ((make(3, 4),), {}),
        ((make(3, 4), 1, 1), {}),
        ((make(2, 3, 4), 3, (0, -1), True), {}),
        ((make(3, 4), 2, 0), {}),
        ((make(3, 4), math.inf, 1), {}),
        ((make(3, 4), -math.inf), {}),
        ((make(2, 3), 0, 1), {}),
        ((make(2, 3), 1.5, 1), {}),
        ((make(), 2), {}),
    ],
    supports="f",
)


@public
def norm(
    self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Any:
    """Return the `p`-norm of all elements, or of those along dimension(s) `dim`.

    Parameters
    ----------
    p : number, inf, -inf or "fro"
        ``"fro"`` is 2.
    dim : int or sequence of int, optional
    keepdim : bool
    dtype : dtype, optional
        Convert first.

    Raises
    ------
    RuntimeError
        For an integer tensor, or an unknown name of a norm.
    """
    if out is not None:
        return writes.into(out, "norm", [self], lambda: norm(self, p, dim, keepdim, dtype=dtype))
    if isinstance(p, str):
        if p != "fro":
            raise RuntimeError(f"norm(): unknown norm {p!r}\nUse a number, inf, -inf or 'fro'.")
        p = 2
    if dtype is not None:
        self = self.to(dtype)
    return OPERATORS["linalg_vector_norm"].function(self, 2 if p is None else p, dim, keepdim)
