"""Bags of embeddings, and class indices as vectors."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.families import PUBLIC
from ...runtime.ops.nn.embedding import padding_index, renormalize
from ...runtime.tensor.tensor import Tensor

__all__ = ["embedding_bag", "one_hot"]


_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return sums, means or maxima of bags of rows of `weight`.

    Parameters
    ----------
    input : Tensor
        Indices: a row for each bag, or all in a row.
    weight : Tensor
        Of shape (rows, width).
    offsets : Tensor, optional
        Where each bag starts, if the indices are in a row.
    max_norm : float, optional
        Scale the named rows down to this `norm_type`-norm first, in place.
    scale_grad_by_freq : bool
        Divide each row's gradient by how often it was named; not for maxima.
    mode : {"mean", "sum", "max"}
    sparse : bool
        Taken for PyTorch's sake: gradients are dense.
    per_sample_weights : Tensor, optional
        A factor for each index, for sums.
    include_last_offset : bool
        The offsets end with where the last bag ends.
    padding_idx : int, optional
        A row that does not count.

    See Also
    --------
    nn.EmbeddingBag, embedding

    Examples
    --------
    >>> import gradscope as gs
    >>> rows = gs.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> gs.nn.functional.embedding_bag(gs.tensor([0, 1, 1]), rows, gs.tensor([0, 2]))
    tensor([[2., 3.],
            [3., 4.]])
    """
    _check_mode(mode, scale_grad_by_freq, sparse)
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    input, offsets, per_sample_weights = _in_a_row(input, offsets, per_sample_weights)
    padding = padding_index(weight, padding_idx)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub.\nMultiply the rows of an embedding() instead."
        )
    if max_norm is not None:
        renormalize(weight, input, max_norm, norm_type)
    function = OPERATORS["embedding_bag.bags"].function
    settings = (scale_grad_by_freq, _MODES[mode], per_sample_weights, include_last_offset, padding)
    return function(weight, input, offsets, *settings)


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def _in_a_row(input: Any, offsets: Any, per_sample_weights: Any) -> tuple[Any, Any, Any]:
    """Return indices, offsets and factors of bags, however they were given."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        offsets = PUBLIC["arange"](bags, device=input.device) * length
        return input.reshape(-1), offsets, None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return class indices as rows with a single 1.

    Raises
    ------
    RuntimeError
        If an index is negative, or not below `num_classes`.

    See Also
    --------
    eye, embedding

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.one_hot(gs.tensor([2, 0]), num_classes=3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    array = tensor._array
    if array.dtype != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.\nConvert it with .long().")
    if num_classes == -1 and not array.size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    lowest, highest = (int(tensor.min()), int(tensor.max())) if array.size else (0, -1)
    if lowest < 0:
        raise RuntimeError(f"Class values must be non-negative.\nThe smallest is {lowest}.")
    if num_classes == -1:
        num_classes = highest + 1
    elif highest >= num_classes:
        raise RuntimeError(
            f"Class values must be smaller than num_classes.\nThe largest is {highest} of {num_classes}."
        )
    classes = PUBLIC["arange"](num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).long()
