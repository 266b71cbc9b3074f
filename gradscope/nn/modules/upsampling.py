"""Interpolation as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Bring signals, images or volumes to another size, see :func:`gradscope.nn.functional.interpolate`.

    Parameters
    ----------
    size : int or tuple of int
        Of the output; or `scale_factor`.
    mode : str
        ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"``, ...
    align_corners : bool
        The centres of the corner elements coincide, not the corners of the whole.
    recompute_scale_factor : bool
        Read where the sizes say, not where `scale_factor` says.

    See Also
    --------
    nn.functional.interpolate, ConvTranspose2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Upsample(scale_factor=2)(gs.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the input at another size."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        first = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Bring images to another size, each pixel that of its nearest neighbour.

    See Also
    --------
    Upsample, nn.functional.interpolate

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.UpsamplingNearest2d(scale_factor=2)(gs.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bring images to another size, linearly between neighbours, with the corners aligned.

    See Also
    --------
    Upsample, nn.functional.interpolate

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.UpsamplingBilinear2d(scale_factor=2)(gs.ones(1, 1, 2, 2)).shape
    gradscope.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
