"""Products, norms and distances of vectors."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.declaration.registry import METHODS
from ...runtime.ops.execution.inplace_and_out import into
from ...runtime.ops.losses.distances import cosine_similarity, pairwise_distance, pdist
from ...runtime.ops.nn.older_functional_forms import bilinear
from ...runtime.tensor.tensor import Tensor

__all__ = ["bilinear", "cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Return `input` divided by its `p`-norm along `dim` (at least `eps`).

    See Also
    --------
    norm, cosine_similarity

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.normalize(gs.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if out is not None:
        return into(out, "div", [input], lambda: normalize(input, p, dim, eps))
    norm = METHODS["norm"](input, p, dim, keepdim=True)
    return input / norm.clamp_min(eps).expand_as(input)
