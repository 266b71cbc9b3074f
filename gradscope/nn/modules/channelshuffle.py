"""Shuffling of channels as a module."""

from __future__ import annotations

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Divide channels into groups, and take one of each in turn: what lets grouped convolutions see all of them.

    References
    ----------
    X. Zhang, X. Zhou, M. Lin, J. Sun, "ShuffleNet", CVPR 2018.

    See Also
    --------
    PixelShuffle, nn.functional.channel_shuffle

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ChannelShuffle(2)(gs.arange(4.0).view(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return the shuffled input."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"groups={self.groups}"
