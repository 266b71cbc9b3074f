"""The normal distribution of vectors.

References
----------
M. A. Woodbury, "Inverting modified matrices", 1950; D. A. Harville, "Matrix algebra from a statistician's
perspective", 1997, section 18: inverse and determinant of a diagonal matrix plus one of low rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.ops.linalg.cholesky_and_triangular import cholesky, solve_triangular
from ..runtime.ops.random import random
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Size, Tensor
from . import constraints
from .distribution import Distribution

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Normal distribution of vectors.

    Parameters
    ----------
    loc : Tensor
        The mean, along the last dimension.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        One of the three: the covariance, its inverse, or its lower Cholesky factor.

    See Also
    --------
    Normal, Independent, LowRankMultivariateNormal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.MultivariateNormal(gs.zeros(2), gs.eye(2)).log_prob(gs.zeros(2))
    tensor(-1.8379)
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        forms = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        self._name, matrix = one_form(forms)
        batch = creation.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand(*batch, loc.shape[-1])
        self._matrix = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._factor = FACTORS[self._name](self._matrix)

    def _given(self) -> dict[str, Any]:
        return {"loc": self.loc, self._name: self._matrix}

    @property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._factor

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._factor @ self._factor.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return F.cholesky_inverse(self._factor)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return (self._factor**2).sum(-1).expand(self._extended_shape())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = random.randn(*self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (value - self.loc).unsqueeze(-1)
        whitened = solve_triangular(self._factor, away, upper=False).squeeze(-1)
        count = self.event_shape[0]
        return -0.5 * (count * math.log(2 * math.pi) + (whitened**2).sum(-1)) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()

    def _half_log_det(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def __repr__(self) -> str:
        return f"MultivariateNormal(loc: {self.loc.size()}, {self._name}: {self._matrix.size()})"


def one_form(forms: dict[str, Tensor | None]) -> tuple[str, Tensor]:
    """Return the name and the matrix of the one form in which a covariance is given."""
    given = {name: matrix for name, matrix in forms.items() if matrix is not None}
    if len(given) != 1:
        raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    ((name, matrix),) = given.items()
    if matrix.dim() < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, matrix


def _of_precision(matrix: Tensor) -> Tensor:
    """Return the factor of the inverse, by the factor of the matrix with its rows and columns turned round."""
    turned = cholesky(matrix.flip((-2, -1)))
    inverse = turned.flip((-2, -1)).mT
    identity = creation.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return solve_triangular(inverse, identity.expand(matrix.shape), upper=False)


FACTORS: dict[str, Callable[[Tensor], Tensor]] = {
    "covariance_matrix": cholesky,
    "precision_matrix": _of_precision,
    "scale_tril": lambda matrix: matrix,
}


class LowRankMultivariateNormal(Distribution):
    """Normal distribution of vectors whose covariance is ``cov_factor @ cov_factor.mT`` plus a diagonal matrix.

    With `m` columns in the factor, a density takes a Cholesky factor of an m x m matrix, not one of the covariance.

    Parameters
    ----------
    loc : Tensor
        The mean, along the last dimension.
    cov_factor : Tensor
        A row for each element of a vector, and few columns.
    cov_diag : Tensor
        The diagonal, along the last dimension.

    See Also
    --------
    MultivariateNormal

    Examples
    --------
    >>> import gradscope as gs
    >>> vectors = gs.distributions.LowRankMultivariateNormal(gs.zeros(2), gs.tensor([[1.0], [0.0]]), gs.ones(2))
    >>> vectors.covariance_matrix
    tensor([[2., 0.],
            [0., 1.]])
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        batch = _low_rank_batch(loc, cov_factor, cov_diag)
        count = loc.shape[-1]
        self.loc = loc.expand(*batch, count)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*batch, count)
        super().__init__(batch, (count,), validate_args)
        scaled = cov_factor / cov_diag.unsqueeze(-1)
        identity = creation.eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._capacitance = cholesky(identity + cov_factor.mT @ scaled)
        self._projection = solve_triangular(self._capacitance, scaled.mT, upper=False)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        # The eigenvalues of what is factorized are at least 1, whatever the diagonal is.
        spread = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / spread
        identity = creation.eye(self.event_shape[0], dtype=self.loc.dtype, device=self.loc.device)
        return spread * cholesky(identity + scaled @ scaled.mT)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self.cov_diag.reciprocal().diag_embed() - self._projection.mT @ self._projection

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        shared = random.randn(*shape[:-1], self.cov_factor.shape[-1], 1, dtype=dtype, device=device)
        own = random.randn(*shape, dtype=dtype, device=device)
        return self.loc + (self.cov_factor @ shared).squeeze(-1) + self.cov_diag.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        squares = self._trace((value - self.loc).unsqueeze(-1))
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + squares) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()

    def _trace(self, factor: Tensor) -> Tensor:
        """Return the trace of the inverse of the covariance times ``factor @ factor.mT``."""
        alone = (factor**2 / self.cov_diag.unsqueeze(-1)).sum((-2, -1))
        return alone - ((self._projection @ factor) ** 2).sum((-2, -1))

    def _half_log_det(self) -> Tensor:
        diagonal = self._capacitance.diagonal(dim1=-2, dim2=-1)
        return diagonal.log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)


def _low_rank_batch(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> tuple[int, ...]:
    """Return the shape of the batch; raise where the three do not fit."""
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    if cov_factor.dim() < 2:
        raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
    count = loc.shape[-1]
    if cov_factor.shape[-2] != count:
        raise ValueError(
            f"cov_factor must be a batch of matrices with shape {count} x m\nIts shape is {tuple(cov_factor.shape)}."
        )
    if tuple(cov_diag.shape[-1:]) != (count,):
        raise ValueError(
            f"cov_diag must be a batch of vectors with shape {Size((count,))}\nIts shape is {tuple(cov_diag.shape)}."
        )
    try:
        return creation.broadcast_shapes(
            tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1])
        )
    except RuntimeError as error:
        raise ValueError(
            f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
        ) from error
