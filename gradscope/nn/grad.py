"""Gradients of convolutions, computed without running them.

What ``autograd.grad()`` would return for the input or the weight of a convolution, from the other one and the gradient
of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..runtime.ops.declaration.registry import OPERATORS
from ..runtime.ops.nn.convolution import several
from ..runtime.tensor.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the input of :func:`conv1d`; parameters as of :func:`conv2d_input`."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the weight of :func:`conv1d`; parameters as of :func:`conv2d_weight`."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the input of :func:`conv2d`.

    Parameters
    ----------
    input_size : sequence of int
        The shape of the input, (N, C, H, W): strides leave it open.
    weight : Tensor
        Of shape (out_channels, C / groups, kernel_height, kernel_width).
    grad_output : Tensor
        The gradient of the output, of its shape.
    stride, padding, dilation : int or pair
        As of the convolution.
    groups : int
        As of the convolution.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn import functional as F
    >>> x, weight = gs.rand(1, 1, 3, 3, requires_grad=True), gs.rand(1, 1, 2, 2)
    >>> y = F.conv2d(x, weight)
    >>> (expected,) = gs.autograd.grad(y, x, gs.ones_like(y))
    >>> gs.equal(gs.nn.grad.conv2d_input(x.shape, weight, gs.ones_like(y)), expected)
    True
    """
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the weight of :func:`conv2d`.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W).
    weight_size : sequence of int
        The shape of the weight, (out_channels, C / groups, kernel_height, kernel_width).
    grad_output : Tensor
        The gradient of the output, of its shape.
    stride, padding, dilation : int or pair
        As of the convolution.
    groups : int
        As of the convolution.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn import functional as F
    >>> x, weight = gs.rand(1, 1, 3, 3), gs.rand(1, 1, 2, 2, requires_grad=True)
    >>> y = F.conv2d(x, weight)
    >>> (expected,) = gs.autograd.grad(y, weight, gs.ones_like(y))
    >>> gs.equal(gs.nn.grad.conv2d_weight(x, weight.shape, gs.ones_like(y)), expected)
    True
    """
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the input of :func:`conv3d`; parameters as of :func:`conv2d_input`."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the weight of :func:`conv3d`; parameters as of :func:`conv2d_weight`."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)


def _of_input(
    spatial: int,
    size: Sequence[int],
    weight: Tensor,
    grad: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    geometry = _geometry(spatial, stride, padding, dilation, groups)
    return OPERATORS["conv_input"].function(grad, weight, tuple(size)[-spatial:], *geometry)


def _of_weight(
    spatial: int,
    input: Tensor,
    size: Sequence[int],
    grad: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    geometry = _geometry(spatial, stride, padding, dilation, groups)
    return OPERATORS["conv_weight"].function(input, grad, tuple(size)[-spatial:], *geometry)


def _geometry(spatial: int, stride: Any, padding: Any, dilation: Any, groups: int) -> tuple[Any, ...]:
    named = (("stride", stride), ("padding", padding), ("dilation", dilation))
    return *(several(value, spatial, name) for name, value in named), groups
