"""Independent: a batch of distributions as one distribution of all their values together."""

from __future__ import annotations

from typing import Any

from ..runtime.tensor.tensor import Size, Tensor
from . import constraints
from .distribution import Distribution

__all__ = ["Independent", "sum_rightmost"]


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """Return the sum over the last `count` dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


class Independent(Distribution):
    """A distribution whose last batch dimensions are part of its events.

    Parameters
    ----------
    reinterpreted_batch_ndims : int
        How many of the batch's dimensions, from the right.

    See Also
    --------
    IndependentTransform, MultivariateNormal

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import Independent, Normal
    >>> Independent(Normal(gs.zeros(3), gs.ones(3)), 1).log_prob(gs.zeros(3))
    tensor(-2.7568)
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        rank = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > rank:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {rank}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        split = rank - reinterpreted_batch_ndims
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        super().__init__(shape[:split], shape[split:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base has it."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether the values can be listed."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        base, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented\nList the values of base_dist, and combine them."
            )
        return self.base_dist.enumerate_support(expand)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        count = self.reinterpreted_batch_ndims
        kept = self.event_shape[:count]
        return Independent(self.base_dist.expand(Size((*batch_shape, *kept))), count, self._validate_args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
