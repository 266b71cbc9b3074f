"""The computations of modules, as functions.

Most are operators of the runtime; the others are written in terms of them.

- :mod:`~.activation_functions`: ``relu``, ``gelu``, ``softmax`` and the like
- :mod:`~.attention_functions`: ``multi_head_attention_forward``
- :mod:`~.loss_functions`: ``mse_loss``, ``binary_cross_entropy``, ``ctc_loss``; ``cross_entropy`` is an operator
- :mod:`~.margin_loss_functions`: ``triplet_margin_loss``, ``cosine_embedding_loss`` and others that compare distances
- :mod:`~.distance_functions`: ``bilinear``, ``normalize``, ``cosine_similarity``, ``pairwise_distance``
- :mod:`~.pooling_functions`: maxima and means of windows
- :mod:`~.adaptive_pooling_and_unpooling`: windows that fit a size, random windows, and the way back
- :mod:`~.padding_functions`: ``pad``
- :mod:`~.vision_functions`: ``interpolate``, ``grid_sample``, ``pixel_shuffle``, ``unfold``
- :mod:`~.embedding_functions`: ``embedding_bag``, ``one_hot``
- :mod:`~.noise_functions`: ``dropout1d``, ``alpha_dropout``, ``gumbel_softmax``
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ...runtime.ops.declaration.registry import OPERATORS, PUBLIC
from ...runtime.ops.linalg.matmul import linear as linear
from ...runtime.ops.losses.cross_entropy import cross_entropy as cross_entropy
from ...runtime.ops.losses.cross_entropy import linear_cross_entropy as linear_cross_entropy
from ...runtime.ops.losses.cross_entropy import nll_loss as nll_loss
from ...runtime.ops.nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
from ...runtime.ops.nn.convolution import conv1d as conv1d
from ...runtime.ops.nn.convolution import conv2d as conv2d
from ...runtime.ops.nn.convolution import conv3d as conv3d
from ...runtime.ops.nn.convolution import conv_transpose1d as conv_transpose1d
from ...runtime.ops.nn.convolution import conv_transpose2d as conv_transpose2d
from ...runtime.ops.nn.convolution import conv_transpose3d as conv_transpose3d
from ...runtime.ops.nn.embedding import embedding as embedding
from ...runtime.ops.nn.normalization import batch_norm as batch_norm
from ...runtime.ops.nn.normalization import dropout as dropout
from ...runtime.ops.nn.normalization import group_norm as group_norm
from ...runtime.ops.nn.normalization import layer_norm as layer_norm
from ...runtime.ops.nn.normalization import rms_norm as rms_norm
from ...runtime.tensor import overrides
from .activation_functions import *  # noqa: F403
from .adaptive_pooling_and_unpooling import *  # noqa: F403
from .attention_functions import multi_head_attention_forward as multi_head_attention_forward
from .distance_functions import *  # noqa: F403
from .embedding_functions import *  # noqa: F403
from .loss_functions import *  # noqa: F403
from .margin_loss_functions import *  # noqa: F403
from .noise_functions import *  # noqa: F403
from .padding_functions import *  # noqa: F403
from .pooling_functions import *  # noqa: F403
from .vision_functions import *  # noqa: F403


def _overridden_itself(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is told to ``__torch_function__`` under its own name, as an operator's is by itself."""
    if name in OPERATORS or overrides.is_overridable(function):
        return function
    public = PUBLIC.get(name)
    result: Any = public if getattr(public, "__wrapped__", None) is function else overrides.overridable(function)
    result.__module__ = __name__  # where pickle finds it
    return result


if not TYPE_CHECKING:  # a type checker follows the imports, and no list that is computed
    __all__ = [
        name for name, value in vars().items() if isinstance(value, FunctionType) and value is not _overridden_itself
    ]
    globals().update({name: _overridden_itself(name, globals()[name]) for name in __all__})
