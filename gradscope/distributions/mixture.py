"""MixtureSameFamily: one of several distributions of one kind, chosen by chance."""

from __future__ import annotations

from typing import Any

from ..runtime.modes import no_grad
from ..runtime.tensor.tensor import Size, Tensor
from . import constraints
from .discrete import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one kind.

    Parameters
    ----------
    mixture_distribution : Categorical
        Chooses a component.
    component_distribution : Distribution
        The components, along the last dimension of its batch.

    See Also
    --------
    Categorical

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import Categorical, MixtureSameFamily, Normal
    >>> two = MixtureSameFamily(Categorical(gs.ones(2)), Normal(gs.tensor([-1.0, 3.0]), 1.0))
    >>> two.mean
    tensor(1.)
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of gradscope.distributions.Categorical\n"
                f"It is {type(mixture_distribution).__name__}."
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of gradscope.distributions.Distribution\n"
                f"It is {type(component_distribution).__name__}."
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        _check_batches(mixture_distribution, component_distribution)
        batch, event = component_distribution.batch_shape[:-1], component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weights(self) -> Tensor:
        """Return the probabilities of the components, with as many dimensions as their values."""
        probs, chosen = self.mixture_distribution.probs, self.mixture_distribution.batch_shape
        missing = 0 if len(chosen) == 1 else len(self.batch_shape) - len(chosen)
        return probs.reshape(*probs.shape[:-1], *(1,) * missing, probs.shape[-1], *(1,) * self._event_ndims)

    def _pad(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        weights, parts, along = self._weights(), self.component_distribution, -1 - self._event_ndims
        within = (weights * parts.variance).sum(along)
        return within + (weights * (parts.mean - self._pad(self.mean)) ** 2).sum(along)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._pad(value)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = self.component_distribution.log_prob(self._pad(value))
        return (found + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        along = len(sample_shape) + len(self.batch_shape)
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            shape = (*drawn.shape[:along], 1, *self.event_shape)
            index = chosen.reshape(*chosen.shape, *(1,) * (len(shape) - chosen.dim()))
            return drawn.gather(along, index.expand(shape)).squeeze(along)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        count = self.component_distribution.batch_shape[-1]
        chooser = self.mixture_distribution.expand(tuple(batch_shape))
        parts = self.component_distribution.expand((*batch_shape, count))
        return MixtureSameFamily(chooser, parts, validate_args=False)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


def _check_batches(chooser: Categorical, parts: Distribution) -> None:
    """Raise where a chooser and its components do not fit."""
    mine, theirs = chooser.batch_shape, Size(parts.batch_shape[:-1])
    for one, other in zip(reversed(mine), reversed(theirs), strict=False):
        if one != 1 and other not in (1, one):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mine}) is not compatible with "
                f"`component_distribution.batch_shape`({theirs})"
            )
    count, given = chooser.logits.shape[-1], parts.batch_shape[-1]
    if count != given:
        raise ValueError(
            f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
            f"({given})"
        )
