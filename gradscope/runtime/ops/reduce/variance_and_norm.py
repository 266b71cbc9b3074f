"""Variance, standard deviation and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...kernels.row_sums import sum_of_squares, sums, sums_of_squares
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ...user_warnings import warn
from ..declaration.annotations import Array, Cases, Dims, DType, Formula, Gradient, Make, Namespace, NormOrder, Number
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.bare_functions import conj, in_rows, is_half, over, single
from ..linalg.matrix_norms import matrix_norm
from ..shape.reshape import axis_of
from .reductions import count_of, reduced_axes, spread

# --- variance ---------------------------------------------------------------------------------------------------------


def _need_floats(name: str, array: Array) -> None:
    if array.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}(): only support floating point and complex dtypes, got {array.dtype}\nConvert it with .float()."
        )


def _moments(
    xp: Namespace, self: Array, dim: Dims, correction: Number, keepdim: bool, both: bool
) -> tuple[Array, Array]:
    """Return variance and mean along dimensions; `both` are to be those that PyTorch has where it returns both."""
    axes, count = reduced_axes(dim, self.ndim), count_of(self.shape, dim)
    if count:
        mean = sums(self, axes) / self.dtype.type(count)
        if both and (xp is not numpy or xp.isinf(mean).any()):
            mean = xp.where(xp.isinf(mean), _running_mean(xp, self, axes, count), mean)
    else:
        mean = xp.full([1 if i in axes else s for i, s in enumerate(self.shape)], math.nan, dtype=self.dtype)
    apart = self - mean
    squares = apart * apart if self.dtype.kind == "f" else apart.real**2 + apart.imag**2
    total = sums(squares, axes)
    freedom = count - (1 if correction is None else correction)
    if freedom > 0:
        variance = total / total.dtype.type(freedom)
    else:
        variance = xp.where(total > 0, math.inf, math.nan).astype(total.dtype)
    if keepdim:
        return variance, mean
    shape = tuple(s for i, s in enumerate(self.shape) if i not in axes)
    return variance.reshape(shape), mean.reshape(shape)


def _running_mean(xp: Namespace, self: Array, axes: tuple[int, ...], count: int) -> Array:
    """Return the mean from differences in double precision, whose sum does not overflow as that of huge numbers.

    An infinity makes it NaN, as it does a mean that runs along the elements, unless it is the last of them.
    """
    first, last = (self[tuple(end if i in axes else slice(None) for i in range(self.ndim))] for end in _ENDS)
    wide = numpy.promote_types(self.dtype, numpy.float64)
    mean = first + sums((self.astype(wide) - first) / count, axes)
    before = xp.isinf(self).sum(axis=axes, keepdims=True) > xp.isinf(last)
    mean = xp.where(before, math.nan, xp.where(xp.isinf(last), last, mean))
    return mean.astype(self.dtype)


_ENDS = (slice(0, 1), slice(-1, None))


def _variance_self(g: Gradient, self: Array, dim: Dims, correction: Number, keepdim: bool, F: Namespace) -> Gradient:
    freedom = count_of(self.shape, dim) - (1 if correction is None else correction)
    if freedom <= 0 and (dim is None or not len(self.shape)):
        # Of all elements PyTorch's slope is infinite, whatever its sign, or NaN where an element is the mean.
        slope = F.where(self == F.mean(self), F.zeros_like(self) + math.nan, F.zeros_like(self) + math.inf)
        return spread(g, self.shape, dim, keepdim, F) * slope
    scale = 2 / freedom if freedom else math.inf
    # The numbers without an imaginary part are multiplied first: an infinite complex one times such a one has a NaN.
    return spread(g, self.shape, dim, keepdim, F) * scale * (self - F.mean(self, dim, True))


def _half_over(g: Gradient, deviation: Array, F: Namespace) -> Gradient:
    """Return ``g / (2 * deviation)``, the gradient of a variance from that of its root; 0 where the root is 0."""
    zero = deviation == 0
    return F.where(zero, F.zeros_like(g), g / (F.where(zero, F.ones_like(deviation), deviation) * 2))


def _variance(name: str) -> Formula:
    def forward(
        xp: Namespace, self: Array, dim: Dims = None, correction: Number = None, keepdim: bool = False
    ) -> Array:
        _need_floats(name, self)
        if is_half(self):
            found = forward(xp, single(self), dim, correction, keepdim)
            return tuple(f.astype(self.dtype) for f in found) if isinstance(found, tuple) else found.astype(self.dtype)
        if count_of(self.shape, dim) <= (1 if correction is None else correction):
            warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel)."
            )
        both = name.endswith("mean")
        variance, mean = _moments(xp, self, dim, correction, keepdim, both)
        first = xp.sqrt(variance) if name.startswith("std") else variance
        return (first, mean) if both else first

    return forward


def _samples(make: Make) -> Cases:
    return [
        ((make(3, 4),), {}),
        ((make(3, 4), 1), {"correction": 0}),
        ((make(2, 3, 4), (0, -1)), {"keepdim": True}),
        ((make(2, 3, 2), [1]), {"correction": 0.5}),
    ]


_ARGUMENTS = "(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)"


def _variance_reference(self: Array, dim: Dims = None, correction: Number = None, keepdim: bool = False) -> Array:
    return numpy.var(self, _axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


def _axes(dim: Dims) -> Dims:
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def _mean_reference(self: Array, dim: Dims = None, correction: Number = None, keepdim: bool = False) -> Array:
    return numpy.mean(self, _axes(dim), keepdims=keepdim)


def _variance_and_mean_reference(self: Array, *arguments: Any, **options: Any) -> tuple[Array, Array]:
    wide = self.astype(numpy.longdouble)  # in which huge numbers have a sum
    return _variance_reference(self, *arguments, **options), _mean_reference(wide, *arguments, **options)


def _deviation_and_mean_reference(*arguments: Any, **options: Any) -> tuple[Array, Array]:
    variance, mean = _variance_and_mean_reference(*arguments, **options)
    return numpy.sqrt(variance), mean


def _mean_of_infinities(*arguments: Any, **options: Any) -> Array:
    return numpy.isinf(_mean_reference(*arguments, **options))


_RUNNING = ((_mean_of_infinities, "a mean that runs along the elements is NaN after an infinity, as PyTorch's is"),)


operator(
    f"var.correction{_ARGUMENTS}",
    _variance("var"),
    method=False,
    derivatives={"self": _variance_self},
    doc="Return the variance.",
    samples=_samples,
    reference=_variance_reference,
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
    reference=lambda *arguments, **options: numpy.sqrt(_variance_reference(*arguments, **options)),
    supports="f",
)


def _both_self(g: Gradient, self: Array, dim: Dims, correction: Number, keepdim: bool, F: Namespace) -> Gradient:
    """Return the sum of what the variance and the mean send back; either gradient may be missing."""
    parts = []
    if g[0] is not None:
        parts.append(_variance_self(g[0], self, dim, correction, keepdim, F))
    if g[1] is not None:
        count = max(count_of(self.shape, dim), 1)
        parts.append(over(spread(g[1], self.shape, dim, keepdim, F), count))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


operator(
    f"var_mean.correction{_ARGUMENTS}",
    _variance("var_mean"),
    method=False,
    output_list=True,
    derivatives={"self": _both_self},
    doc="Return variance and mean.",
    samples=_samples,
    reference=_variance_and_mean_reference,
    differs=_RUNNING,
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
    reference=_deviation_and_mean_reference,
    differs=_RUNNING,
    supports="f",
)


def _choices(dim: Dims, unbiased: bool | None, correction: Number) -> tuple[Dims, Number]:
    """Return (dim, correction) from PyTorch's two ways to call: var(dim, correction=1) and var(dim, unbiased)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    return dim, 1 if correction is None else correction


@public
def var(
    self: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the variance of all elements, or along dimension(s) `dim`.

    Parameters
    ----------
    unbiased : bool, optional
        Older form of `correction`: True is 1, False 0.
    correction : number
        What is subtracted from the number of elements (1).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.var(gs.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    if out is not None:
        return inplace_and_out.into(
            out, "var", [self], lambda: var(self, dim, unbiased, keepdim, correction=correction)
        )
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["var.correction"].function(self, dim, correction=correction, keepdim=keepdim)


@public
def std(
    self: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation; the parameters are those of :func:`var`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.std(gs.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    if out is not None:
        return inplace_and_out.into(
            out, "std", [self], lambda: std(self, dim, unbiased, keepdim, correction=correction)
        )
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["std.correction"].function(self, dim, correction=correction, keepdim=keepdim)


@public(method=False)
def var_mean(
    self: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Number = None
) -> tuple[Tensor, Tensor]:
    """Return variance and mean; the parameters are those of :func:`var`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.var_mean(gs.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["var_mean.correction"].function(self, dim, correction=correction, keepdim=keepdim)


@public(method=False)
def std_mean(
    self: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Number = None
) -> tuple[Tensor, Tensor]:
    """Return standard deviation and mean; the parameters are those of :func:`var`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.std_mean(gs.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _choices(dim, unbiased, correction)
    return OPERATORS["std_mean.correction"].function(self, dim, correction=correction, keepdim=keepdim)


# --- norms ------------------------------------------------------------------------------------------------------------


def _vector_norm(xp: Namespace, self: Array, ord: NormOrder = 2, dim: Dims = None, keepdim: bool = False) -> Array:
    _need_floats("linalg.vector_norm", self)
    axes = reduced_axes(dim, self.ndim)
    if (ord < 0 or ord == math.inf) and not count_of(self.shape, dim):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have "
            f"an identity\nThe shape is {list(self.shape)}."
        )
    if is_half(self):
        return _vector_norm(xp, single(self), ord, dim, keepdim).astype(self.dtype)
    if ord == 2 and xp is numpy and self.dtype.kind == "f" and len(axes) == self.ndim and self.ndim:
        total = sum_of_squares(self)
        return xp.sqrt(total.reshape((1,) * self.ndim) if keepdim else total)
    if ord == 2:
        if self.dtype.kind == "f":
            return xp.sqrt(sums_of_squares(self, axes, keepdim))
        return xp.sqrt(sums(abs(self) ** 2, axes, keepdim))  # of an infinite part beside a NaN infinite
    if ord == 0:
        return (self != 0).sum(axis=axes, keepdims=keepdim).astype(self.real.dtype)
    size = abs(self)
    if ord == 1:
        return sums(size, axes, keepdim)
    if abs(ord) == math.inf:
        return size.max(axis=axes, keepdims=keepdim) if ord > 0 else size.min(axis=axes, keepdims=keepdim)
    return sums(size**ord, axes, keepdim) ** (1 / ord)


def _vector_norm_self(
    g: Gradient, self: Array, result: Array, ord: NormOrder, dim: Dims, keepdim: bool, F: Namespace
) -> Gradient:
    shape = self.shape
    if ord == 0:
        return None
    if ord == 1:
        return F.sgn(self) * spread(g, shape, dim, keepdim, F)
    if abs(ord) == math.inf:
        size, norm = F.abs(self), spread(result, shape, dim, keepdim, F)
        mask = (size == norm) | (size != size)
        shares = spread(g, shape, dim, keepdim, F) / F.sum(mask, dim, True)
        return F.sgn(self) * (mask * shares)
    # A subgradient, 0, where the norm is 0. For an infinite gradient that is NaN, as in PyTorch, unless the order is
    # above 1 and not 2.
    zero = result == 0
    safe = F.where(zero, F.ones_like(result), result)
    nothing = g * 0.0 if ord == 2 or ord < 1 else F.zeros_like(g)
    if ord == 2:
        return self * spread(F.where(zero, nothing, g / safe), shape, dim, keepdim, F)
    scale = spread(F.where(zero, nothing, g * safe ** (1 - ord)), shape, dim, keepdim, F)
    size = F.abs(self)
    away = F.where(size == 0, F.ones_like(size), size)
    # The numbers without an imaginary part are multiplied first, as in the derivative of a variance.
    return F.sgn(self) * (scale * F.where(size == 0, F.zeros_like(size), away ** (ord - 1)))


def _norm_reference(self: Array, ord: NormOrder = 2, dim: Dims = None, keepdim: bool = False) -> Array:
    sizes = numpy.abs(self)
    if ord in (math.inf, -math.inf):
        return (numpy.max if ord > 0 else numpy.min)(sizes, axis=_axes(dim), keepdims=keepdim)
    if ord == 0:
        return numpy.sum(sizes != 0, axis=_axes(dim), keepdims=keepdim)
    return numpy.sum(sizes**ord, axis=_axes(dim), keepdims=keepdim) ** (1 / ord)


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
    reference=_norm_reference,
    supports="f",
)
# The same under the name that it has as a part of other functions.
operator(
    "norm.dim(Tensor self, Scalar ord, int[] dim, bool keepdim=False)",
    _vector_norm,
    method=False,
    node="NormBackward1",
    derivatives={"self": _vector_norm_self},
    doc="Return the norm of order `ord` of vectors.",
    samples=lambda make: [((make(3, 4), p, (1,), p == 2), {}) for p in (1, 2, 3, math.inf)],
    reference=_norm_reference,
    supports="f",
)


_RENORM_EPSILON = 1e-7


def _other_dims(dim: int, ndim: int) -> tuple[int, ...]:
    axis = axis_of(dim, ndim)
    return tuple(d for d in range(ndim) if d != axis)


def _renorm(xp: Namespace, self: Array, p: Number, dim: int, maxnorm: Number) -> Array:
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported\np is {p}.")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if is_half(self):
        return _renorm(xp, single(self), p, dim, maxnorm).astype(self.dtype)
    norms = _vector_norm(xp, self, p, _other_dims(dim, self.ndim), True)
    return in_rows(xp, self) * xp.where(norms > maxnorm, maxnorm / (norms + _RENORM_EPSILON), 1).astype(
        norms.dtype, copy=False
    )


def _renorm_self(g: Gradient, self: Array, p: Number, dim: int, maxnorm: Number, F: Namespace) -> Gradient:
    # Where the norm n is too large the result is self * maxnorm / n, and n a function of self too.
    dims = _other_dims(dim, len(self.shape))
    norms = F.linalg_vector_norm(self, p, dims, True)
    scale = maxnorm / (norms + _RENORM_EPSILON)
    along = F.sum(F.real(g * conj(self)), dims, True) * (-scale / (norms + _RENORM_EPSILON))
    return F.where(norms > maxnorm, g * scale + _vector_norm_self(along, self, norms, p, dims, True, F), g)


def _renorm_reference(self: Array, p: Number, dim: int, maxnorm: Number) -> Array:
    lines = numpy.moveaxis(self.copy(), dim, 0)
    for line in lines:
        size = numpy.sum(numpy.abs(line) ** p) ** (1 / p)
        if size > maxnorm:
            line *= maxnorm / (size + _RENORM_EPSILON)
    return numpy.moveaxis(lines, 0, dim)


operator(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm)",
    _renorm,
    inplace=True,
    out=True,
    derivatives={"self": _renorm_self},
    doc="Return a copy in which each slice along `dim` whose `p`-norm exceeds `maxnorm` is scaled down to it.",
    samples=lambda make: [
        ((make(3, 4), 2, 0, 1.0), {}),
        ((make(2, 3, 2), 1, -1, 1.5), {}),
        ((make(3, 4), 3, 1, 9), {}),
    ],
    reference=_renorm_reference,
    supports="f",
)


@public
def norm(
    self: Tensor,
    p: Number = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the `p`-norm of all elements, or of those along dimension(s) `dim`.

    Parameters
    ----------
    p : number, inf, -inf, "fro" or "nuc"
        ``"fro"`` is 2; ``"nuc"`` the sum of the singular values of matrices.
    dtype : dtype, optional
        Convert first.

    Raises
    ------
    RuntimeError
        For an integer tensor, or an unknown name of a norm.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.norm(gs.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if out is not None:
        return inplace_and_out.into(out, "norm", [self], lambda: norm(self, p, dim, keepdim, dtype=dtype), exact=True)
    if isinstance(p, str):
        if p != "fro":
            return matrix_norm(self, p, tuple(range(self.ndim)) if dim is None else dim, keepdim, dtype=dtype)
        p = 2
    if dtype is not None:
        self = self.to(dtype)
    return OPERATORS["linalg_vector_norm"].function(self, 2 if p is None else p, dim, keepdim)


def _dist(xp: Namespace, self: Array, other: Array, p: Number = 2) -> Array:
    return _vector_norm(xp, self - other, p)


def _dist_self(g: Gradient, self: Array, other: Array, result: Array, p: Number, F: Namespace) -> Gradient:
    return _vector_norm_self(g, self - other, result, p, None, False, F)


def _dist_other(g: Gradient, self: Array, other: Array, result: Array, p: Number, F: Namespace) -> Gradient:
    return _vector_norm_self(g, other - self, result, p, None, False, F)


operator(
    "dist(Tensor self, Tensor other, Scalar p=2)",
    _dist,
    promote="numeric",
    numbers=None,
    derivatives={"self": _dist_self, "other": _dist_other},
    doc="Return the `p`-norm of ``self - other``.",
    samples=lambda make: [
        ((make(3, 4), make(3, 4)), {}),
        ((make(3, 4), make(4)), {"p": 3}),
        ((make(2, 3), make(2, 3), 1), {}),
        ((make(2, 3), make(2, 3), math.inf), {}),
    ],
    reference=lambda self, other, p=2: numpy.linalg.norm((self - other).ravel(), p),
    supports="f",
)


# --- covariances ------------------------------------------------------------------------------------------------------


@public
def cov(self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Return the covariances of variables, the rows of a matrix of observations.

    Parameters
    ----------
    correction : int
        What is subtracted from the number of observations.
    fweights : Tensor, optional
        How often each observation occurred: integers.
    aweights : Tensor, optional
        How much each observation counts.

    Raises
    ------
    RuntimeError
        If the tensor has more than two dimensions, or weights do not fit the observations.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.cov(gs.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _need_matrix("cov", self)
    if self._dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input\nConvert it with .float().")
    if self._dtype.kind not in dtypes.INEXACT:
        self = self.to(dtypes.get_default_dtype())
    rows = METHODS["reshape"](self, 1, -1) if self._array.ndim < 2 else self
    count = rows._array.shape[1]
    weights = _observation_weights(count, fweights, aweights)
    if weights is None:
        centred = scaled = rows - rows.mean(1, keepdim=True)
        freedom: Number = max(count - correction, 0)
    else:
        total = weights.sum()
        centred = rows - (rows * weights).sum(1, keepdim=True) / total
        scaled = centred * weights
        spent = correction if aweights is None else correction * (weights * aweights).sum() / total
        freedom = total - spent
        if devices.to_host(freedom._array) <= 0:
            freedom = freedom.new_zeros(())  # nothing flows back through it
    found = METHODS["matmul"](scaled, METHODS["t"](centred).conj())
    return METHODS["squeeze"](found / freedom)


def _need_matrix(name: str, tensor: Array) -> None:
    if tensor._array.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {tensor._array.ndim} "
            "dimensions\nRows are variables, columns observations."
        )


def _observation_weights(count: int, fweights: Tensor | None, aweights: Tensor | None) -> Array:
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and weights._array.shape != (count,):
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel() as there are observations in the input\n"
                f"Its shape is {list(weights.shape)}, there are {count}."
            )
    if fweights is not None and fweights._dtype.kind not in "iu":
        raise RuntimeError(
            "cov(): expected fweights to have integral dtype but got fweights with "
            f"{scalar_type(fweights._dtype)} dtype\nThey count how often each observation occurred."
        )
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and type(weights._array) is devices.ndarray and (weights._array < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative\nThe least is {weights._array.min()}.")
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


@public
def corrcoef(self: Tensor) -> Tensor:
    """Return the correlations of variables, the rows of a matrix of observations.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.corrcoef(gs.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _need_matrix("corrcoef", self)
    found = cov(self)
    if not found._array.ndim:
        return found / found
    deviations = METHODS["sqrt"](METHODS["diagonal"](found))
    ratio = found / METHODS["unsqueeze"](deviations, -1) / METHODS["unsqueeze"](deviations, 0)
    return ratio if ratio.is_complex() else METHODS["clamp"](ratio, -1, 1)
