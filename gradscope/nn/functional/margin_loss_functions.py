"""Losses of margins: between scores of classes, and between distances and similarities of embeddings."""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.losses import margin_losses as _runtime
from ...runtime.ops.losses.distances import pairwise_distance
from ...runtime.ops.losses.elementwise_losses import reduction_code
from ...runtime.ops.losses.margin_losses import reduce_losses, refuse_gradient, triplet
from ...runtime.tensor.tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, -target * (input1 - input2) + margin)``, reduced: a target of 1 ranks the first higher.

    See Also
    --------
    nn.MarginRankingLoss, triplet_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.margin_ranking_loss(gs.tensor([1.0]), gs.tensor([3.0]), gs.tensor([1.0]))
    tensor(2.)
    """
    code = reduction_code(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _runtime.margin_ranking_loss(input1, input2, target, margin, code)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the distance `input` where the target is 1, ``max(0, margin - input)`` where it is -1, reduced.

    See Also
    --------
    nn.HingeEmbeddingLoss, margin_ranking_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.hinge_embedding_loss(gs.tensor([0.5, 0.3]), gs.tensor([1.0, -1.0]))
    tensor(0.6000)
    """
    return _runtime.hinge_embedding_loss(input, target, margin, reduction_code(reduction, size_average, reduce))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1, reduced.

    The cosine is that of the angle between rows of `input1` and `input2`, or of two vectors.

    See Also
    --------
    nn.CosineEmbeddingLoss, cosine_similarity

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.cosine_embedding_loss(gs.tensor([[1.0, 0.0]]), gs.tensor([[0.0, 1.0]]), gs.tensor([1.0]))
    tensor(1.)
    """
    code = reduction_code(reduction, size_average, reduce)
    return _runtime.cosine_embedding_loss(input1, input2, target, margin, code)


def _positive(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, margin + ‖anchor - positive‖ - ‖anchor - negative‖)``, reduced.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of shape (N, D) or (D).
    p, eps : float
        Of :func:`pairwise_distance`.
    swap : bool
        Take the positive for the anchor where the negative is nearer to it.
    reduction : {"mean", "sum", "none"}

    See Also
    --------
    nn.TripletMarginLoss, triplet_margin_with_distance_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.triplet_margin_loss(gs.zeros(1, 2), gs.ones(1, 2), gs.ones(1, 2) * 3)
    tensor(0.)
    """
    code = reduction_code(reduction, size_average, reduce)
    _positive(margin)
    return _runtime.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return :func:`triplet_margin_loss` for a distance of one's own (the Euclidean one).

    See Also
    --------
    nn.TripletMarginWithDistanceLoss, triplet_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.triplet_margin_with_distance_loss(gs.zeros(1, 2), gs.ones(1, 2), gs.ones(1, 2) * 3)
    tensor(0.)
    """
    code = reduction_code(reduction)
    _positive(margin)
    distance = pairwise_distance if distance_function is None else distance_function
    return reduce_losses(triplet(distance, anchor, positive, negative, margin, swap), code)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``log(1 + exp(-target * input))`` for targets 1 and -1, reduced.

    See Also
    --------
    nn.SoftMarginLoss, multilabel_soft_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.soft_margin_loss(gs.tensor([2.0, -1.0]), gs.tensor([1.0, -1.0]))
    tensor(0.2201)
    """
    refuse_gradient("soft_margin_loss", "target", target)
    code = reduction_code(reduction, size_average, reduce)
    return OPERATORS["soft_margin_loss"].function(input, target, code)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of the cross-entropy of scores and targets 0 and 1, reduced.

    `weight` is one factor for each class.

    See Also
    --------
    nn.MultiLabelSoftMarginLoss, binary_cross_entropy_with_logits

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.multilabel_soft_margin_loss(gs.tensor([[2.0, -1.0]]), gs.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """
    code = reduction_code(reduction, size_average, reduce)
    log_sigmoid = OPERATORS["log_sigmoid"].function
    losses = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduce_losses(losses.sum(-1) / input.shape[-1], code)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return how much other classes exceed an example's labels less 1, summed over both and divided by C, reduced.

    Parameters
    ----------
    input : Tensor
        Scores of shape (N, C) or (C).
    target : Tensor
        Labels, of the same shape: those before the first -1 count.
    reduction : {"mean", "sum", "none"}

    See Also
    --------
    nn.MultiLabelMarginLoss, multi_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.multilabel_margin_loss(gs.tensor([0.1, 0.2, 0.4]), gs.tensor([2, 0, -1]))
    tensor(0.6333)
    """
    code = reduction_code(reduction, size_average, reduce)
    return OPERATORS["multilabel_margin_loss"].function(input, target, code)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of ``max(0, margin - score of the target + score) ** p``, reduced.

    Parameters
    ----------
    input : Tensor
        Scores of shape (N, C) or (C).
    target : Tensor
        Class indices of shape (N) or ().
    p : {1, 2}
    weight : Tensor, optional
        One factor for each class.
    reduction : {"mean", "sum", "none"}

    See Also
    --------
    nn.MultiMarginLoss, cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.multi_margin_loss(gs.tensor([[0.1, 0.2, 0.4]]), gs.tensor([2]))
    tensor(0.5000)
    """
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None:
        if weight.ndim != 1:
            raise ValueError("weight must be one-dimensional")
        refuse_gradient("multi_margin_loss", "weight", weight)
    return OPERATORS["multi_margin_loss"].function(input, target, p, margin, weight, code)
