"""Instance normalisation as modules."""

from __future__ import annotations

import warnings
from typing import Any

from ...runtime.tensor import Tensor
from .. import functional as F
from .batchnorm import NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(NormBase):
    """What instance normalisation of any number of dimensions shares."""

    spatial: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        ndim, alone = input.ndim, self.spatial + 1
        if ndim not in (alone, alone + 1):
            raise ValueError(f"expected {alone}D or {alone + 1}D input (got {ndim}D input)")
        self._check_channels(input, ndim - alone)
        result = F.instance_norm(
            input.unsqueeze(0) if ndim == alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if ndim == alone else result

    def _check_channels(self, input: Tensor, axis: int) -> None:
        channels = input.shape[axis]
        if channels == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={axis} to match num_features ({self.num_features}), but got: {channels}."
            )
        warnings.warn(
            f"input's size at dim={axis} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
            stacklevel=3,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each signal (N, C, L) or (C, L); parameters as of :class:`InstanceNorm2d`."""

    spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each image (N, C, H, W) or (C, H, W) to mean 0 and variance 1.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        Weight of the batch in the running statistics.
    affine : bool
        Learn a scale and a shift for each channel.
    track_running_stats : bool
        Keep running statistics for evaluation.
    bias : bool
        Learn a shift, if `affine`.
    """

    spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume (N, C, D, H, W) or (C, D, H, W), as :class:`InstanceNorm2d` does."""

    spatial = 3
