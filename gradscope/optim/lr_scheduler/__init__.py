"""Schedules of the learning rate, by PyTorch's names.

A scheduler sets ``"lr"`` of each group of its optimizer, at the start and at each call of :meth:`LRScheduler.step`.

- :mod:`~.base`: the first step, the last epoch, the state that is saved
- :mod:`~.factors`: ``StepLR``, ``ExponentialLR``, ``LambdaLR`` and others that multiply
- :mod:`~.annealing`: ``CosineAnnealingLR``, with restarts too
- :mod:`~.cycles`: ``CyclicLR`` and ``OneCycleLR``
- :mod:`~.plateau`: ``ReduceLROnPlateau``
- :mod:`~.composition`: ``SequentialLR`` and ``ChainedScheduler``
"""

from __future__ import annotations

from .annealing import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .base import LRScheduler, _LRScheduler
from .composition import ChainedScheduler, SequentialLR
from .cycles import CyclicLR, OneCycleLR
from .factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "_LRScheduler",
]
