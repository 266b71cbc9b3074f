"""All modules.

- :mod:`~.module`: the base of all: parameters, buffers, children, modes
- :mod:`~.state_dict`: ``state_dict()`` and ``load_state_dict()``
- :mod:`~.calling`: what ``model(x)`` does around forward
- :mod:`~.backward_hooks`: full backward hooks
- :mod:`~.lazy`: layers whose sizes the first batch decides
- :mod:`~.container`: ``Sequential``, lists and dicts of modules and of parameters
- :mod:`~.linear`: ``Linear``, ``Bilinear``, ``Identity``
- :mod:`~.conv`: convolutions and transposed ones
- :mod:`~.pooling`: maxima, means, adaptive and random windows, unpooling
- :mod:`~.padding`: constant, reflected, repeated, circular
- :mod:`~.activation`: ``ReLU``, ``GELU``, ``Softmax`` and the like
- :mod:`~.adaptive`: ``AdaptiveLogSoftmaxWithLoss``
- :mod:`~.attention`: ``MultiheadAttention``
- :mod:`~.transformer`: encoder, decoder, and their layers
- :mod:`~.rnn`: ``RNN``, ``LSTM``, ``GRU``, and their cells
- :mod:`~.sparse`: ``Embedding``, ``EmbeddingBag``
- :mod:`~.batchnorm`: normalised over the batch
- :mod:`~.instancenorm`: normalised over each image
- :mod:`~.normalization`: ``LayerNorm``, ``GroupNorm``, ``RMSNorm``, ``LocalResponseNorm``, ``CrossMapLRN2d``
- :mod:`~.dropout`: of elements, of channels, of alpha
- :mod:`~.loss`: every loss
- :mod:`~.distance`: ``PairwiseDistance``, ``CosineSimilarity``
- :mod:`~.flatten`: ``Flatten``, ``Unflatten``
- :mod:`~.fold`: ``Fold``, ``Unfold``
- :mod:`~.pixelshuffle`: ``PixelShuffle`` and its inverse
- :mod:`~.channelshuffle`: ``ChannelShuffle``
- :mod:`~.upsampling`: ``Upsample``
- :mod:`~.utils`: sizes as one number or several
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .attention import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .channelshuffle import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .fold import *  # noqa: F403
from .instancenorm import *  # noqa: F403
from .lazy import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module as Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

if not TYPE_CHECKING:  # a type checker follows the imports, and no list that is computed
    __all__ = [name for name, value in vars().items() if isinstance(value, type)]
