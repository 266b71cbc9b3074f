"""Losses of margins: between scores of classes, and between distances and similarities of embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy

from ... import autocast, state
from ...memory import device
from ...memory.dtype import scalar_type
from ...tensor import creation
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, Gradient, Make, Namespace, Number
from ..declaration.references import reduced_losses
from ..declaration.registry import METHODS, PUBLIC, operator, public
from ..execution.array_errors import cannot_hold, undefined_for
from ..execution.bare_functions import array_operators, is_half, over, single
from ..index.accumulate_at import accumulate_at
from ..nn.activations import need_floating
from .elementwise_losses import MEAN, NONE, SUM, reduced

# --- by operators -----------------------------------------------------------------------------------------------------


def refuse_gradient(function: str, argument: str, tensor: Array) -> None:
    """Raise where a tensor that a loss takes for a constant requires grad."""
    if tensor is not None and tensor.requires_grad:
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
            "have requires_grad True.\nGive it detached: detach()."
        )


def _soft_margin(xp: Namespace, self: Array, target: Array, reduction: int = MEAN) -> Array:
    # log(1 + exp(-x)) that stays exact for large x.
    if target.dtype.kind == "b":
        raise RuntimeError(undefined_for("neg", {"b"}))
    scores = target * self
    if scores.dtype.kind not in "f":
        raise cannot_hold("Float", scores.dtype)
    losses = -array_operators(xp).log_sigmoid(scores)
    if reduction == MEAN and not losses.size:
        return xp.full((), xp.nan, dtype=losses.dtype)
    return reduced(xp, losses, reduction)


def _soft_margin_backward(g: Gradient, self: Array, target: Array, reduction: int, F: Namespace) -> Gradient:
    slope = F.sigmoid(-target * self) * -target
    return over(g * slope, max(math.prod(slope.shape), 1)) if reduction == MEAN else g * slope


operator(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1)",
    _soft_margin,
    promote="numeric",
    method=False,
    public_name=False,
    derivatives={"self": _soft_margin_backward},
    doc="Return ``log(1 + exp(-target * self))``, reduced.",
    samples=lambda make: [((make(2, 3), make(2, 3).detach(), code), {}) for code in (NONE, MEAN, SUM)],
    reference=lambda self, target, reduction: reduced_losses(numpy.log1p(numpy.exp(-target * self)), reduction),
    supports="f",
)


def _rows(array: Array) -> Array:
    """Return scores of one example or of a batch as a matrix."""
    if array.ndim > 2 or (array.ndim == 1 and not array.size) or (array.ndim == 2 and not array.shape[1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(array.shape)}\n"
            "Scores have shape (C) or (N, C)."
        )
    return array.reshape(1, -1) if array.ndim < 2 else array


def _over_examples(xp: Namespace, losses: Array, reduction: int) -> Array:
    """Reduce the losses of examples; that of none is 0."""
    if reduction == NONE or losses.size:
        return reduced(xp, losses, reduction)
    return xp.zeros((), dtype=losses.dtype)


def _check_multi(self: Array, target: Array, weight: Array) -> Array:
    rows = _rows(self)
    need_floating("multi_margin_loss_cpu_kernel", self)
    if target.dtype.kind not in "iu":
        raise RuntimeError(f"expected scalar type Long but found {scalar_type(target.dtype)}\nConvert it with .long().")
    count, classes = rows.shape
    if target.ndim > 1 or target.size != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target.shape)}. Input has shape {list(self.shape)}."
        )
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if type(target) is device.ndarray and target.size and (target.min() < 0 or target.max() >= classes):
        raise RuntimeError(
            f"target out of range\nThere are {classes} classes; the targets run from {target.min()} to {target.max()}."
        )
    return rows


def _multi_margin(
    xp: Namespace,
    self: Array,
    target: Array,
    p: Number = 1,
    margin: Number = 1,
    weight: Array = None,
    reduction: int = MEAN,
) -> Array:
    rows = _check_multi(self, target, weight)
    if is_half(self):
        return _multi_margin(xp, single(self), target, p, margin, single(weight), reduction).astype(self.dtype)
    count, classes = rows.shape
    at = (xp.arange(count), target.reshape(-1))
    excess = rows - rows[at][:, None] + margin
    excess[at] = 0
    terms = excess * excess if p == 2 else excess
    if weight is not None:
        terms = terms * weight[at[1]][:, None]
    losses = xp.add.reduce(xp.where(excess > 0, terms, 0), axis=1) / classes  # as in PyTorch, a NaN exceeds nothing
    losses = losses.astype(self.dtype, copy=False)
    if reduction == NONE and self.ndim < 2 and target.ndim == 0:
        return losses[0]
    return _over_examples(xp, losses, reduction)


def _multi_margin_backward(
    g: Gradient, self: Array, target: Array, p: Number, margin: Number, weight: Array, reduction: int, F: Namespace
) -> Gradient:
    rows, at = self.reshape(-1, self.shape[-1] if len(self.shape) else 1), target.reshape(-1, 1)
    count, classes = rows.shape
    excess = rows - F.gather(rows, 1, at) + margin
    share = over(g, classes * count if reduction == MEAN else classes).reshape(-1, 1)
    slope = share * 2 * excess if p == 2 else share + F.zeros_like(excess)
    if weight is not None:
        slope = slope * F.index_select(weight, 0, target.reshape(-1)).reshape(-1, 1)
    # The target's own excess is the margin, which no score changes.
    counts = F.scatter_add(excess, 1, at, F.zeros_like(excess[:, :1]) - math.inf) > 0
    slope = F.where(counts, slope, F.zeros_like(slope))
    return F.scatter_add(slope, 1, at, -F.sum(slope, 1, True)).reshape(self.shape)


def _multi_margin_samples(make: Make) -> Cases:
    target, weight = creation.tensor([0, 2, 1, 0]), make(3, low=0.5, high=2.0).detach()
    batches: Cases = [
        ((make(4, 3), target, p, 0.7, w, code), {}) for p in (1, 2) for w in (None, weight) for code in (0, 1)
    ]
    return [
        *batches,
        ((make(4, 3), target, 1, 1.0, weight, SUM), {}),
        ((make(3), creation.tensor(1), 2, 1.0, None, NONE), {}),
    ]


def _multi_margin_reference(self: Array, target: Array, p: int, margin: float, weight: Array, reduction: int) -> Array:
    def loss(scores: Array, label: int) -> Array:
        scale = 1 if weight is None else weight[label]
        others = numpy.delete(scores, label)
        return numpy.sum(scale * numpy.maximum(0, margin - scores[label] + others) ** p) / len(scores)

    losses = [loss(scores, label) for scores, label in zip(numpy.atleast_2d(self), numpy.atleast_1d(target))]
    return reduced_losses(numpy.array(losses, self.dtype).reshape(self.shape[:-1]), reduction)


operator(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1)",
    _multi_margin,
    method=False,
    public_name=False,
    derivatives={"self": _multi_margin_backward},
    doc="Return the mean over classes of ``max(0, margin - score of the target + score) ** p``, reduced.",
    samples=_multi_margin_samples,
    reference=_multi_margin_reference,
    supports="f",
)


def _labels(xp: Namespace, self: Array, target: Array) -> tuple[Array, Array, Array, Array]:
    """Return the scores and labels as matrices, which labels count (those before the first -1), and the classes named.

    Labels that do not count are 0, so that they may be used as indices.
    """
    rows = _rows(self)
    if target.shape != self.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}\n"
            "A row of the target holds labels, filled up with -1."
        )
    if target.dtype.kind not in "iu":
        raise RuntimeError(f"expected scalar type Long but found {scalar_type(target.dtype)}\nConvert it with .long().")
    need_floating("multilabel_margin_loss_forward_out_frame", self)
    labels, classes = target.reshape(rows.shape), rows.shape[1]
    if type(labels) is device.ndarray and labels.size and (labels.min() < -1 or labels.max() >= classes):
        raise RuntimeError(
            f"argument #2 'target' is out of range\nLabels are 0 to {classes - 1}, or -1 after the last; they run from "
            f"{labels.min()} to {labels.max()}."
        )
    counted = xp.cumsum(labels < 0, axis=1) == 0
    if type(labels) is device.ndarray:
        # Where the longest row of labels ends, the rest is nothing but filling: on a GPU it would wait for the device.
        longest = int(counted.sum(axis=1).max(initial=0))
        labels, counted = labels[:, :longest], counted[:, :longest]
    labels = xp.where(counted, labels, 0)
    times = xp.zeros(rows.shape, dtype="int32")
    accumulate_at(xp, "add", times, (xp.arange(rows.shape[0])[:, None], labels), counted.astype("int32"))
    return rows, labels, counted, times > 0


def _excesses(xp: Namespace, self: Array, target: Array) -> tuple[Array, Array, Array]:
    """Return what each class not named exceeds each label by, (N, labels, C), 0 where it does not; and the labels."""
    rows, labels, counted, named = _labels(xp, self, target)
    at_label = rows[xp.arange(rows.shape[0])[:, None], labels]
    excess = rows[:, None, :] - at_label[:, :, None] + 1
    counts = (excess > 0) & counted[:, :, None] & ~named[:, None, :]  # as in PyTorch, a NaN exceeds nothing
    return xp.where(counts, excess, 0), labels, named


def _multilabel_margin(xp: Namespace, self: Array, target: Array, reduction: int = MEAN) -> Array:
    if is_half(self):
        return _multilabel_margin(xp, single(self), target, reduction).astype(self.dtype)
    excess, _, _ = _excesses(xp, self, target)
    losses = xp.add.reduce(excess, axis=(1, 2)) / excess.shape[2]
    losses = losses.astype(self.dtype, copy=False)
    return losses[0] if reduction == NONE and self.ndim < 2 else _over_examples(xp, losses, reduction)


def _multilabel_slope(xp: Namespace, self: Array, target: Array) -> Array:
    if is_half(self):
        return _multilabel_slope(xp, single(self), target).astype(self.dtype)
    excess, labels, _ = _excesses(xp, self, target)
    active = (excess > 0).astype(self.dtype)
    slope = xp.add.reduce(active, axis=1)
    falls = xp.add.reduce(active, axis=2)
    accumulate_at(xp, "add", slope, (xp.arange(slope.shape[0])[:, None], labels), -falls)
    return (slope / slope.shape[1]).astype(self.dtype, copy=False).reshape(self.shape)


def _multilabel_backward(g: Gradient, self: Array, target: Array, reduction: int, F: Namespace) -> Gradient:
    slope = F.multilabel_margin_slope(self, target)
    if reduction == NONE:
        return slope * (F.unsqueeze(g, -1) if len(g.shape) else g)
    return slope * (over(g, max(self.shape[0], 1)) if reduction == MEAN and len(self.shape) > 1 else g)


def _multilabel_samples(make: Make) -> Cases:
    target = creation.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [1, 1, 2, 0]])
    return [((make(3, 4), target, code), {}) for code in (NONE, MEAN, SUM)] + [((make(4), target[0], NONE), {})]


# What grows by how much with the scores: piecewise constant, thus without a derivative of its own.
operator(
    "multilabel_margin_slope(Tensor self, Tensor target)",
    _multilabel_slope,
    method=False,
    public_name=False,
    doc="Return the gradient of the multilabel margin loss of each example.",
)


def _multilabel_reference(self: Array, target: Array, reduction: int) -> Array:
    def loss(scores: Array, labels: Array) -> Array:
        named = labels[: int((labels < 0).argmax())] if (labels < 0).any() else labels
        others = [score for place, score in enumerate(scores) if place not in named]
        return sum(numpy.maximum(0, 1 - (scores[label] - other)) for label in named for other in others) / len(scores)

    losses = [loss(scores, labels) for scores, labels in zip(numpy.atleast_2d(self), numpy.atleast_2d(target))]
    return reduced_losses(numpy.array(losses, self.dtype).reshape(self.shape[:-1]), reduction)


operator(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1)",
    _multilabel_margin,
    method=False,
    public_name=False,
    derivatives={"self": _multilabel_backward},
    doc="Return how much classes that are no labels exceed the labels less 1, summed and divided by C, reduced.",
    samples=_multilabel_samples,
    reference=_multilabel_reference,
    supports="f",
)

# --- made of operators ------------------------------------------------------------------------------------------------


def reduce_losses(losses: Array, reduction: int) -> Array:
    """Return the losses, their mean or their sum, as tensors."""
    return losses if reduction == NONE else losses.mean() if reduction == MEAN else losses.sum()


@public(method=False)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """Return ``max(0, -target * (input1 - input2) + margin)``, reduced: 0 none, 1 mean, 2 sum.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.margin_ranking_loss(gs.tensor([1.0]), gs.tensor([3.0]), gs.tensor([1.0]))
    tensor(2.)
    """
    if state.casting and autocast.covers("margin_ranking_loss", (input1, input2, target)):
        return autocast.call("margin_ranking_loss", margin_ranking_loss, input1, input2, target, margin, reduction)
    return reduce_losses((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@public(method=False)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """Return `input` where the target is 1, ``max(0, margin - input)`` where it is -1; reduced: 0 none, 1 mean, 2 sum.

    References
    ----------
    R. Hadsell, S. Chopra, Y. LeCun, "Dimensionality reduction by learning an invariant mapping", CVPR 2006.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.hinge_embedding_loss(gs.tensor([0.5, 0.3]), gs.tensor([1.0, -1.0]))
    tensor(0.6000)
    """
    if state.casting and autocast.covers("hinge_embedding_loss", (input, target)):
        return autocast.call("hinge_embedding_loss", hinge_embedding_loss, input, target, margin, reduction)
    where, zeros = PUBLIC["where"], PUBLIC["zeros_like"](input)
    apart = where(target != 1, (margin - input).clamp_min(0), zeros)
    return reduce_losses(apart + where(target != -1, input, zeros), reduction)


# Keeps the norm of a vector of zeros from dividing by zero.
_TINY = 1e-12


@public(method=False)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """Return ``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1; reduced as the others.

    Raises
    ------
    RuntimeError
        If the target has not one dimension less than the inputs.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.cosine_embedding_loss(gs.tensor([[1.0, 0.0]]), gs.tensor([[0.0, 1.0]]), gs.tensor([1.0]))
    tensor(1.)
    """
    if state.casting and autocast.covers("cosine_embedding_loss", (input1, input2, target)):
        return autocast.call("cosine_embedding_loss", cosine_embedding_loss, input1, input2, target, margin, reduction)
    ndim, sizes = target._array.ndim, [list(x._array.shape) for x in (input1, input2)]
    if ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported\nIt has {ndim} dimensions.")
    if any(len(size) != ndim + 1 for size in sizes):
        raise RuntimeError(
            f"{ndim}D target tensor expects {ndim + 1}D input tensors, but found inputs with sizes {sizes[0]} and "
            f"{sizes[1]}."
        )
    where, dim = PUBLIC["where"], ndim
    squares = ((input1 * input1).sum(dim) + _TINY) * ((input2 * input2).sum(dim) + _TINY)
    cosine = (input1 * input2).sum(dim) / squares.sqrt()
    zeros = PUBLIC["zeros_like"](cosine)
    alike = where(target == 1, 1 - cosine, zeros)
    return reduce_losses(alike + where(target == -1, (cosine - margin).clamp_min(0), zeros), reduction)


def check_triplet(anchor: Array, positive: Array, negative: Array) -> None:
    """Raise where the tensors of a triplet have different numbers of dimensions."""
    a, p, n = (x._array.ndim for x in (anchor, positive, negative))
    if not a == p == n:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {a}D, positive {p}D, and negative {n}D inputs\nReshape them to the same number."
        )


def triplet(
    distance: Callable[[Array, Array], Array],
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float,
    swap: bool,
) -> Array:
    """Return ``max(0, margin + distance(anchor, positive) - distance(anchor, negative))``."""
    check_triplet(anchor, positive, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = METHODS["minimum"](far, distance(positive, negative))
    return (margin + near - far).clamp_min(0)


@public(method=False)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = MEAN,
) -> Tensor:
    """Return how much nearer than `margin` the negative is than the positive, reduced: 0 none, 1 mean, 2 sum.

    References
    ----------
    V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, "Learning local feature descriptors with triplets and shallow
    convolutional neural networks", BMVC 2016.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.triplet_margin_loss(gs.zeros(1, 2), gs.ones(1, 2), gs.ones(1, 2) * 3)
    tensor(0.)
    """
    if state.casting and autocast.covers("triplet_margin_loss", (anchor, positive, negative)):
        return autocast.call(
            "triplet_margin_loss", triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap, reduction
        )
    between = PUBLIC["pairwise_distance"]
    losses = triplet(lambda x, y: between(x, y, p, eps), anchor, positive, negative, margin, swap)
    return reduce_losses(losses, reduction)


@public(method=False)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """Return the negative log-likelihood of counts under a Poisson distribution, reduced: 0 none, 1 mean, 2 sum.

    `input` is the rate, or its logarithm; `full` adds Stirling's approximation of ``log(target!)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.poisson_nll_loss(gs.tensor([0.0]), gs.tensor([2.0]), True, False, 1e-8, 1)
    tensor(1.)
    """
    if state.casting and autocast.covers("poisson_nll_loss", (input, target)):
        return autocast.call("poisson_nll_loss", poisson_nll_loss, input, target, log_input, full, eps, reduction)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        rest = target * target.log() - target + 0.5 * (target * _TWO_PI).log()
        losses = losses + rest.masked_fill(target <= 1, 0)
    return reduce_losses(losses, reduction)


_TWO_PI = 6.283185307179586
