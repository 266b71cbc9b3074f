"""Distances and similarities as modules."""

from __future__ import annotations

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along `dim`; norms are at least `eps`.

    See Also
    --------
    PairwiseDistance, nn.functional.cosine_similarity

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CosineSimilarity(dim=0)(gs.tensor([1.0, 0.0]), gs.tensor([1.0, 1.0]))
    tensor(0.7071)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the cosine."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The `p`-norm of the difference of two tensors along the last dimension; `eps` is added to the difference.

    See Also
    --------
    CosineSimilarity, nn.functional.pairwise_distance

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.PairwiseDistance()(gs.tensor([[0.0, 3.0]]), gs.tensor([[4.0, 0.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
