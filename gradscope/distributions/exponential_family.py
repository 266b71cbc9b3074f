"""Exponential families, and what follows from their natural parameters alone.

References
----------
F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", ICIP 2010.
"""

from __future__ import annotations

from typing import Any

from ..autograd import grad
from ..runtime.modes import enable_grad, is_grad_enabled
from ..runtime.tensor.tensor import Tensor
from .distribution import Distribution
from .independent import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Base of distributions with a density ``exp(t(x) @ natural - F(natural) + k(x))``.

    A subclass defines ``_natural_params``, the tuple of natural parameters; ``_log_normalizer()``, the function F of
    them; and ``_mean_carrier_measure``, the mean of k. The gradient of F is the mean of the statistics t: from it come
    the entropy, and the divergence of two distributions of one family.

    Parameters
    ----------
    batch_shape : tuple of int
        The shape of independent distributions that lie in one object.
    event_shape : tuple of int
        The shape of one sample of one of them.

    See Also
    --------
    Distribution, kl_divergence

    Examples
    --------
    >>> import gradscope as gs
    >>> isinstance(gs.distributions.Gamma(2.0, 1.0), gs.distributions.ExponentialFamily)
    True
    >>> gs.distributions.ExponentialFamily.entropy(gs.distributions.Exponential(1.0))
    tensor(1.)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} does not define _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _log_normalizer()")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, by the Bregman divergence that the normalizer generates."""
        carried = self._mean_carrier_measure
        natural, normalizer, statistics = mean_statistics(self)
        return normalizer - inner_product(natural, statistics, len(self.batch_shape)) - carried


def mean_statistics(family: ExponentialFamily) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
    """Return the natural parameters, the normalizer's logarithm, and its gradient: the mean of the statistics.

    They pass gradients on to parameters that require them.
    """
    natural = family._natural_params
    wanted = is_grad_enabled() and any(value.requires_grad for value in natural)
    with enable_grad():
        inputs = tuple(value if value.requires_grad else value.detach().requires_grad_() for value in natural)
        normalizer = family._log_normalizer(*inputs)
        statistics = grad(normalizer.sum(), inputs, create_graph=wanted)
    if wanted:
        return natural, normalizer, statistics
    return natural, normalizer.detach(), statistics


def inner_product(left: tuple[Tensor, ...], right: tuple[Tensor, ...], rank: int) -> Tensor:
    """Return the inner products of tuples of tensors whose first `rank` dimensions are those of the batch."""
    products = (a * b for a, b in zip(left, right, strict=True))
    sums = [sum_rightmost(product, product.dim() - rank) for product in products]
    return sum(sums[1:], start=sums[0])
