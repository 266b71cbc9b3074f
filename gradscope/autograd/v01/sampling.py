"""The switch by which ``Tensor.multinomial()`` and ``bernoulli()`` draw by stochastic functions, as in PyTorch 0.1."""

from __future__ import annotations

from ...runtime.ops.random import random
from .stochastic_functions import bernoulli, multinomial, normal

__all__ = ["STOCHASTIC", "set_stochastic_sampling"]

STOCHASTIC = random.Sampler(multinomial, bernoulli, normal)
"""Draws by stochastic functions; what ``Variable(...)`` made has it."""


class set_stochastic_sampling:  # noqa: N801 - named like set_grad_enabled
    """Set whether Tensor's own ``multinomial`` and ``bernoulli`` draw as in PyTorch 0.1, from what requires grad.

    At once and, as a context manager, until the end of the block; for the whole process. Without it only what
    ``Variable(...)`` made does, and ``probs.multinomial()``, a call without the number of samples that later versions
    ask for.
    """

    def __init__(self, mode: bool = True) -> None:
        self._before = random.sampler
        random.sampler = STOCHASTIC if mode else None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        random.sampler = self._before
