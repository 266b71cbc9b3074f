"""A probability, or its log-odds: whichever is given, and the other of the two from it."""

from __future__ import annotations

import functools
from typing import Any

from ..runtime.memory.dtype import finfo
from ..runtime.ops.declaration.registry import OPERATORS
from ..runtime.tensor.tensor import Tensor
from .distribution import Distribution, broadcast_all

__all__ = ["ProbsOrLogits", "Trials", "check_one_given", "kept_from_ends", "logits_cross_entropy"]


def check_one_given(probs: Any, logits: Any) -> None:
    """Raise unless one of the two is given, and not the other."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def kept_from_ends(probs: Tensor) -> Tensor:
    """Return probabilities kept from 0 and 1, where a logarithm has an end."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class ProbsOrLogits(Distribution):
    """A parameter, given as a probability or as its log-odds; the other of the two is computed when it is asked for."""

    @functools.cached_property
    def probs(self) -> Tensor:
        """The probability."""
        return self.logits.sigmoid()

    @functools.cached_property
    def logits(self) -> Tensor:
        """The logarithm of its odds."""
        inside = kept_from_ends(self.probs)
        return inside.log() - (-inside).log1p()


class Trials(ProbsOrLogits):
    """A distribution of trials that succeed with a probability, given as such or by its log-odds.

    `_form` is the name of the one of the two that was given.
    """

    def __init__(self, probs: Any, logits: Any, total_count: Any = None, validate_args: bool | None = None) -> None:
        check_one_given(probs, logits)
        self._form = "logits" if probs is None else "probs"
        given = logits if probs is None else probs
        if total_count is None:
            (given,) = broadcast_all(given)
        else:
            count, given = broadcast_all(total_count, given)
            self.total_count = count.to(given.dtype)
        self.__dict__[self._form] = given
        super().__init__(given.shape, validate_args=validate_args)

    def _given(self) -> dict[str, Any]:
        names = ("total_count", self._form)
        return {name: self.__dict__[name] for name in names if name in self.__dict__}

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self.__dict__[self._form].shape


def logits_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross entropy of a target probability and one given by its log-odds."""
    return OPERATORS["binary_cross_entropy_with_logits"].function(logits, target, None, None, 0)
