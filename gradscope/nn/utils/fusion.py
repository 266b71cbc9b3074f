"""Batch normalisation in evaluation, folded into the weights of the layer before it."""

from __future__ import annotations

import copy
import functools
from typing import Any

from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.tensor import Tensor
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution that does what `conv` and `bn` do one after the other in evaluation mode.

    Parameters
    ----------
    transpose : bool
        Whether it is a transposed one.

    Raises
    ------
    AssertionError
        If one of them is training, or `bn` has no running statistics.

    See Also
    --------
    fuse_conv_bn_weights, fuse_linear_bn_eval

    Examples
    --------
    >>> import gradscope as gs
    >>> conv, norm = gs.nn.Conv2d(1, 2, 3).eval(), gs.nn.BatchNorm2d(2).eval()
    >>> x = gs.randn(1, 1, 5, 5)
    >>> gs.allclose(gs.nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-5)
    True
    """
    return _fused(conv, bn, functools.partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer that does what `linear` and `bn` do one after the other in evaluation mode.

    Raises
    ------
    AssertionError
        If one of them is training, the numbers of features differ, or `bn` has no running statistics.

    See Also
    --------
    fuse_linear_bn_weights, fuse_conv_bn_eval

    Examples
    --------
    >>> import gradscope as gs
    >>> linear, norm = gs.nn.Linear(3, 2).eval(), gs.nn.BatchNorm1d(2).eval()
    >>> x = gs.randn(4, 3)
    >>> gs.allclose(gs.nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-5)
    True
    """
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def _fused(layer: Any, bn: Any, fuse: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!\nCall .eval() on both first.")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(layer)
    facts = (layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse(*facts)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the fused convolution.

    Parameters
    ----------
    bn_rm, bn_rv : Tensor
        Running mean and variance.

    See Also
    --------
    fuse_conv_bn_eval

    Examples
    --------
    >>> import gradscope as gs
    >>> one, zero, kernel = gs.ones(1), gs.zeros(1), gs.nn.Parameter(gs.ones(1, 2, 3, 3))
    >>> w, b = gs.nn.utils.fuse_conv_bn_weights(kernel, None, zero, one, 0.0, one, zero)
    >>> w.shape, b.shape
    (gradscope.Size([1, 2, 3, 3]), gradscope.Size([1]))
    """
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the fused linear layer, see :func:`fuse_conv_bn_weights`.

    See Also
    --------
    fuse_linear_bn_eval

    Examples
    --------
    >>> import gradscope as gs
    >>> one, zero = gs.ones(1), gs.zeros(1)
    >>> w, b = gs.nn.utils.fuse_linear_bn_weights(gs.nn.Parameter(gs.ones(1, 2)), None, zero, one, 0.0, one, zero)
    >>> w.shape, b.shape
    (gradscope.Size([1, 2]), gradscope.Size([1]))
    """
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _folded(
    weight: Any, bias: Any, mean: Any, variance: Any, eps: float, bn_w: Any, bn_b: Any, shape: list[int]
) -> tuple[Parameter, Parameter]:
    zeros, ones = PUBLIC["zeros_like"], PUBLIC["ones_like"]
    scale = (ones(mean) if bn_w is None else bn_w) * (variance + eps).rsqrt()
    shifted = ((zeros(mean) if bias is None else bias) - mean) * scale + (zeros(mean) if bn_b is None else bn_b)
    fused = (weight * scale.reshape(shape)).to(weight.dtype)
    keeps = weight.requires_grad, weight.requires_grad if bias is None else bias.requires_grad
    return Parameter(fused.detach(), keeps[0]), Parameter(shifted.to(weight.dtype).detach(), keeps[1])
