"""Schedules of the learning rate, by PyTorch's names.

A scheduler sets ``"lr"`` of each group of its optimizer, at the start and at each call of :meth:`LRScheduler.step`.
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
