"""Class indices as vectors."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.catalogue import PUBLIC
from ...runtime.tensor import Tensor

__all__ = [
    "one_hot",
]


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return class indices as rows with a single 1.

    Raises
    ------
    RuntimeError
        If an index is negative, or not below `num_classes`.
    """
    array = tensor._array
    if array.dtype.kind not in "iu":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
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
