"""All modules."""

from __future__ import annotations

from . import (
    activation,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    linear,
    loss,
    normalization,
    padding,
    pooling,
    sparse,
)
from .activation import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .channelshuffle import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .sparse import *  # noqa: F403

__all__ = [
    "Module",
    *activation.__all__,
    *batchnorm.__all__,
    *channelshuffle.__all__,
    *container.__all__,
    *conv.__all__,
    *distance.__all__,
    *dropout.__all__,
    *flatten.__all__,
    *linear.__all__,
    *loss.__all__,
    *normalization.__all__,
    *padding.__all__,
    *pooling.__all__,
    *sparse.__all__,
]
