"""Instance normalisation as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn
from .. import functional as F
from .batchnorm import NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(NormBase):
    """Base of instance normalisation of any number of dimensions."""

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

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        keys = [prefix + name for name in ("running_mean", "running_var")]
        found = [key for key in keys if key in state_dict]
        # Versions have been written since the statistics are not kept by default.
        if local_metadata.get("version") is None and not self.track_running_stats and found:
            names, kind = " and ".join(f'"{key}"' for key in found), type(self).__name__
            error_msgs.append(
                f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict "
                f"is a checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats "
                "by default since 0.4.0. Please remove these keys from state_dict. If the running stats are actually "
                f"needed, instead set track_running_stats=True in {kind} to enable them. See the documentation of "
                f"{kind} for details."
            )
            for key in found:
                del state_dict[key]
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

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
        warn(
            f"input's size at dim={axis} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each signal (N, C, L) or (C, L); parameters as of :class:`InstanceNorm2d`.

    See Also
    --------
    BatchNorm1d, GroupNorm, nn.functional.instance_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.InstanceNorm1d(1)(gs.tensor([[[0.0, 2.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

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

    See Also
    --------
    BatchNorm2d, GroupNorm, nn.functional.instance_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.InstanceNorm2d(3)(gs.randn(2, 3, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4])
    """

    spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume (N, C, D, H, W) or (C, D, H, W), as :class:`InstanceNorm2d` does.

    See Also
    --------
    BatchNorm3d, GroupNorm, nn.functional.instance_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.InstanceNorm3d(3)(gs.randn(2, 3, 4, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4, 4])
    """

    spatial = 3
