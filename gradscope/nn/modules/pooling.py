"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.convolution import several
from ...runtime.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"]


class _MaxPool(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _settings(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of signals; parameters as of :class:`MaxPool2d`."""

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.max_pool1d(input, *self._settings())


class MaxPool2d(_MaxPool):
    """The largest element of each window of images.

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or pair
        The stride is the size of the window unless given.
    return_indices : bool
        Return also where each element was.
    ceil_mode : bool
        Windows may reach beyond the end.
    """

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.max_pool2d(input, *self._settings())


class MaxPool3d(_MaxPool):
    """The largest element of each window of volumes; parameters as of :class:`MaxPool2d`."""

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.max_pool3d(input, *self._settings())


class _AvgPool(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window of signals; parameters as of :class:`AvgPool2d`."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        steps = kernel_size if stride is None else stride
        kernel, steps, padding = (several(v, 1, "kernel_size") for v in (kernel_size, steps, padding))
        super().__init__(kernel, steps, padding, ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOverridden(_AvgPool):
    """Average pooling of which the divisor may be given."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def _settings(self) -> tuple[Any, ...]:
        windows = self.kernel_size, self.stride, self.padding
        return (*windows, self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPoolOverridden):
    """The mean of each window of images.

    Parameters
    ----------
    kernel_size, stride, padding : int or pair
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    count_include_pad : bool
        Padding counts in the mean.
    divisor_override : int, optional
        Divide by this instead.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.avg_pool2d(input, *self._settings())


class AvgPool3d(_AvgPoolOverridden):
    """The mean of each window of volumes; parameters as of :class:`AvgPool2d`."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.avg_pool3d(input, *self._settings())


class AdaptiveAvgPool2d(Module):
    """Means of windows of images, so chosen that the output has a given size.

    Parameters
    ----------
    output_size : int, None, or pair of them
        None keeps the input's size.
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"output_size={self.output_size}"
