"""Modules that change the shape."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """The input with the dimensions from `start_dim` to `end_dim` joined.

    See Also
    --------
    Unflatten, flatten

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Flatten()(gs.zeros(2, 3, 4)).shape
    gradscope.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the flattened input."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """The input with dimension `dim` split into `unflattened_size`, a tuple of ints.

    See Also
    --------
    Flatten, unflatten

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Unflatten(1, (3, 4))(gs.zeros(2, 12)).shape
    gradscope.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}\n"
                "One of them may be -1."
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the unflattened input."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
