"""Normalisation of layers, groups of channels and root mean squares as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.creation import empty
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class ScaleAndShift(Module):
    """Base of normalisations that learn a scale, `weight`, and a shift, `bias`: None where they do not."""

    def _register_scale_and_shift(
        self, shape: tuple[int, ...], affine: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, learned in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(*shape, device=device, dtype=dtype)) if learned else None)

    def reset_parameters(self) -> None:
        """Put scale and shift back to 1 and 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(ScaleAndShift):
    """Normalise the last dimensions to mean 0 and variance 1; then scale and shift.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The shape of the last dimensions.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Learn a scale and a shift for each element.
    bias : bool
        Learn a shift, if `elementwise_affine`.

    See Also
    --------
    RMSNorm, GroupNorm, nn.functional.layer_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LayerNorm(3)(gs.tensor([1.0, 2.0, 3.0])).detach()
    tensor([-1.2247,  0.0000,  1.2247])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register_scale_and_shift(shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(ScaleAndShift):
    """Normalise groups of channels of each example to mean 0 and variance 1; then scale and shift each channel.

    Parameters
    ----------
    num_channels : int
        A multiple of `num_groups`.
    eps : float
        Added to the variance.
    affine : bool
        Learn a scale and a shift for each channel.
    bias : bool
        Learn a shift, if `affine`.

    See Also
    --------
    LayerNorm, InstanceNorm2d, nn.functional.group_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.GroupNorm(2, 4)(gs.randn(3, 4, 5)).shape
    gradscope.Size([3, 4, 5])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._register_scale_and_shift((num_channels,), affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root of the mean square of the last dimensions; then scale.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The shape of the last dimensions.
    eps : float, optional
        Added to the mean square; the smallest step of the dtype unless given.
    elementwise_affine : bool
        Learn a scale for each element.

    See Also
    --------
    LayerNorm, nn.functional.rms_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.RMSNorm(2)(gs.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(empty(*shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Put the scale back to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """Divide by a power of the mean square over neighbouring channels.

    Parameters
    ----------
    size : int
        How many channels.
    alpha, beta, k : float
        The divisor is ``(k + alpha * mean square) ** beta``.

    See Also
    --------
    BatchNorm2d, CrossMapLRN2d, nn.functional.local_response_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LocalResponseNorm(2)(gs.ones(1, 3, 2)).shape
    gradscope.Size([1, 3, 2])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Divide by a power of the mean square over neighbouring channels, as Torch did: use :class:`LocalResponseNorm`.

    Neighbours are the ``(size - 1) // 2`` channels on each side; as in PyTorch the first channel counts among those of
    all others. Gradients are the derivatives of what is computed, which PyTorch's are not.

    Parameters
    ----------
    size : int
        How many channels; the sum of squares is divided by it.
    alpha, beta, k : float
        The divisor is ``(k + alpha * mean square) ** beta``.

    See Also
    --------
    LocalResponseNorm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CrossMapLRN2d(3)(gs.ones(1, 4, 2, 2)).shape
    gradscope.Size([1, 4, 2, 2])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        if input.dim() != 4:
            raise ValueError(
                f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.\nIts shape is (N, C, H, W)."
            )
        squares = input * input
        reach = (self.size - 1) // 2
        sums = F.pad(squares, (0, 0, 0, 0, reach, reach)).unfold(1, 2 * reach + 1, 1).sum(-1)
        # Torch's running sum never drops the first channel.
        beyond = sums[:, reach + 1 :] + squares[:, :1]
        mean = PUBLIC["cat"]([sums[:, : reach + 1], beyond], 1) / self.size
        return input * (self.k + self.alpha * mean).pow(-self.beta)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
