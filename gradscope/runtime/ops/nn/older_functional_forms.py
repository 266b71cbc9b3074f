"""Functions that PyTorch has both in the package itself, with its older arguments, and in ``nn.functional``."""

from __future__ import annotations

from ... import autocast, state
from ...tensor.tensor import Tensor
from ..declaration.registry import OPERATORS, PUBLIC, public
from .embedding import embedding as _embedding
from .embedding import renormalize
from .normalization import dropout as _dropout
from .normalization import feature_dropout as _feature_dropout
from .rrelu_and_alpha_dropout import alpha_dropout as _alpha_dropout
from .rrelu_and_alpha_dropout import feature_alpha_dropout as _feature_alpha_dropout


@public(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set elements to 0 with probability `p`, if `train`, and scale the others by ``1 / (1 - p)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.dropout(gs.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return _dropout(input, p, train)


@public(method=False)
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`dropout`."""
    return _dropout(input, p, train, True)


@public(method=False)
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Tensor:
    """Return the rows of `weight` that `indices` name; no gradient goes to the row `padding_idx`, if it is not -1.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.embedding(gs.tensor([[1.0], [2.0], [3.0]]), gs.tensor([2, 0]))
    tensor([[3.],
            [1.]])
    """
    padding = None if padding_idx < 0 else padding_idx
    return _embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq)


@public(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set whole channels (of dimension 1) to 0 with probability `p`, if `train`, and scale the others.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.feature_dropout(gs.ones(1, 2, 3), 0.5, False)
    tensor([[[1., 1., 1.],
             [1., 1., 1.]]])
    """
    return _feature_dropout(input, p, train)


@public(method=False)
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`feature_dropout`."""
    return _feature_dropout(input, p, train, True)


@public(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Put elements to where SELU saturates, with probability `p`, if `train`, and keep mean 0 and variance 1.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.alpha_dropout(gs.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return _alpha_dropout(input, p, train)


@public(method=False)
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`alpha_dropout`."""
    return _alpha_dropout(input, p, train, True)


@public(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Put whole channels (of dimension 1) to where SELU saturates, if `train`; see :func:`alpha_dropout`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.feature_alpha_dropout(gs.ones(1, 2, 3), 0.5, False)
    tensor([[[1., 1., 1.],
             [1., 1., 1.]]])
    """
    return _feature_alpha_dropout(input, p, train)


@public(method=False)
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`feature_alpha_dropout`."""
    return _feature_alpha_dropout(input, p, train, True)


@public(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows of `input` that `indices` name down to a `norm_type`-norm of at most `max_norm`, in place."""
    renormalize(input, indices, max_norm, norm_type)
    return input


@public(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input1 @ weight[k] @ input2 + bias[k]`` for every output feature k.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.bilinear(gs.ones(5, 2), gs.ones(5, 3), gs.ones(4, 2, 3)).shape
    gradscope.Size([5, 4])
    """
    if state.casting and autocast.covers("bilinear", (input1, input2, weight, bias)):
        return autocast.call("bilinear", bilinear, input1, input2, weight, bias)
    result = PUBLIC["einsum"]("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias


@public(method=False)
def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """Return the Kullback-Leibler divergence of `target` and log-probabilities, reduced: 0 none, 1 mean, 2 sum.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.kl_div(gs.tensor([0.5, 0.5]).log(), gs.tensor([0.9, 0.1]))
    tensor(0.1840)
    """
    return OPERATORS["kl_div"].function(input, target, reduction, log_target)


@public(method=False)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """Return the cross-entropy of scores and targets in [0, 1], reduced: 0 none, 1 mean, 2 sum.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.binary_cross_entropy_with_logits(gs.tensor([2.0, -1.0]), gs.tensor([1.0, 0.0]))
    tensor(0.2201)
    """
    return OPERATORS["binary_cross_entropy_with_logits"].function(input, target, weight, pos_weight, reduction)
