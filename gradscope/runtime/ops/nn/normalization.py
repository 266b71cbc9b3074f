"""Normalisation and dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from ... import autocast, state
from ...kernels.casts import cast
from ...kernels.normalization.channels import channels_of
from ...kernels.normalization.columns import Columns
from ...kernels.normalization.normalized_rows import rows, rows_backward
from ...kernels.normalization.planes import Planes
from ...kernels.normalization.row_blocks import is_worth_it
from ...kernels.row_sums import spread_sums
from ...memory import device
from ...memory.dtype import finfo
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Ints, Namespace, Out, Shape, Sizes
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.bare_functions import HALVES, constant, in_rows, is_half, single
from ..linalg.lu import into_each
from ..random.random import generator_for
from .activations import need_floating

# --- layers and batches -----------------------------------------------------------------------------------------------


def _moments(xp: Namespace, x: Array, axes: Ints, eps: float) -> tuple[Array, Array, Array, Array]:
    """Return the centred array, and what broadcasts as its mean, variance and 1 / sqrt(variance + eps) do."""
    kind, shape = x.dtype, x.shape
    size = shape[axes[0]] if len(axes) == 1 else math.prod([shape[a] for a in axes])
    if xp is numpy:
        count, least, one = constant(size or 1, kind), constant(eps, kind), constant(1.0, kind)
    else:
        count, least, one = kind.type(size or 1), kind.type(eps), kind.type(1)
    mean = spread_sums(x, axes)
    mean /= count
    centred = x - mean
    variance = spread_sums(centred * centred, axes)
    variance /= count
    rstd = variance + least
    xp.sqrt(rstd, rstd)
    return centred, mean, variance, xp.divide(one, rstd, rstd)


def _normalized(
    input: Array, mean: Array, rstd: Array, axes: Ints, eps: float, fixed: bool, F: Namespace
) -> tuple[Array, Array]:
    """Return the normalised input and 1 / sqrt(variance + eps), as functions of the input under ``create_graph``.

    What the forward noted is a constant there, which is right only where the statistics were given (`fixed`).
    """
    if hasattr(input, "_array") and not fixed:
        mean = F.mean(input, axes, True)
        centred = input - mean
        rstd = F.rsqrt(F.mean(centred * centred, axes, True) + eps)
        return centred * rstd, rstd
    return (input - mean) * rstd, rstd


def _gradients(
    g: Gradient,
    normalized: Array,
    rstd: Array,
    scale: Array,
    axes: Ints,
    others: Ints,
    fixed: bool,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, Gradient, Gradient]:
    """Return the gradients of input, weight and bias; `axes` were averaged over, weights vary along `others`."""
    g_input = g_weight = g_bias = None
    if needs[0]:
        g_normalized = g if scale is None else g * scale
        if fixed:
            g_input = g_normalized * rstd
        else:
            along = F.mean(g_normalized * normalized, axes, True)
            g_input = (g_normalized - F.mean(g_normalized, axes, True) - normalized * along) * rstd
    if needs[1]:
        g_weight = F.sum(g * normalized, others) if others else g * normalized
    if needs[2]:
        g_bias = F.sum(g, others) if others else g
    return g_input, g_weight, g_bias


def _layer_norm(xp: Namespace, input: Array, weight: Array, bias: Array, normalized_shape: Ints, eps: float) -> Array:
    char = input.dtype.char
    if char not in "fd":
        need_floating("LayerNormKernelImpl", input)
    count = len(normalized_shape)
    if count == 0 or input.shape[-count:] != tuple(normalized_shape):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*{''.join(f', {s}' for s in normalized_shape)}], but got input of size{list(input.shape)}"
        )
    if weight is not None or bias is not None:
        _check_scale_and_shift(input, weight, bias, normalized_shape)
    if char == "e":
        result, mean, rstd = _layer_norm(xp, single(input), single(weight), single(bias), normalized_shape, eps)
        return result.astype(input.dtype), mean, rstd
    if not input.flags.c_contiguous:
        input = in_rows(xp, input)
    if is_worth_it(input, weight, bias):
        result, mean, rstd = rows(input, weight, bias, math.prod(normalized_shape), eps)
        if input.ndim != 2:
            kept = (*input.shape[:-count], *(1,) * count)
            mean, rstd = mean.reshape(kept), rstd.reshape(kept)
        return result, mean, rstd
    centred, mean, _, rstd = _moments(xp, input, tuple(range(input.ndim - count, input.ndim)), eps)
    centred *= rstd
    if weight is not None:
        centred *= weight
    if bias is not None:
        centred += bias
    return centred, mean[..., :1], rstd[..., :1]


def _check_scale_and_shift(input: Array, weight: Array, bias: Array, normalized_shape: Ints) -> None:
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        if value.shape != tuple(normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(value.shape)} and normalized_shape = {list(normalized_shape)}"
            )
        if value.dtype != input.dtype and not (is_half(input) and value.dtype.char == "f"):
            raise RuntimeError(
                "mixed dtype (CPU): all inputs must share same datatype.\n"
                f"The input is {input.dtype.name}, the {name} {value.dtype.name}: convert one of them."
            )


def _layer_norm_joint(
    g: Gradient,
    input: Array,
    weight: Array,
    result1: Array,
    result2: Array,
    normalized_shape: Shape,
    eps: float,
    needs: Sequence[bool],
    F: Namespace,
) -> Gradient:
    if is_worth_it(input, g, weight, result1):
        gradients = rows_backward(g, input, weight, result1, result2, math.prod(normalized_shape))
        found = (gradients[0], *(gradient.reshape(normalized_shape) for gradient in gradients[1:]))
        return tuple(gradient if needed else None for gradient, needed in zip(found, needs, strict=True))
    ndim = len(input.shape)
    axes = tuple(range(ndim - len(normalized_shape), ndim))
    normalized, rstd = _normalized(input, result1, result2, axes, eps, False, F)
    return _gradients(g, normalized, rstd, weight, axes, tuple(range(axes[0])), False, needs, F)


def _normal(x: Array, axes: Ints | int, eps: float) -> Array:
    return (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + eps)


def _scaled(x: Array, weight: Array, bias: Array, shape: Shape) -> Array:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def _layer_norm_reference(input: Array, weight: Array, bias: Array, normalized_shape: Shape, eps: float) -> Array:
    axes = tuple(range(-len(normalized_shape), 0))
    return _scaled(_normal(input, axes, eps), weight, bias, normalized_shape)


operator(
    "native_layer_norm(Tensor input, Tensor? weight, Tensor? bias, int[] normalized_shape, float eps)",
    _layer_norm,
    aux=("result1", "result2"),  # mean and 1 / standard deviation
    method=False,
    public_name=False,
    joint=_layer_norm_joint,
    doc="Subtract the mean of the last dimensions and divide by their standard deviation.",
    samples=lambda make: [
        ((make(3, 4), make(4), make(4), (4,), 1e-5), {}),
        ((make(2, 2, 3), None, None, (2, 3), 1e-2), {}),
        ((make(5), make(5), None, (5,), 1e-5), {}),
    ],
    reference=_layer_norm_reference,
    supports="f",
)


@public(method=False)
def layer_norm(
    input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise the last dimensions, of shape `normalized_shape`, to mean 0 and variance 1; then scale and shift.

    References
    ----------
    J. Ba, J. Kiros, G. Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.layer_norm(gs.tensor([1.0, 2.0, 3.0]), (3,))
    tensor([-1.2247,  0.0000,  1.2247])
    """
    return OPERATORS["native_layer_norm"].function(input, weight, bias, tuple(normalized_shape), eps)


def _along_channels(value: Array, ndim: int) -> Array:
    return value.reshape((1, -1) + (1,) * (ndim - 2))


def _batch_norm(
    xp: Namespace,
    input: Array,
    weight: Array,
    bias: Array,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> Array:
    need_floating("batch_norm", input)
    if input.ndim < 4:  # images keep their order, which may be that of channels last
        input = in_rows(xp, input)
    channels, axes = input.shape[1], _others(input.ndim)
    named = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, value in named.items():
        if value is not None and value.shape != (channels,):
            raise RuntimeError(f"{name} should contain {channels} elements not {value.size}")
    if is_half(input):
        rest = running_mean, running_var, training, momentum, eps
        result, mean, rstd = _batch_norm(xp, single(input), single(weight), single(bias), *rest)
        return result.astype(input.dtype), mean, rstd
    if (found := channels_of(input, weight, bias)) is not None:
        return _batch_norm_of_channels(found, input, weight, bias, running_mean, running_var, training, momentum, eps)
    if training:
        result, mean, variance, rstd = _moments(xp, input, axes, eps)
        if input.size:
            _update_running(running_mean, running_var, mean, variance, input.size // channels, momentum)
    else:
        # Copies: what is saved stays as it was when the running statistics move on.
        mean, variance = (_along_channels(a.astype(input.dtype), input.ndim) for a in (running_mean, running_var))
        rstd = 1 / xp.sqrt(variance + eps)
        result = input - mean
    result *= rstd
    if weight is not None:
        result *= _along_channels(weight, input.ndim)
    if bias is not None:
        result += _along_channels(bias, input.ndim)
    return result, mean, rstd


def _batch_norm_of_channels(
    channels: Planes | Columns,
    input: Array,
    weight: Array,
    bias: Array,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Return the same of large images, with fewer passes over them."""
    kind = input.dtype
    if training:
        result, mean, variance, rstd = channels.normalized(weight, bias, eps)
        _update_running(running_mean, running_var, mean, variance, input.size // input.shape[1], momentum)
    else:
        mean, rstd = running_mean.astype(kind), 1 / numpy.sqrt(running_var.astype(kind) + kind.type(eps))
        scale = rstd if weight is None else rstd * weight
        result = channels.scaled(mean, scale, kind.type(0) if bias is None else bias)
    return result, _along_channels(mean, input.ndim), _along_channels(rstd, input.ndim)


def _batch_norm_of_channels_joint(
    channels: Planes | Columns,
    g: Gradient,
    input: Array,
    weight: Array,
    mean: Array,
    rstd: Array,
    fixed: bool,
    needs: Sequence[bool],
) -> tuple[Gradient, Gradient, Gradient]:
    """Return the gradients of input, weight and bias of :func:`_batch_norm_of_channels`."""
    mean, rstd = mean.reshape(-1), rstd.reshape(-1)
    if fixed:
        total, along = (part.sum(0).astype(input.dtype) for part in channels.products(g, mean))
        scale = rstd if weight is None else rstd * weight
        of_x, of_weight, of_bias = g * _along_channels(scale, input.ndim), along * rstd, total
    else:
        of_x, of_weight, of_bias = channels.normalized_backward(g, weight, mean, rstd)
    return of_x if needs[0] else None, of_weight if needs[1] else None, of_bias if needs[2] else None


def _others(ndim: int) -> Ints:
    return (0, *range(2, ndim))


def _update_running(
    running_mean: Array, running_var: Array, mean: Array, variance: Array, count: int, momentum: float
) -> None:
    for running, value in ((running_mean, mean), (running_var, variance * (count / max(count - 1, 1)))):
        if running is not None:
            # Rounded once, where it is of less precision.
            running[...] = running.astype(value.dtype, copy=False) * (1 - momentum) + value.reshape(-1) * momentum


def _batch_norm_joint(
    g: Gradient,
    input: Array,
    weight: Array,
    running_mean: Array,
    running_var: Array,
    result1: Array,
    result2: Array,
    training: bool,
    eps: float,
    needs: Sequence[bool],
    F: Namespace,
) -> Gradient:
    # The running statistics are saved, as in PyTorch, so that a write to them in between is noticed.
    if (channels := channels_of(input, g, weight, result1)) is not None:
        return _batch_norm_of_channels_joint(channels, g, input, weight, result1, result2, not training, needs)
    ndim = len(input.shape)
    axes = _others(ndim)
    normalized, rstd = _normalized(input, result1, result2, axes, eps, not training, F)
    scale = None if weight is None else F.reshape(weight, (1, -1) + (1,) * (ndim - 2))
    return _gradients(g, normalized, rstd, scale, axes, axes, not training, needs, F)


def _batch_norm_reference(
    input: Array, weight: Array, bias: Array, mean: Array, variance: Array, training: bool, momentum: float, eps: float
) -> Array:
    shape = (-1, *[1] * (input.ndim - 2))
    if training:
        return _scaled(_normal(input, (0, *range(2, input.ndim)), eps), weight, bias, shape)
    return _scaled((input - mean.reshape(shape)) / numpy.sqrt(variance.reshape(shape) + eps), weight, bias, shape)


operator(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps)",
    _batch_norm,
    aux=("result1", "result2"),  # mean and 1 / standard deviation
    method=False,
    public_name=False,
    joint=_batch_norm_joint,
    joint_for=("input", "weight", "bias"),
    doc="Subtract each channel's mean and divide by its standard deviation, of the batch or the running ones.",
    samples=lambda make: [
        ((make(4, 3), make(3), make(3), None, None, True, 0.1, 1e-3), {}),
        ((make(2, 3, 2, 2), None, None, None, None, True, 0.1, 1e-3), {}),
        ((make(4, 3), make(3), None, make(3).detach(), make(3, low=0.5, high=2.0).detach(), False, 0.1, 1e-3), {}),
    ],
    reference=_batch_norm_reference,
    supports="f",
)


def batch_norm(
    input: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array = None,
    bias: Array = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel (dimension 1) to mean 0 and variance 1; then scale and shift.

    Parameters
    ----------
    running_mean, running_var : Tensor or None
        Statistics of the channels; written in training, used otherwise. As in PyTorch their versions stay as they
        are: the update of one step is no error in the backward of the step before.
    weight, bias : Tensor, optional
        Scale and shift of each channel.
    training : bool
        Use the statistics of the batch.
    momentum : float
        Weight of the batch in the running statistics.
    eps : float
        Added to the variance.

    References
    ----------
    S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015.

    See Also
    --------
    nn.BatchNorm2d, layer_norm, group_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.batch_norm(gs.tensor([[0.0], [2.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    shape = input._array.shape
    if shape == (0,):
        return METHODS["clone"](input)  # PyTorch asks nothing of the dimensions of an empty input
    _check_batch(input, running_mean, running_var, training)
    if training and math.prod(shape) // max(shape[1], 1) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    function = OPERATORS["native_batch_norm"].function
    return function(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _check_batch(input: Array, running_mean: Array, running_var: Array, training: bool) -> None:
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"batch_norm expects an input of at least 2 dimensions, got shape {list(shape)}")
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")


# --- groups of channels -----------------------------------------------------------------------------------------------


def _grouped(shape: Ints, group: int) -> Ints:
    return shape[0], group, shape[1] // group * math.prod(shape[2:])


def _group_norm(xp: Namespace, input: Array, weight: Array, bias: Array, group: int, eps: float) -> Array:
    need_floating("GroupNormKernelImpl", input)
    channels = input.shape[1]
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(value.shape)} and input of shape {list(input.shape)}"
            )
    if is_half(input):
        result, mean, rstd = _group_norm(xp, single(input), single(weight), single(bias), group, eps)
        return result.astype(input.dtype), mean, rstd
    if Planes.are_worth_it(input, weight, bias):
        result, mean, _, rstd = Planes(input, group).normalized(weight, bias, eps)
        return result, mean, rstd
    centred, mean, _, rstd = _moments(xp, input.reshape(_grouped(input.shape, group)), (2,), eps)
    centred *= rstd
    result = centred.reshape(input.shape)
    if weight is not None:
        result *= _along_channels(weight, input.ndim)
    if bias is not None:
        result += _along_channels(bias, input.ndim)
    return result, mean, rstd


def _group_norm_joint(
    g: Gradient,
    input: Array,
    weight: Array,
    result1: Array,
    result2: Array,
    group: int,
    eps: float,
    needs: Sequence[bool],
    F: Namespace,
) -> Gradient:
    if Planes.are_worth_it(input, g, weight, result1):
        found = Planes(input, group).normalized_backward(g, weight, result1, result2)
        return tuple(gradient if needed else None for gradient, needed in zip(found, needs, strict=True))
    shape, ndim = tuple(input.shape), len(input.shape)
    grouped, others = _grouped(shape, group), _others(ndim)
    normalized, rstd = _normalized(F.reshape(input, grouped), result1, result2, (2,), eps, False, F)
    scaled = g if weight is None else g * F.reshape(weight, (1, -1) + (1,) * (ndim - 2))
    of_input, _, _ = _gradients(
        F.reshape(scaled, grouped), normalized, rstd, None, (2,), (), False, (needs[0], False, False), F
    )
    return (
        None if of_input is None else F.reshape(of_input, shape),
        F.sum(g * F.reshape(normalized, shape), others) if needs[1] else None,
        F.sum(g, others) if needs[2] else None,
    )


def _group_norm_reference(input: Array, weight: Array, bias: Array, group: int, eps: float) -> Array:
    groups = _normal(input.reshape(len(input), group, -1), -1, eps).reshape(input.shape)
    return _scaled(groups, weight, bias, (-1, *[1] * (input.ndim - 2)))


operator(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int group, float eps)",
    _group_norm,
    images=1,
    aux=("result1", "result2"),  # mean and 1 / standard deviation
    method=False,
    public_name=False,
    joint=_group_norm_joint,
    doc="Subtract the mean of each group of channels and divide by its standard deviation.",
    samples=lambda make: [
        ((make(2, 4, 3), make(4), make(4), 2, 1e-5), {}),
        ((make(2, 3, 2, 2), None, None, 1, 1e-2), {}),
        ((make(3, 4), make(4), None, 2, 1e-5), {}),
    ],
    reference=_group_norm_reference,
    supports="f",
)


@public(method=False)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise groups of channels (dimension 1) of each example to mean 0 and variance 1; then scale and shift.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, ...).
    num_groups : int
        Into how many equal groups the channels go.
    weight, bias : Tensor, optional
        Scale and shift of each channel.
    eps : float
        Added to the variance.

    References
    ----------
    Y. Wu, K. He, "Group normalization", ECCV 2018.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.group_norm(gs.randn(2, 4, 3), 2).shape
    gradscope.Size([2, 4, 3])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    _check_groups(shape, num_groups)
    if math.prod(shape[2:]) * (shape[1] // num_groups) * shape[0] == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    return OPERATORS["native_group_norm"].function(input, weight, bias, num_groups, eps)


def _check_groups(shape: Ints, num_groups: int) -> None:
    if num_groups <= 0 or shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )


@public(method=False)
def rms_norm(input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square of the last dimensions, of shape `normalized_shape`; then scale.

    `eps`, added to the mean square, is the smallest step of the dtype unless given.

    References
    ----------
    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.rms_norm(gs.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    if state.casting and autocast.covers("rms_norm", (input, weight)):
        return autocast.call("rms_norm", rms_norm, input, normalized_shape, weight, eps)
    shape, array = tuple(normalized_shape), input._array
    if not shape or array.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{''.join(f', {s}' for s in shape)}], "
            f"but got input of size{list(array.shape)}"
        )
    if array.dtype.char in HALVES:
        weight = None if weight is None else weight.float()
        return rms_norm(input.float(), shape, weight, eps).to(input.dtype)
    axes = tuple(range(-len(shape), 0))
    squares = METHODS["mean"](input * input, axes, True)
    step = finfo(input.dtype).eps if eps is None else eps
    normalized = input * METHODS["rsqrt"](squares + step)
    return normalized if weight is None else normalized * weight


# --- with their statistics --------------------------------------------------------------------------------------------


def _statistics(input: Array, axes: Ints, eps: float, result: Array, *parameters: Array) -> tuple[Array, Array]:
    """Return the mean and 1 / sqrt(variance + eps), dimensions kept, in the dtype of the first parameter given."""
    kind = next((p.dtype for p in parameters if p is not None), result.dtype)
    x = input.float() if input._dtype.char in HALVES else input
    variance = METHODS["var"](x, axes, correction=0, keepdim=True)
    return METHODS["mean"](x, axes, True).to(kind), METHODS["rsqrt"](variance + eps).to(kind)


@public(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Sizes, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`layer_norm` with what it computed on the way.

    Parameters
    ----------
    input : Tensor
        Of shape (..., *normalized_shape).
    normalized_shape : sequence of int
        The trailing dimensions over which means and variances are taken.
    weight, bias : Tensor or None
        Scale and shift, of shape `normalized_shape`.
    eps : float
        Added to the variance.

    Returns
    -------
    tuple of Tensor
        The result, the means, and 1 / sqrt(variance + eps), of shape (..., 1, ...). The result alone has a gradient.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> result, mean, rstd = gs.native_layer_norm(gs.tensor([[1.0, 5.0]]), (2,), None, None, 0.0)
    >>> result, mean, rstd
    (tensor([[-1.,  1.]]), tensor([[3.]]), tensor([[0.5000]]))
    """
    result = layer_norm(input, normalized_shape, weight, bias, eps)
    axes = tuple(range(-len(normalized_shape), 0))
    return result, *_statistics(input.detach(), axes, eps, result, weight, bias)


@public(method=False)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Out = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`gradscope.nn.functional.batch_norm` with what it computed on the way.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, ...).
    weight, bias : Tensor or None
        Scale and shift of each channel.
    running_mean, running_var : Tensor or None
        Statistics of the channels; written in training, used otherwise.
    training : bool
        Use the statistics of the batch.
    momentum : float
        Weight of the batch in the running statistics.
    eps : float
        Added to the variance.

    Returns
    -------
    tuple of Tensor
        The result, the means, and 1 / sqrt(variance + eps), of shape (C,); in training only, otherwise these two are
        empty. The result alone has a gradient.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit, or running statistics are missing outside of training.

    Examples
    --------
    >>> import gradscope as gs
    >>> _, mean, rstd = gs.native_batch_norm(gs.tensor([[1.0], [5.0]]), None, None, None, None, True, 0.1, 0.0)
    >>> mean, rstd
    (tensor([3.]), tensor([0.5000]))
    """
    parameters = weight, bias, running_mean, running_var
    if out is not None:
        found = native_batch_norm(input, *parameters, training, momentum, eps)
        return into_each(out, "native_batch_norm", [input], found)
    _check_batch(input, running_mean, running_var, training)
    result = OPERATORS["native_batch_norm"].function(input, *parameters, training, momentum, eps)
    mean, rstd = _statistics(input.detach(), _others(input._array.ndim), eps, result, *parameters)
    return (result, mean.reshape(-1), rstd.reshape(-1)) if training else (result, mean.new_empty(0), rstd.new_empty(0))


@public(method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`group_norm` with what it computed on the way.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, ...).
    weight, bias : Tensor or None
        Scale and shift of each channel.
    N, C, HxW : int
        The number of examples, of channels, and of elements of a channel: those of `input`.
    group : int
        Into how many equal groups the channels go.
    eps : float
        Added to the variance.

    Returns
    -------
    tuple of Tensor
        The result, the means, and 1 / sqrt(variance + eps) of the groups, of shape (N, group).

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> _, mean, rstd = gs.native_group_norm(gs.tensor([[[1.0, 5.0]]]), None, None, 1, 1, 2, 1, 0.0)
    >>> mean, rstd
    (tensor([[3.]]), tensor([[0.5000]]))
    """
    shape = input._array.shape
    if len(shape) < 2 or (*shape[:2], math.prod(shape[2:])) != (N, C, HxW):
        raise RuntimeError(
            f"native_group_norm(): expected input of {N} examples with {C} channels of {HxW} elements, but got input "
            f"of shape {list(shape)}\nGive N, C and HxW as the shape has them."
        )
    _check_groups(shape, group)
    result = OPERATORS["native_group_norm"].function(input, weight, bias, group, eps)
    mean, rstd = _statistics(input.reshape(_grouped(shape, group)), (2,), eps, result, weight, bias)
    return result, mean.squeeze(2), rstd.squeeze(2)


# --- dropout ----------------------------------------------------------------------------------------------------------


def check_probability(p: float) -> None:
    """Raise where `p` is no probability."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout_mask(input: Array, p: float, shape: Shape) -> Array:
    """Return a tensor of zeros (with probability `p`) and 1 / (1 - p)."""
    array = input._array
    xp = device.array_module(array)
    keep = 1.0 - p
    drawn = generator_for(device.device_of(array)).draw("random", shape, dtype=xp.float32) < keep
    mask = xp.asarray(cast(drawn, array.dtype))
    if keep:
        mask *= 1.0 / keep
    if mask.shape == array.shape and not array.flags.c_contiguous:
        laid = xp.empty_like(array)  # so that the product lies in memory as the input does
        laid[...] = mask
        mask = laid
    return type(input.detach())._wrap(mask)


def dropout(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Put elements to zero with probability `p` and divide the others by ``1 - p``; outside training, do nothing.

    References
    ----------
    N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov, "Dropout", JMLR 15 (2014).

    See Also
    --------
    nn.Dropout, dropout2d, alpha_dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.dropout(gs.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    check_probability(p)
    return _dropped(input, p, training, inplace, input._array.shape)


def feature_dropout(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Put whole channels (of dimension 1) to zero with probability `p`; otherwise as :func:`dropout`."""
    check_probability(p)
    return _dropped(input, p, training, inplace, feature_shape(input))


def feature_shape(input: Array) -> tuple[int, ...]:
    """Return the shape of one number for each channel, which broadcasts."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return shape[:2] + (1,) * (len(shape) - 2)


def _dropped(input: Array, p: float, training: bool, inplace: bool, shape: Shape) -> Array:
    if p == 0 or not training or not input._array.size:
        return input
    mask = dropout_mask(input, p, shape)
    return METHODS["mul_" if inplace else "mul"](input, mask)
