"""What modules compute, as functions.

Most are operators of the runtime; the others are written in terms of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...runtime.ops.declaration.registry import OPERATORS, PUBLIC
from ...runtime.ops.linalg.matmul import linear
from ...runtime.ops.losses.cross_entropy import cross_entropy, linear_cross_entropy, nll_loss
from ...runtime.ops.nn.attention import scaled_dot_product_attention
from ...runtime.ops.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ...runtime.ops.nn.embedding import embedding
from ...runtime.ops.nn.normalization import (
    batch_norm,
    dropout,
    group_norm,
    layer_norm,
    rms_norm,
)
from ...runtime.tensor.overrides import is_overridable, overridable
from . import activation, distance, losses, margin_losses, noise, other_pooling, padding, pooling, sparse, vision
from .activation import *  # noqa: F403
from .attention import multi_head_attention_forward
from .distance import *  # noqa: F403
from .losses import *  # noqa: F403
from .margin_losses import *  # noqa: F403
from .noise import *  # noqa: F403
from .other_pooling import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .sparse import *  # noqa: F403
from .vision import *  # noqa: F403

__all__ = [
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "embedding",
    "group_norm",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "multi_head_attention_forward",
    "nll_loss",
    "rms_norm",
    "scaled_dot_product_attention",
    *activation.__all__,
    *distance.__all__,
    *losses.__all__,
    *margin_losses.__all__,
    *noise.__all__,
    *other_pooling.__all__,
    *padding.__all__,
    *pooling.__all__,
    *sparse.__all__,
    *vision.__all__,
]


def _overridden_itself(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is told to ``__torch_function__`` under its own name, as an operator's is by itself."""
    if name in OPERATORS or is_overridable(function):
        return function
    public = PUBLIC.get(name)
    result: Any = public if getattr(public, "__wrapped__", None) is function else overridable(function)
    result.__module__ = __name__  # where pickle finds it
    return result


globals().update({name: _overridden_itself(name, globals()[name]) for name in __all__})
