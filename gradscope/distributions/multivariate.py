"""The normal distribution of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.ops.linalg.cholesky_and_triangular import cholesky, solve_triangular
from ..runtime.ops.random import random
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution

__all__ = ["MultivariateNormal"]


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
    Normal, Independent

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
        given = {name: matrix for name, matrix in forms.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((self._name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{self._name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = creation.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand(*batch, loc.shape[-1])
        self._matrix = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._factor = _FACTORS[self._name](self._matrix)

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


def _of_precision(matrix: Tensor) -> Tensor:
    """Return the factor of the inverse, by the factor of the matrix with its rows and columns turned round."""
    turned = cholesky(matrix.flip((-2, -1)))
    inverse = turned.flip((-2, -1)).mT
    identity = creation.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return solve_triangular(inverse, identity.expand(matrix.shape), upper=False)


_FACTORS: dict[str, Callable[[Tensor], Tensor]] = {
    "covariance_matrix": cholesky,
    "precision_matrix": _of_precision,
    "scale_tril": lambda matrix: matrix,
}
