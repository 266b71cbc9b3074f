"""Invertible functions of random variables, and how much they stretch volume.

References
----------
D. J. Rezende, S. Mohamed, "Variational inference with normalizing flows", ICML 2015: densities of what
    is transformed.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.ops.linalg.cholesky_and_triangular import cholesky
from ..runtime.tensor.creation import broadcast_shapes, eye
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .transform import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    Transform,
    _need_rank,
    _widened,
    identity_transform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

# --- of single numbers ------------------------------------------------------------------------------------------------


class ExpTransform(Transform):
    """``exp(x)``.

    See Also
    --------
    PowerTransform, LogNormal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.ExpTransform()(gs.tensor(1.0))
    tensor(2.7183)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``x ** exponent`` of positive numbers.

    Parameters
    ----------
    cache_size : {0, 1}

    See Also
    --------
    ExpTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.PowerTransform(2.0)(gs.tensor(3.0))
    tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    limits = finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1 - limits.eps)


class SigmoidTransform(Transform):
    """The logistic function, kept from 0 and 1.

    See Also
    --------
    SoftplusTransform, TanhTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.SigmoidTransform()(gs.tensor(0.0))
    tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        inside = y.clamp(min=limits.tiny, max=1 - limits.eps)
        return inside.log() - (-inside).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Transform):
    """``log(1 + exp(x))``.

    See Also
    --------
    ExpTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.SoftplusTransform()(gs.tensor(0.0))
    tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(Transform):
    """``tanh(x)``: the squashing of a policy's actions.

    Use a cache (``cache_size=1``): far from 0 the inverse of a rounded image is infinite.

    References
    ----------
    T. Haarnoja and others, "Soft actor-critic", ICML 2018, appendix C.

    See Also
    --------
    SigmoidTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.TanhTransform()(gs.tensor(1.0))
    tensor(0.7616)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _log_slope_of_tanh(x)


def _log_slope_of_tanh(x: Tensor) -> Tensor:
    """Return ``log(1 - tanh(x)**2)``, without its cancellation."""
    return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """``abs(x)``; of the two inverses it takes the positive one.

    See Also
    --------
    HalfNormal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.AbsTransform()(gs.tensor(-3.0))
    tensor(3.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``loc + scale * x``.

    Parameters
    ----------
    event_dim : int
        How many dimensions one value has.
    cache_size : {0, 1}

    See Also
    --------
    ComposeTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.AffineTransform(1.0, 2.0)(gs.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return _widened(constraints.real, self._event_dim)

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = None

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        result = scale.abs().log() if isinstance(scale, Tensor) else F.full_like(x, math.log(abs(scale)))
        if self._event_dim:
            result = result.reshape(*result.shape[: -self._event_dim], -1).sum(-1)
        return result.expand(x.shape[: x.dim() - self._event_dim])

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


def _same(a: Any, b: Any) -> bool:
    """Return whether two parameters are equal."""
    equal = a == b
    return bool(equal.all()) if isinstance(equal, Tensor) else equal


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution: its samples become uniform.

    Parameters
    ----------
    cache_size : {0, 1}

    See Also
    --------
    SigmoidTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.CumulativeDistributionTransform(gs.distributions.Normal(0.0, 1.0))(gs.tensor(0.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)


# --- of vectors and matrices ------------------------------------------------------------------------------------------


class SoftmaxTransform(Transform):
    """Shares, by softmax: not one to one, because a constant added to all changes nothing.

    See Also
    --------
    StickBreakingTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.SoftmaxTransform()(gs.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _need_rank(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Shares of one more dimension, each broken off what the ones before have left.

    See Also
    --------
    SoftmaxTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.StickBreakingTransform()(gs.tensor([0.0])).sum()
    tensor(1.)
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        broken = _clipped_sigmoid(x - _left(x, x.shape[-1]).log())
        one = F.ones_like(x[..., :1])
        return F.cat([broken, one], -1) * F.cat([one, (1 - broken).cumprod(-1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        rest = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - rest.log() + _left(y, first.shape[-1]).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        moved = x - _left(x, x.shape[-1]).log()
        return (-moved - F.softplus(-moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_rank(shape, 1)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        _need_rank(shape, 1)
        return (*shape[:-1], shape[-1] - 1)


def _left(like: Tensor, count: int) -> Tensor:
    """Return how many pieces are left to break, from `count` down to 1."""
    return count + 1 - like.new_ones(count).cumsum(-1)


class LowerCholeskyTransform(Transform):
    """Lower triangular matrices with a positive diagonal.

    See Also
    --------
    PositiveDefiniteTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.LowerCholeskyTransform()(gs.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Positive definite matrices.

    See Also
    --------
    LowerCholeskyTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.PositiveDefiniteTransform()(gs.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Lower Cholesky factors of correlation matrices, from vectors of ``n * (n - 1) / 2`` numbers for n rows.

    ``tanh`` makes of each number a partial correlation; with it, an element of the factor takes its share of what those
    before it have left of the row's length of 1.

    References
    ----------
    D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion
    method", Journal of Multivariate Analysis 100, 2009.

    See Also
    --------
    LKJCholesky, LowerCholeskyTransform, StickBreakingTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.CorrCholeskyTransform()(gs.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        lower = _below_the_diagonal(x)
        partial = lower.tanh() + eye(lower.shape[-1], dtype=x.dtype, device=x.device)
        return partial * (0.5 * _log_left(lower)).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        rows, columns = _places(y.shape[-1])
        left = 1 - _before((y**2).cumsum(-1))
        return (y[..., rows, columns] / left[..., rows, columns].clamp(min=finfo(y.dtype).tiny).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rows, columns = _places(y.shape[-1])
        left = _log_left(_below_the_diagonal(x))[..., rows, columns]
        return (0.5 * left + _log_slope_of_tanh(x)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_rank(shape, 1)
        rows = _row_count(shape[-1])
        return (*shape[:-1], rows, rows)

    def inverse_shape(self, shape: Any) -> Any:
        _need_rank(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square\nIts shape is {list(shape)}.")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _row_count(length: int) -> int:
    """Return how many rows have that many elements below the diagonal."""
    rows = (1 + math.isqrt(1 + 8 * length)) // 2
    if rows * (rows - 1) // 2 != length:
        raise ValueError(
            f"Input is not a flattened lower-diagonal number\nIts length is {length}; n * (n - 1) / 2 is needed."
        )
    return rows


def _places(count: int) -> tuple[list[int], list[int]]:
    """Return the rows and the columns of the elements below the diagonal, row by row."""
    places = [(row, column) for row in range(count) for column in range(row)]
    return [row for row, _ in places], [column for _, column in places]


def _below_the_diagonal(x: Tensor) -> Tensor:
    """Return matrices with these elements below the diagonal, row by row."""
    count = _row_count(x.shape[-1])
    rows, columns = _places(count)
    matrix = x.new_zeros(*x.shape[:-1], count, count)
    matrix[..., rows, columns] = x
    return matrix


def _log_left(lower: Tensor) -> Tensor:
    """Return the logarithm of what the elements before have left of a row's square of length."""
    return _before(_log_slope_of_tanh(lower).tril(-1).cumsum(-1))


def _before(sums: Tensor) -> Tensor:
    """Return sums up to each element without that element."""
    return F.cat([F.zeros_like(sums[..., :1]), sums[..., :-1]], -1)
