"""Distributions of matrices: covariances, and Cholesky factors of correlations.

References
----------
D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion
method", Journal of Multivariate Analysis 100, 2009: density, and sampling row by row (section 3.2).
M. S. Bartlett, "On the theory of statistical regression", Proceedings of the Royal Society of Edinburgh 53, 1933:
    the factor of a Wishart matrix.
C. M. Bishop, "Pattern recognition and machine learning", 2006, appendix B: density and entropy of the same.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.modes import no_grad
from ..runtime.ops.linalg.cholesky_and_triangular import cholesky, solve_triangular
from ..runtime.ops.random import random
from ..runtime.ops.random.random_distributions import standard_gamma
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Tensor
from ..runtime.user_warnings import warn
from . import constraints
from .continuous import Beta
from .distribution import Distribution, broadcast_all
from .exponential_family import ExponentialFamily
from .multivariate import FACTORS, one_form

__all__ = ["LKJCholesky", "Wishart"]


class LKJCholesky(Distribution):
    """LKJ distribution of lower Cholesky factors of correlation matrices.

    The density of a correlation matrix is proportional to its determinant to the power ``concentration - 1``.

    Parameters
    ----------
    dim : int
        How many rows a matrix has: 2 or more.
    concentration : Tensor or float
        With 1 all correlation matrices are as probable; the larger it is, the nearer to the identity they are.

    See Also
    --------
    Wishart, CorrCholeskyTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.LKJCholesky(3).log_prob(gs.eye(3))
    tensor(-1.5963)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _given(self) -> dict[str, Any]:
        return {"dim": self.dim, "concentration": self.concentration}

    def _rows(self) -> Tensor:
        """Return the numbers of the rows but the first: how many elements stand before the diagonal."""
        return creation.arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)

    def _exponents(self) -> Tensor:
        """Return for these rows half of the exponent of the diagonal element in the density, plus 1."""
        return self.concentration.unsqueeze(-1) + (self.dim - 1 - self._rows()) / 2

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = self.concentration
        with no_grad():
            # A row before its diagonal is a point in a ball: a direction, and the square of its length.
            squares = Beta(self._rows() / 2, self._exponents(), validate_args=False).sample(sample_shape)
            noise = random.randn(*shape[:-2], self.dim - 1, self.dim - 1, dtype=like.dtype, device=like.device).tril()
            below = noise * (squares / (noise**2).sum(-1)).sqrt().unsqueeze(-1)
            first = F.ones_like(squares[..., :1])
            diagonal = F.cat([first, (1 - squares).clamp(min=finfo(like.dtype).tiny).sqrt()], -1)
            factor = diagonal.diag_embed()
            factor[..., 1:, :-1] += below
            return factor

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, with respect to the elements below the diagonal."""
        self._validate_sample(value)
        exponents, rows = self._exponents(), self._rows()
        # The volume of a ball with that weight, row by row.
        volume = rows / 2 * math.log(math.pi) + exponents.lgamma() - (exponents + rows / 2).lgamma()
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        return (2 * (exponents - 1) * diagonal.log() - volume).sum(-1)


class Wishart(ExponentialFamily):
    """Wishart distribution: of the sum of squares of normal vectors, as matrices.

    Parameters
    ----------
    df : Tensor or float
        How many vectors: the degrees of freedom, more than the number of rows less 1.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        One of the three: the covariance of the vectors, its inverse, or its lower Cholesky factor.

    See Also
    --------
    MultivariateNormal, Chi2, LKJCholesky

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Wishart(gs.tensor(2.0), gs.eye(2)).mean
    tensor([[2., 0.],
            [0., 2.]])
    """

    has_rsample = True
    support = constraints.positive_definite
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        forms = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        if sum(matrix is not None for matrix in forms.values()) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        self._name, matrix = one_form(forms)
        if not isinstance(df, Tensor):
            df = creation.scalar_tensor(df, dtype=matrix.dtype, device=matrix.device)
        rows = matrix.shape[-1]
        if bool((df <= rows - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {rows - 1}.")
        batch = creation.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        self.df = df.expand(batch)
        self._matrix = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, matrix.shape[-2:], validate_args)
        self._factor = FACTORS[self._name](self._matrix)
        self._likely_singular = bool((df < rows).any())
        if self._likely_singular:
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        """Where the parameters have to lie: the degrees of freedom above the number of rows less 1."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _given(self) -> dict[str, Any]:
        return {self._name: self._matrix, "df": self.df}

    @property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance of the vectors."""
        return self._factor

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        return self._factor @ self._factor.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of that covariance."""
        return F.cholesky_inverse(self._factor)

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.unsqueeze(-1).unsqueeze(-1) * matrix

    @property
    def mean(self) -> Tensor:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        above = self.df - self.event_shape[-1] - 1
        return self._times(F.where(above > 0, above, F.full_like(above, math.nan)), self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        return self._times(self.df, matrix**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Return samples that pass gradients to the parameters.

        Parameters
        ----------
        max_try_correction : int, optional
            How often samples that rounding has made singular are drawn anew. Without it 3 times where they are likely,
            which is where there are fewer degrees of freedom than rows, and otherwise not at all.
        """
        tries = max_try_correction if max_try_correction is not None else 3 * self._likely_singular
        drawn = self._bartlett(sample_shape)
        for _ in range(tries):
            singular = ~self.support.check(drawn)
            if not bool(singular.any()):
                break
            warn("Singular sample detected.")
            drawn = F.where(singular.unsqueeze(-1).unsqueeze(-1), self._bartlett(sample_shape), drawn)
        return drawn

    def _bartlett(self, sample_shape: Any) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like, rows = self._factor, self.event_shape[-1]
        less = creation.arange(rows, dtype=like.dtype, device=like.device)
        squares = 2 * standard_gamma(((self.df.unsqueeze(-1) - less) / 2).expand(shape[:-1]))
        noise = random.randn(*shape, dtype=like.dtype, device=like.device)
        factor = self._factor @ (noise.tril(-1) + squares.sqrt().diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        factor = cholesky(value)
        whitened = solve_triangular(self._factor, factor, upper=False)
        above = self.df - self.event_shape[-1] - 1
        return above * _half_log_det(factor) - 0.5 * (whitened**2).sum((-2, -1)) - self._log_volume()

    def _log_volume(self) -> Tensor:
        """Return the logarithm of what the density is divided by."""
        rows, half = self.event_shape[-1], self.df / 2
        return half * rows * math.log(2) + self.df * _half_log_det(self._factor) + F.mvlgamma(half, rows)

    def entropy(self) -> Tensor:
        rows, half = self.event_shape[-1], self.df / 2
        less = creation.arange(rows, dtype=half.dtype, device=half.device) / 2
        # The mean of the logarithm of the determinant.
        spread = (half.unsqueeze(-1) - less).digamma().sum(-1) + rows * math.log(2) + 2 * _half_log_det(self._factor)
        return self._log_volume() - 0.5 * (self.df - rows - 1) * spread + half * rows

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        # Of a matrix and of the logarithm of its determinant.
        return -0.5 * self.precision_matrix, (self.df - self.event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        matrix, exponent = natural_params
        rows = self.event_shape[-1]
        half = exponent + (rows + 1) / 2
        return F.mvlgamma(half, rows) - 2 * half * _half_log_det(cholesky(-matrix))

    def __repr__(self) -> str:
        df = self.df if self.df.numel() == 1 else self.df.size()
        return f"{type(self).__name__}({self._name}: {self._matrix.size()}, df: {df})"


def _half_log_det(factor: Tensor) -> Tensor:
    """Return half of the logarithm of the determinant of a matrix with a Cholesky factor."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
