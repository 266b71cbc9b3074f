"""Dropout of channels, and other noise in training."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.families import PUBLIC
from ...runtime.ops.nn.normalization import check_probability, feature_dropout
from ...runtime.ops.nn.rrelu_and_alpha_dropout import alpha_dropout, feature_alpha_dropout
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax"]


def _of_one(input: Any, p: float, training: bool, inplace: bool) -> Tensor:
    """Drop channels of one example without a batch."""
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    dropped = feature_dropout(batch, p, training, inplace)
    return dropped.squeeze_(0) if inplace else dropped.squeeze(0)


def _purpose(spatial: int) -> str:
    return (
        f"Note that dropout{spatial}d exists to provide channel-wise dropout on inputs with {spatial} spatial "
        f"dimension{'s' if spatial > 1 else ''}, a channel dimension, and an optional batch dimension (i.e. "
        f"{spatial + 1}D or {spatial + 2}D inputs)."
    )


def _warn_of(spatial: int, ndim: int) -> None:
    if ndim not in (spatial + 1, spatial + 2):
        warn(
            f"dropout{spatial}d: Received a {ndim}-D input to dropout{spatial}d, which is deprecated and will result "
            "in an error in a future release. To retain the behavior and silence this warning, please use dropout "
            "instead. " + _purpose(spatial),
        )


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Put whole channels of signals (N, C, L) or (C, L) to zero with probability `p`, and divide the others.

    See Also
    --------
    nn.Dropout1d, dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.dropout1d(gs.ones(2, 3, 4)).shape
    gradscope.Size([2, 3, 4])
    """
    check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. {_purpose(1)}")
    return (feature_dropout if input.ndim == 3 else _of_one)(input, p, training, inplace)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Put whole channels of images (N, C, H, W) to zero with probability `p`, and divide the others.

    A tensor of three dimensions is taken for signals (N, C, L), with a warning, as in PyTorch.

    See Also
    --------
    nn.Dropout2d, dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.dropout2d(gs.ones(2, 3, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4])
    """
    check_probability(p)
    _warn_of(2, input.ndim)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
        )
    return feature_dropout(input, p, training, inplace)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Put whole channels of volumes (N, C, D, H, W) or (C, D, H, W) to zero with probability `p`.

    See Also
    --------
    nn.Dropout3d, dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.dropout3d(gs.ones(2, 3, 4, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4, 4])
    """
    check_probability(p)
    _warn_of(3, input.ndim)
    return (feature_dropout if input.ndim == 5 else _of_one)(input, p, training, inplace)


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Draw from a distribution over classes, so that the draw has a gradient.

    Parameters
    ----------
    logits : Tensor
        Logarithms of unnormalised probabilities.
    tau : float
        The temperature: the lower, the nearer to one class.
    hard : bool
        Return one class, and the gradient of the soft draw.
    eps : float
        Has no effect.
    dim : int
        The dimension of the classes.

    References
    ----------
    E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-Softmax", ICLR 2017.

    See Also
    --------
    softmax, distributions.RelaxedOneHotCategorical

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.gumbel_softmax(gs.zeros(2, 3), hard=True).sum(-1)
    tensor([1., 1.])
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -PUBLIC["empty_like"](logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = PUBLIC["zeros_like"](logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft
