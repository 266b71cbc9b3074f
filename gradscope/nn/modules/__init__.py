"""All modules."""

from __future__ import annotations

from . import activation, container, flatten, linear, loss, module
from .activation import *  # noqa: F403
from .container import *  # noqa: F403
from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module

__all__ = [
    "Module",
    *activation.__all__,
    *container.__all__,
    *flatten.__all__,
    *linear.__all__,
    *loss.__all__,
]
