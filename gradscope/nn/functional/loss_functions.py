"""Losses of elements and sequences. Those of classes are functions of the runtime."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...runtime.modes import no_grad
from ...runtime.ops.declaration.registry import OPERATORS, PUBLIC
from ...runtime.ops.losses import ctc_loss as _ctc
from ...runtime.ops.losses import elementwise_losses as _losses
from ...runtime.ops.losses import margin_losses as _margins
from ...runtime.ops.losses.elementwise_losses import check_same_size, reduction_code, warn_broadcast
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "ctc_loss",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the squared error, reduced ("mean", "sum" or "none").

    `size_average` and `reduce` are what `reduction` was before; where one is given it decides, here and in the other
    losses. With a `weight` for each element, the mean is the weighted mean.

    See Also
    --------
    nn.MSELoss, l1_loss, huber_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.mse_loss(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(4.6250)
    """
    warn_broadcast(input, target)
    if weight is not None:
        losses = OPERATORS["mse_loss"].function(input, target, reduction_code("none"))
        return _weighted(losses, weight, reduction_code(reduction, size_average, reduce))
    return OPERATORS["mse_loss"].function(input, target, reduction_code(reduction, size_average, reduce))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute error, reduced; the mean is weighted, if there is a `weight`.

    See Also
    --------
    nn.L1Loss, mse_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.l1_loss(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(1.7500)
    """
    warn_broadcast(input, target)
    if weight is not None:
        losses = _losses.l1(input, target, reduction_code("none"))
        return _weighted(losses, weight, reduction_code(reduction, size_average, reduce))
    return _losses.l1(input, target, reduction_code(reduction, size_average, reduce))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return the absolute error, squared below `beta`, reduced.

    See Also
    --------
    nn.SmoothL1Loss, huber_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.smooth_l1_loss(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(1.3125)
    """
    warn_broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    code = reduction_code(reduction, size_average, reduce)
    if beta == 0:
        return _losses.l1(input, target, code)
    return OPERATORS["smooth_l1_loss"].function(input, target, code, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return the squared error, linear beyond `delta`, reduced; each loss times its `weight`, if it has one.

    See Also
    --------
    nn.HuberLoss, smooth_l1_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.huber_loss(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(1.3125)
    """
    warn_broadcast(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        losses = OPERATORS["huber_loss"].function(input, target, reduction_code("none"), delta)
        return _reduced(_times(losses, weight), reduction_code(reduction))
    return OPERATORS["huber_loss"].function(input, target, reduction_code(reduction), delta)


def _weighted(losses: Tensor, weight: Tensor, reduction: int) -> Tensor:
    """Return losses with a weight each, reduced; 1 stands for the weighted mean."""
    total = _times(losses, weight)
    return total.sum() / weight.sum() if reduction == 1 else _reduced(total, reduction)


def _times(losses: Tensor, weight: Tensor) -> Tensor:
    if weight.shape != losses.shape:
        raise ValueError(
            f"Weights and input must have the same size.\nThey have {list(weight.shape)} and {list(losses.shape)}."
        )
    return losses * weight


def _reduced(losses: Tensor, reduction: int) -> Tensor:
    return losses.mean() if reduction == 1 else losses.sum() if reduction == 2 else losses


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross-entropy of probabilities and targets in [0, 1], reduced.

    See Also
    --------
    nn.BCELoss, binary_cross_entropy_with_logits

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.binary_cross_entropy(gs.tensor([0.9, 0.2]), gs.tensor([1.0, 0.0]))
    tensor(0.1643)
    """
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
    weight : Tensor, optional
        A factor for every loss.
    reduction : {"mean", "sum", "none"}
    pos_weight : Tensor, optional
        A factor for the targets that are 1.

    See Also
    --------
    nn.BCEWithLogitsLoss, binary_cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.binary_cross_entropy_with_logits(gs.tensor([2.0, -1.0]), gs.tensor([1.0, 0.0]))
    tensor(0.2201)
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
    reduction : {"mean", "batchmean", "sum", "none"}
        ``"batchmean"`` divides the sum by the batch size, which is the mathematical divergence.
    log_target : bool
        `target` holds log-probabilities too.

    See Also
    --------
    nn.KLDivLoss, distributions.kl_divergence

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.kl_div(gs.tensor([[0.5, 0.5]]).log(), gs.tensor([[0.9, 0.1]]), reduction="batchmean")
    tensor(0.3681)
    """
    if size_average is not None or reduce is not None:
        reduction = _losses.older_reduction(size_average, reduce)
    elif reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
        )
    batch = reduction == "batchmean"
    code = reduction_code("sum" if batch else reduction)
    loss = OPERATORS["kl_div"].function(input, target, code, log_target)
    return loss / input.shape[0] if batch and input.ndim else loss


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts under a Poisson distribution, reduced.

    Parameters
    ----------
    input, target : Tensor
        The rate, or its logarithm, and the counts.
    log_input : bool
        `input` is the logarithm.
    full : bool
        Add Stirling's approximation of ``log(target!)``.
    eps : float
        Added to a rate before its logarithm is taken.
    reduction : {"mean", "sum", "none"}

    See Also
    --------
    nn.PoissonNLLLoss, gaussian_nll_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.poisson_nll_loss(gs.tensor([0.0]), gs.tensor([2.0]))
    tensor(1.)
    """
    code = reduction_code(reduction, size_average, reduce)
    return _margins.poisson_nll_loss(input, target, log_input, full, eps, code)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of the targets under normal distributions, reduced.

    Parameters
    ----------
    input, target : Tensor
        Means and what was seen.
    var : Tensor or float
        Variances: of the shape of the input, or without or with 1 in one of its dimensions; below `eps` they count as
        `eps`, with a gradient all the same.
    full : bool
        Add the constant ``log(2 * pi) / 2``.
    reduction : {"mean", "sum", "none"}

    References
    ----------
    D. Nix, A. Weigend, "Estimating the mean and variance of the target probability distribution", ICNN 1994.

    See Also
    --------
    nn.GaussianNLLLoss, poisson_nll_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.gaussian_nll_loss(gs.tensor([1.0]), gs.tensor([3.0]), gs.tensor([2.0]))
    tensor(1.3466)
    """
    variance = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid\nUse 'none', 'mean' or 'sum'.")
    variance = variance.clone()
    with no_grad():
        variance.clamp_(min=eps)
    losses = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return _margins.reduce_losses(losses, reduction_code(reduction))


def _variance(input: Tensor, var: Tensor | float) -> Tensor:
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return var * PUBLIC["ones_like"](input)
    if bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return var.unsqueeze(-1)
    differing = [size for wanted, size in zip(input.shape, var.shape, strict=False) if wanted != size]
    if var.ndim != input.ndim or differing != [1]:
        raise ValueError(f"var is of incorrect size\nIt has shape {list(var.shape)}, the input {list(input.shape)}.")
    return var


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-likelihood of label sequences under all alignments with the input, reduced.

    Parameters
    ----------
    log_probs : Tensor
        Of shape (T, N, C) or (T, C): logarithms of probabilities, as :func:`log_softmax` gives them.
    targets : Tensor
        Labels: of shape (N, S), or all in a row.
    input_lengths, target_lengths : Tensor or sequence of int
        How much of each example counts.
    blank : int
        The class of the blank.
    reduction : {"mean", "sum", "none"}
        ``"mean"`` divides each loss by the length of its target first.
    zero_infinity : bool
        Take 0, with no gradient, where an input is too short for its target.

    References
    ----------
    A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal classification", ICML 2006.

    See Also
    --------
    nn.CTCLoss, log_softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.ctc_loss(gs.zeros(4, 1, 3).log_softmax(2), gs.tensor([[1, 2]]), (4,), (2,))
    tensor(0.8432)
    """
    code = reduction_code(reduction)
    return _ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, code, zero_infinity)
