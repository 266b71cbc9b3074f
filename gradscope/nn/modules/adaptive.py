"""The adaptive softmax over many classes.

References
----------
E. Grave, A. Joulin, M. Cissé, D. Grangier, H. Jégou, "Efficient softmax approximation for GPUs", ICML 2017.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The logarithms of the probabilities of the targets, and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over many classes, the frequent ones first: rare ones are scored in clusters of smaller width.

    Parameters
    ----------
    cutoffs : sequence of int
        Where the clusters begin; classes before the first are scored with the clusters.
    div_value : float
        By how much each cluster is narrower than the one before.
    head_bias : bool
        Learn a bias for the scores of the first.

    See Also
    --------
    LogSoftmax, CrossEntropyLoss

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])(gs.randn(3, 16), gs.tensor([1, 7, 19])).output.shape
    gradscope.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        bounds = _checked_cutoffs(list(cutoffs), n_classes)
        made = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = bounds[0]
        self.n_clusters = len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(itertools.pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**number)
            narrow, scores = (
                Linear(in_features, width, bias=False, **made),
                Linear(width, high - low, bias=False, **made),
            )
            self.tail.append(Sequential(narrow, scores))

    def reset_parameters(self) -> None:
        """Initialise the parameters anew."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log-probabilities of the targets, and the mean loss."""
        _check_target(input_, target_)
        single = target_.dim() == 0
        input, target = (t.unsqueeze(0) if single else t for t in (input_, target_))
        self._check_classes(target)
        output, first = input.new_zeros(target.shape[0]), target.clone()
        for number, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().reshape(-1)
            if not rows.numel():
                continue
            first.index_fill_(0, rows, self.shortlist_size + number)
            logs = F.log_softmax(self.tail[number](input.index_select(0, rows)), dim=1)
            wanted = logs.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, wanted.to(output.dtype))
        output = output + F.log_softmax(self.head(input), dim=1).gather(1, first.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check_classes(self, target: Tensor) -> None:
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

    def _all_log_probs(self, input: Tensor, head: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, given the scores of the first."""
        logs = F.log_softmax(head, dim=1)
        parts = [logs[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            beyond = logs[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + beyond)
        return PUBLIC["cat"](parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes."""
        return self._all_log_probs(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each example; clusters are scored only where one comes first."""
        head = self.head(input)
        found = head.argmax(dim=1)
        rows = (found >= self.shortlist_size).nonzero().reshape(-1)
        if rows.numel():
            logs = self._all_log_probs(input.index_select(0, rows), head.index_select(0, rows))
            found[rows] = logs.argmax(dim=1)
        return found


def _checked_cutoffs(cutoffs: list[int], n_classes: int) -> list[int]:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    rising = all(a < b for a, b in itertools.pairwise(cutoffs))
    if not rising or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            f"is between 1 and n_classes-1\nThey are {cutoffs}, of {n_classes} classes."
        )
    return cutoffs


def _check_target(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError(
            "Input and target should have the same size in the batch dimension.\n"
            f"Their shapes are {list(input.shape)} and {list(target.shape)}."
        )
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size "
            f"{input.shape}"
        )
