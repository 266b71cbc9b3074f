"""Windows as columns, as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Unfold(Module):
    """The windows of images as columns: (N, C, H, W) becomes (N, C * kernel_height * kernel_width, windows).

    Parameters
    ----------
    kernel_size, dilation, padding, stride : int or pair
        Of the windows, as of a convolution: one number, or one for the height and one for the width.

    See Also
    --------
    Fold, Conv2d, nn.functional.unfold

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Unfold(kernel_size=2)(gs.arange(9.0).view(1, 1, 3, 3))[0]
    tensor([[0., 1., 3., 4.],
            [1., 2., 4., 5.],
            [3., 4., 6., 7.],
            [4., 5., 7., 8.]])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Add up columns to images, each where its window is: the adjoint of :class:`Unfold`.

    Parameters
    ----------
    output_size : int or pair
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or pair
        Of the windows, as of a convolution: one number, or one for the height and one for the width.

    See Also
    --------
    Unfold, nn.functional.fold

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Fold((3, 3), kernel_size=2)(gs.ones(1, 4, 4))[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the images."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"output_size={self.output_size}, {super().extra_repr()}"
