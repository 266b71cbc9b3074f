"""Helpers for training: clipping, parameters as one vector, weights computed from others, sequences.

- :mod:`~.clip_grad`: norms and values, clipped in place
- :mod:`~.convert_parameters`: parameters as one vector
- :mod:`~.parametrize`: ``register_parametrization``, and what it makes of a module
- :mod:`~.parametrizations`: those that come with it
- :mod:`~.orthogonal`: matrices that stay orthogonal
- :mod:`~.weight_norm`: length and direction of a weight
- :mod:`~.spectral_norm`: a weight over its largest singular value
- :mod:`~.prune`: weights under masks
- :mod:`~.rnn`: sequences of several lengths
- :mod:`~.stateless`: ``functional_call``
- :mod:`~.fusion`: layers and batch normalisation in one
- :mod:`~.init`: ``skip_init``
"""

from __future__ import annotations

from . import parametrizations, parametrize, prune, rnn, stateless
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from .init import skip_init
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]
