"""Losses as modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...runtime.ops.losses.elementwise_losses import older_reduction
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn
from .. import functional as F
from .distance import PairwiseDistance
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """A loss with a reduction: "none", "mean" or "sum".

    `size_average` and `reduce` are what `reduction` was before; where one is given it decides.
    """

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        older = size_average is not None or reduce is not None
        self.reduction = older_reduction(size_average, reduce) if older else reduction


class _WeightedLoss(_Loss):
    """A loss with a weight for each class, kept as a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Mean (or sum) of absolute errors.

    See Also
    --------
    MSELoss, SmoothL1Loss, nn.functional.l1_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.L1Loss()(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(1.7500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Mean (or sum) of squared errors.

    Input and target have one shape; so has the result with ``reduction="none"``, which else has no dimensions.

    See Also
    --------
    L1Loss : Of absolute errors.
    HuberLoss : Squared where small, absolute where large.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MSELoss()(gs.tensor([1.0, 2.0]), gs.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Absolute errors, squared below `beta`.

    See Also
    --------
    HuberLoss, L1Loss, nn.functional.smooth_l1_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.SmoothL1Loss()(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(1.3125)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared errors, linear beyond `delta`.

    See Also
    --------
    SmoothL1Loss, MSELoss, nn.functional.huber_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.HuberLoss()(gs.tensor([0.0, 0.0]), gs.tensor([0.5, 3.0]))
    tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """Minus the log-probability of each target's class.

    The input has shape (N, C) or (N, C, ...), the target the same without C, and holds classes from 0 to C - 1.

    See Also
    --------
    CrossEntropyLoss : Takes scores instead of log-probabilities.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.NLLLoss()(gs.log_softmax(gs.zeros(1, 2), 1), gs.tensor([0]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The former name of :class:`NLLLoss`.

    See Also
    --------
    NLLLoss

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     loss = gs.nn.NLLLoss2d()
    >>> loss(gs.zeros(1, 2, 3, 3), gs.zeros(1, 3, 3, dtype=gs.int64)).item()
    0.0
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross-entropy of scores and targets, see :func:`gradscope.nn.functional.cross_entropy`.

    See Also
    --------
    NLLLoss, BCEWithLogitsLoss, nn.functional.cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CrossEntropyLoss()(gs.zeros(2, 4), gs.tensor([0, 3]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(
            input,
            target,
            self._buffers["weight"],
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Cross-entropy of probabilities and targets in [0, 1].

    See Also
    --------
    BCEWithLogitsLoss, nn.functional.binary_cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.BCELoss()(gs.tensor([0.9, 0.2]), gs.tensor([1.0, 0.0]))
    tensor(0.1643)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Cross-entropy of scores and targets in [0, 1].

    Input and target have one shape; the target has probabilities, between 0 and 1.

    See Also
    --------
    BCELoss : Of probabilities instead of scores; less exact where they are close to 0 or 1.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.BCEWithLogitsLoss()(gs.tensor([0.0]), gs.tensor([1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of a target distribution and log-probabilities.

    See Also
    --------
    CrossEntropyLoss, nn.functional.kl_div

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.KLDivLoss(reduction="batchmean")(gs.tensor([[0.5, 0.5]]).log(), gs.tensor([[0.9, 0.1]]))
    tensor(0.3681)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under a Poisson distribution, see :func:`~.functional.poisson_nll_loss`.

    See Also
    --------
    GaussianNLLLoss, nn.functional.poisson_nll_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.PoissonNLLLoss()(gs.tensor([0.0]), gs.tensor([2.0]))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of targets under normal distributions, see :func:`~.functional.gaussian_nll_loss`.

    See Also
    --------
    PoissonNLLLoss, MSELoss, nn.functional.gaussian_nll_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.GaussianNLLLoss()(gs.tensor([1.0]), gs.tensor([3.0]), gs.tensor([2.0]))
    tensor(1.3466)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Return the loss."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class _MarginLoss(_Loss):
    """A loss with a margin."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target * (input1 - input2) + margin)``: a target of 1 ranks the first input higher.

    See Also
    --------
    TripletMarginLoss, nn.functional.margin_ranking_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MarginRankingLoss()(gs.tensor([1.0]), gs.tensor([3.0]), gs.tensor([1.0]))
    tensor(2.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - cos`` of two embeddings where the target is 1, ``max(0, cos - margin)`` where it is -1.

    See Also
    --------
    TripletMarginLoss, nn.functional.cosine_embedding_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CosineEmbeddingLoss()(gs.tensor([[1.0, 0.0]]), gs.tensor([[0.0, 1.0]]), gs.tensor([1.0]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """A distance where the target is 1, what it lacks to the margin where the target is -1.

    See Also
    --------
    CosineEmbeddingLoss, nn.functional.hinge_embedding_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.HingeEmbeddingLoss()(gs.tensor([0.5, 0.3]), gs.tensor([1.0, -1.0]))
    tensor(0.6000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


def _positive(loss: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{loss}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_MarginLoss):
    """How much nearer than `margin` to the anchor the negative is than the positive.

    Parameters
    ----------
    p, eps : float
        Of the distance, see :func:`~.functional.pairwise_distance`.
    swap : bool
        Take the positive for the anchor where the negative is nearer to it.

    See Also
    --------
    TripletMarginWithDistanceLoss, nn.functional.triplet_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> anchor, positive, negative = gs.zeros(1, 2), gs.tensor([[3.0, 4.0]]), gs.tensor([[0.0, 4.0]])
    >>> gs.nn.TripletMarginLoss()(anchor, positive, negative)
    tensor(2.0000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)
        _positive("TripletMarginLoss", margin)
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` for a distance of one's own: a function of two tensors, or a module.

    See Also
    --------
    TripletMarginLoss, nn.functional.triplet_margin_with_distance_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.TripletMarginWithDistanceLoss()(gs.zeros(1, 2), gs.ones(1, 2), gs.ones(1, 2) * 3)
    tensor(0.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _positive("TripletMarginWithDistanceLoss", margin)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))`` for targets 1 and -1.

    See Also
    --------
    MultiLabelSoftMarginLoss, nn.functional.soft_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.SoftMarginLoss()(gs.tensor([2.0, -1.0]), gs.tensor([1.0, -1.0]))
    tensor(0.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Mean over classes of the cross-entropy of scores and targets 0 and 1.

    See Also
    --------
    BCEWithLogitsLoss, nn.functional.multilabel_soft_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MultiLabelSoftMarginLoss()(gs.tensor([[2.0, -1.0]]), gs.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """How much other classes exceed an example's labels less 1, see :func:`~.functional.multilabel_margin_loss`.

    See Also
    --------
    MultiMarginLoss, nn.functional.multilabel_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MultiLabelMarginLoss()(gs.tensor([0.1, 0.2, 0.4]), gs.tensor([2, 0, -1]))
    tensor(0.6333)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Mean over classes of ``max(0, margin - score of the target + score) ** p``.

    See Also
    --------
    CrossEntropyLoss, nn.functional.multi_margin_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MultiMarginLoss()(gs.tensor([[0.1, 0.2, 0.4]]), gs.tensor([2]))
    tensor(0.5000)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.ndim}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class CTCLoss(_Loss):
    """Minus the log-likelihood of label sequences under all alignments, see :func:`~.functional.ctc_loss`.

    Parameters
    ----------
    blank : int
        The class of the blank.
    reduction : {"mean", "sum", "none"}
    zero_infinity : bool
        Take 0, with no gradient, where an input is too short for its target.

    See Also
    --------
    nn.functional.ctc_loss

    Examples
    --------
    >>> import gradscope as gs
    >>> scores = gs.zeros(4, 1, 3).log_softmax(2)
    >>> gs.nn.CTCLoss()(scores, gs.tensor([[1, 2]]), [4], [2])
    tensor(0.8432)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        """Return the loss."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
