"""Pixels between space and channels, as modules."""

from __future__ import annotations

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Turn (*, C r r, H, W) into (*, C, H r, W r).

    Parameters
    ----------
    upscale_factor : int
        r.

    References
    ----------
    W. Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel convolutional
    neural network", CVPR 2016.

    See Also
    --------
    PixelUnshuffle, nn.functional.pixel_shuffle

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.PixelShuffle(2)(gs.arange(4.0).view(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the rearranged input."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Turn (*, C, H r, W r) into (*, C r r, H, W), the inverse of :class:`PixelShuffle`.

    See Also
    --------
    PixelShuffle, nn.functional.pixel_unshuffle

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.PixelUnshuffle(2)(gs.zeros(1, 1, 4, 4)).shape
    gradscope.Size([1, 4, 2, 2])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the rearranged input."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"downscale_factor={self.downscale_factor}"
