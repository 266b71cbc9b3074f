"""Optimizers; schedules of the learning rate are in :mod:`.lr_scheduler`, averages of weights in :mod:`.swa_utils`.

- :mod:`~.optimizer`: groups, state, hooks, and how an update is written
- :mod:`~.foreach`: small parameters that are updated together
- :mod:`~.sgd`: with momentum, and Nesterov's
- :mod:`~.moments`: the two running moments that Adam and its relatives keep
- :mod:`~.adam`: ``Adam`` and ``AdamW``
- :mod:`~.nadam`: with Nesterov's momentum
- :mod:`~.radam`: with a rectified variance
- :mod:`~.adamax`: by the infinity norm
- :mod:`~.adagrad`: by the sum of squares
- :mod:`~.adadelta`: by running averages of squares
- :mod:`~.adafactor`: by rows and columns of squares
- :mod:`~.rmsprop`: by a running average of squares
- :mod:`~.rprop`: by the signs of gradients
- :mod:`~.asgd`: with averaged parameters
- :mod:`~.muon`: with orthogonal updates
- :mod:`~.lbfgs`: quasi-Newton steps, with a line search
- :mod:`~.differentiable_steps`: steps that a backward goes through
- :mod:`~.lr_scheduler`: learning rates over time
- :mod:`~.swa_utils`: averages of weights
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD

if TYPE_CHECKING:
    from . import lr_scheduler, swa_utils

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]


def __getattr__(name: str) -> Any:
    if name in ("lr_scheduler", "swa_utils"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
