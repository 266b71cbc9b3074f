"""Batch normalisation as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.memory import dtype as dtypes
from ...runtime.modes import no_grad
from ...runtime.tensor.creation import ones, tensor, zeros
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .module import Module
from .normalization import ScaleAndShift

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class NormBase(ScaleAndShift):
    """Base of normalisations with running statistics: parameters, buffers, how they start and are shown."""

    _version = 2
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._register_scale_and_shift((num_features,), affine, bias, device, dtype)
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=dtypes.int64, device=device) if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Put the running statistics back to mean 0 and variance 1."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)  # type: ignore[arg-type]
            init.ones_(self.running_var)  # type: ignore[arg-type]
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Put scale and shift back to 1 and 0, and the running statistics too."""
        self.reset_running_stats()
        super().reset_parameters()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        key = prefix + "num_batches_tracked"
        # Version 2 added the count.
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = tensor(0, dtype=dtypes.int64) if count is None else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(NormBase):
    """Base of batch normalisation of any number of dimensions."""

    dimensions: tuple[int, ...]

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        update = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if update else None,
            self.running_var if update else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.dimensions:
            expected = " or ".join(f"{d}D" for d in self.dimensions)
            raise ValueError(
                f"expected {expected} input (got {input.ndim}D input)\n"
                f"Its shape is {list(input.shape)}; the first dimension is the batch, the second the channels."
            )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L), with running statistics for evaluation.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        Weight of the batch in the running statistics; None for a plain average.
    affine : bool
        Learn a scale and a shift for each channel.
    track_running_stats : bool
        Keep running statistics; without, evaluation takes those of the batch.
    bias : bool
        Learn a shift, if `affine`.

    See Also
    --------
    BatchNorm2d, BatchNorm3d, InstanceNorm1d, nn.functional.batch_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.BatchNorm1d(2)(gs.tensor([[0.0, 1.0], [2.0, 5.0]])).detach()
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """

    dimensions = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (N, C, H, W); parameters as of :class:`BatchNorm1d`.

    See Also
    --------
    BatchNorm1d, BatchNorm3d, InstanceNorm2d, nn.functional.batch_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.BatchNorm2d(3)(gs.randn(2, 3, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4])
    """

    dimensions = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W); parameters as of :class:`BatchNorm1d`.

    See Also
    --------
    BatchNorm1d, BatchNorm2d, InstanceNorm3d, nn.functional.batch_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.BatchNorm3d(3)(gs.randn(2, 3, 4, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4, 4])
    """

    dimensions = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of any number of dimensions, over the batches of all processes.

    There are no process groups here: as in PyTorch where none is initialised, the statistics are those of the batch of
    this process.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, bias
        As of :class:`BatchNorm1d`.
    process_group : None
        The processes that share their statistics.

    Raises
    ------
    NotImplementedError
        If a process group is given.

    See Also
    --------
    BatchNorm2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.SyncBatchNorm(2)(gs.randn(4, 2)).shape
    gradscope.Size([4, 2])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if process_group is not None:
            raise NotImplementedError(
                f"SyncBatchNorm(process_group={process_group!r}): there are no process groups here\n"
                "Leave it out: the statistics are those of the batch of this process, as of BatchNorm."
            )
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = None

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(
                f"expected at least 2D input (got {input.ndim}D input)\n"
                f"Its shape is {list(input.shape)}; the first dimension is the batch, the second the channels."
            )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return `module` with a :class:`SyncBatchNorm` in the place of each batch normalisation in it.

        They share parameters and buffers with those they replace.
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
