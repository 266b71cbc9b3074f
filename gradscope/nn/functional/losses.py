"""Losses of elements. Those of classes are operators' public functions: :mod:`gradscope.runtime.ops.class_losses`."""

from __future__ import annotations

import warnings

from ...runtime.ops import losses as _losses
from ...runtime.ops.losses import check_same_size, reduction_code, warn_broadcast
from ...runtime.ops.registry import OPERATORS
from ...runtime.tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]


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
