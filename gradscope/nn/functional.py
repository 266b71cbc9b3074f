"""What modules compute, as functions.

Most are operators of the runtime; the others are written in terms of them.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..runtime.ops import losses as _losses
from ..runtime.ops.attention import scaled_dot_product_attention
from ..runtime.ops.catalogue import PUBLIC
from ..runtime.ops.class_losses import cross_entropy, nll_loss
from ..runtime.ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ..runtime.ops.losses import check_same_size, reduction_code, warn_broadcast
from ..runtime.ops.matrices import linear
from ..runtime.ops.normalization import (
    batch_norm,
    dropout,
    embedding,
    feature_dropout,
    group_norm,
    layer_norm,
    rms_norm,
)
from ..runtime.ops.pooling import avg_pool, max_pool
from ..runtime.ops.registry import METHODS, OPERATORS
from ..runtime.tensor import Tensor
from . import functional_pooling, functional_vision
from .attention_functional import multi_head_attention_forward
from .functional_pooling import *  # noqa: F403
from .functional_vision import *  # noqa: F403

__all__ = [
    *functional_pooling.__all__,
    *functional_vision.__all__,
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


dropout1d = dropout2d = dropout3d = feature_dropout


def _form(name: str, inplace: bool) -> Any:
    op = OPERATORS[name]
    return op.inplace_function if inplace else op.function


# --- activations ------------------------------------------------------------------------------------------------------

_relu = OPERATORS["relu"].function
relu_ = OPERATORS["relu"].inplace_function
threshold_ = OPERATORS["threshold"].inplace_function
leaky_relu_ = OPERATORS["leaky_relu"].inplace_function
elu_ = OPERATORS["elu"].inplace_function
celu_ = OPERATORS["celu"].inplace_function
hardtanh_ = OPERATORS["hardtanh"].inplace_function
selu_ = PUBLIC["selu_"]
sigmoid = PUBLIC["sigmoid"]
tanh = PUBLIC["tanh"]
prelu = PUBLIC["prelu"]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(input, 0)``."""
    return relu_(input) if inplace else _relu(input)  # type: ignore[misc]


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return the elements above the threshold, and `value` for the others."""
    return _form("threshold", inplace)(input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return the input, times `negative_slope` where negative."""
    return _form("leaky_relu", inplace)(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where positive, else ``alpha * expm1(input)``."""
    return _form("elu", inplace)(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where positive, else ``alpha * expm1(input / alpha)``."""
    return _form("celu", inplace)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the self-normalizing exponential linear unit."""
    return PUBLIC["selu_" if inplace else "selu"](input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    return _form("hardtanh", inplace)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the input limited to [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(input + 3, 0), 6) / 6``."""
    return _form("hardsigmoid", inplace)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * min(max(input + 3, 0), 6) / 6``."""
    return _form("hardswish", inplace)(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * sigmoid(input)``."""
    return _form("silu", inplace)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * tanh(softplus(input))``."""
    return _form("mish", inplace)(input)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """Return the Gaussian error linear unit, exact (``"none"``) or by tanh (``"tanh"``)."""
    return OPERATORS["gelu"].function(input, approximate=approximate)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``; the input itself where ``beta * input`` exceeds the threshold."""
    return OPERATORS["softplus"].function(input, beta, threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(input))``."""
    return OPERATORS["log_sigmoid"].function(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return the elements beyond [-lambd, lambd], and 0 for the others."""
    return OPERATORS["hardshrink"].function(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return the elements moved towards 0 by `lambd`."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return OPERATORS["softshrink"].function(input, lambd)


def softsign(input: Any) -> Tensor:
    """Return ``input / (1 + |input|)``."""
    return input / (input.abs() + 1)


def tanhshrink(input: Any) -> Tensor:
    """Return ``input - tanh(input)``."""
    return input - input.tanh()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of `input` along `dim`, times the sigmoid of the second."""
    return OPERATORS["glu"].function(input, dim)


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return ``exp(input)`` divided by its sum along `dim`."""
    return input.softmax(_implicit_dim("softmax", input.ndim) if dim is None else dim, dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along `dim`."""
    return input.log_softmax(_implicit_dim("log_softmax", input.ndim) if dim is None else dim, dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of the negative input along `dim`."""
    return (-input).softmax(_implicit_dim("softmin", input.ndim) if dim is None else dim, dtype)


# --- losses -----------------------------------------------------------------------------------------------------------


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the squared error, reduced ("mean", "sum" or "none").

    `size_average` and `reduce` are what `reduction` was before; where one is given it decides, here and in the other
    losses.
    """
    warn_broadcast(input, target)
    return OPERATORS["mse_loss"].function(input, target, reduction_code(reduction, size_average, reduce))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the absolute error, reduced."""
    warn_broadcast(input, target)
    return _losses.l1(input, target, reduction_code(reduction, size_average, reduce))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return the absolute error, squared below `beta`, reduced."""
    warn_broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    code = reduction_code(reduction, size_average, reduce)
    if beta == 0:
        return _losses.l1(input, target, code)
    return OPERATORS["smooth_l1_loss"].function(input, target, code, beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return the squared error, linear beyond `delta`, reduced."""
    warn_broadcast(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return OPERATORS["huber_loss"].function(input, target, reduction_code(reduction), delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross-entropy of probabilities and targets in [0, 1], reduced."""
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    code = reduction_code(reduction, size_average, reduce)
    return OPERATORS["binary_cross_entropy"].function(input, target, weight, code)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the cross-entropy of scores and targets in [0, 1], reduced.

    Parameters
    ----------
    input, target : Tensor
    weight : Tensor, optional
        A factor for every loss.
    reduction : {"mean", "sum", "none"}
    pos_weight : Tensor, optional
        A factor for the targets that are 1.
    """
    check_same_size(input, target)
    function = OPERATORS["binary_cross_entropy_with_logits"].function
    return function(input, target, weight, pos_weight, reduction_code(reduction, size_average, reduce))


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence of `target` and the log-probabilities `input`.

    Parameters
    ----------
    input, target : Tensor
    reduction : {"mean", "batchmean", "sum", "none"}
        ``"batchmean"`` divides the sum by the batch size, which is the mathematical divergence.
    log_target : bool
        `target` holds log-probabilities too.
    """
    if size_average is not None or reduce is not None:
        reduction = _losses.older_reduction(size_average, reduce, stacklevel=3)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    batch = reduction == "batchmean"
    code = reduction_code("sum" if batch else reduction)
    loss = OPERATORS["kl_div"].function(input, target, code, log_target)
    return loss / input.shape[0] if batch and input.ndim else loss


# --- products and norms -----------------------------------------------------------------------------------------------


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """Return ``input1 @ weight[k] @ input2 + bias[k]`` for every output feature k."""
    result = PUBLIC["einsum"]("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Return `input` divided by its `p`-norm along `dim` (at least `eps`)."""
    norm = METHODS["norm"](input, p, dim, keepdim=True)
    return input / norm.clamp_min(eps).expand_as(input)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between `x1` and `x2` along `dim`."""
    squares = (x1 * x1).sum(dim) * (x2 * x2).sum(dim)
    return (x1 * x2).sum(dim) / squares.clamp_min(eps * eps).sqrt()


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return class indices as rows with a single 1.

    Raises
    ------
    RuntimeError
        If an index is negative, or not below `num_classes`.
    """
    array = tensor._array
    if array.dtype.kind not in "iu":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes == -1 and not array.size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    lowest, highest = (int(tensor.min()), int(tensor.max())) if array.size else (0, -1)
    if lowest < 0:
        raise RuntimeError(f"Class values must be non-negative.\nThe smallest is {lowest}.")
    if num_classes == -1:
        num_classes = highest + 1
    elif highest >= num_classes:
        raise RuntimeError(
            f"Class values must be smaller than num_classes.\nThe largest is {highest} of {num_classes}."
        )
    classes = PUBLIC["arange"](num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).long()


# --- windows ----------------------------------------------------------------------------------------------------------


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of signals, see :func:`max_pool2d`."""
    found = max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)
    return found if return_indices else found[0]


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of images.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size, stride, padding, dilation : int or pair
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    return_indices : bool
        Return also where in the flat image each element was.
    """
    found = max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)
    return found if return_indices else found[0]


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of volumes, see :func:`max_pool2d`."""
    found = max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)
    return found if return_indices else found[0]


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of signals, see :func:`avg_pool2d`."""
    return avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of images.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size, stride, padding : int or pair
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    count_include_pad : bool
        Padding counts in the mean.
    divisor_override : int, optional
        Divide by this instead.
    """
    return avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of volumes, see :func:`avg_pool2d`."""
    return avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions, last one first, with a number (0).

    Raises
    ------
    NotImplementedError
        For another mode than ``"constant"``.
    """
    if mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}\nOnly 'constant' is there.")
    return OPERATORS["constant_pad_nd"].function(input, tuple(pad), 0 if value is None else value)
