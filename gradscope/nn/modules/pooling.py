"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.nn.convolution import several
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


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
    """The largest element of each window of signals; parameters as of :class:`MaxPool2d`.

    See Also
    --------
    AvgPool1d, nn.functional.max_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MaxPool1d(2)(gs.tensor([[1.0, 2.0, 3.0, 5.0]]))
    tensor([[2., 5.]])
    """

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

    See Also
    --------
    AvgPool2d, nn.functional.max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MaxPool2d(2)(gs.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.max_pool2d(input, *self._settings())


class MaxPool3d(_MaxPool):
    """The largest element of each window of volumes; parameters as of :class:`MaxPool2d`.

    See Also
    --------
    AvgPool3d, nn.functional.max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MaxPool3d(2)(gs.ones(1, 3, 4, 4, 4)).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """

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
    """The mean of each window of signals; parameters as of :class:`AvgPool2d`.

    See Also
    --------
    MaxPool1d, nn.functional.avg_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AvgPool1d(2)(gs.tensor([[1.0, 2.0, 3.0, 5.0]]))
    tensor([[1.5000, 4.0000]])
    """

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

    See Also
    --------
    MaxPool2d, nn.functional.avg_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AvgPool2d(2)(gs.ones(1, 3, 4, 4)).shape
    gradscope.Size([1, 3, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.avg_pool2d(input, *self._settings())


class AvgPool3d(_AvgPoolOverridden):
    """The mean of each window of volumes; parameters as of :class:`AvgPool2d`.

    See Also
    --------
    MaxPool3d, nn.functional.avg_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AvgPool3d(2)(gs.ones(1, 3, 4, 4, 4)).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.avg_pool3d(input, *self._settings())


class _AdaptiveAvgPool(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of windows of signals, so chosen that the output has a given length.

    See Also
    --------
    AdaptiveMaxPool1d, nn.functional.adaptive_avg_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveAvgPool1d(2)(gs.tensor([[1.0, 2.0, 3.0, 5.0]]))
    tensor([[1.5000, 4.0000]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of windows of images, so chosen that the output has a given size.

    Parameters
    ----------
    output_size : int, None, or pair of them
        None keeps the input's size.

    See Also
    --------
    AdaptiveMaxPool2d, nn.functional.adaptive_avg_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveAvgPool2d((1, 2))(gs.ones(1, 3, 4, 4)).shape
    gradscope.Size([1, 3, 1, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of windows of volumes, so chosen that the output has a given size.

    See Also
    --------
    AdaptiveMaxPool3d, nn.functional.adaptive_avg_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveAvgPool3d(2)(gs.ones(1, 3, 4, 4, 4)).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPool(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of windows of signals, so chosen that the output has a given length.

    See Also
    --------
    AdaptiveAvgPool1d, nn.functional.adaptive_max_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveMaxPool1d(2)(gs.tensor([[1.0, 2.0, 3.0, 5.0]]))
    tensor([[2., 5.]])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of windows of images, so chosen that the output has a given size.

    Parameters
    ----------
    output_size : int, None, or pair of them
        None keeps the input's size.
    return_indices : bool
        Return also where each element was.

    See Also
    --------
    AdaptiveAvgPool2d, nn.functional.adaptive_max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveMaxPool2d((1, 2))(gs.ones(1, 3, 4, 4)).shape
    gradscope.Size([1, 3, 1, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of windows of volumes, so chosen that the output has a given size.

    See Also
    --------
    AdaptiveAvgPool3d, nn.functional.adaptive_max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AdaptiveMaxPool3d(2)(gs.ones(1, 3, 4, 4, 4)).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _MaxUnpool(Module):
    spatial: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self.spatial, "kernel_size")
        self.stride = self.kernel_size if stride is None else several(stride, self.spatial, "stride")
        self.padding = several(padding, self.spatial, "padding")

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return zeros with the maxima where they were."""
        function = getattr(F, f"max_unpool{self.spatial}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts the maxima of signals back where they were; parameters as of :class:`MaxUnpool2d`.

    See Also
    --------
    MaxPool1d, nn.functional.max_unpool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MaxUnpool1d(2)(*gs.nn.MaxPool1d(2, return_indices=True)(gs.tensor([[1.0, 2.0, 5.0, 3.0]])))
    tensor([[0., 2., 5., 0.]])
    """

    spatial = 1


class MaxUnpool2d(_MaxUnpool):
    """Puts the maxima of images back where they were, with zeros elsewhere.

    Parameters
    ----------
    kernel_size, stride, padding : int or pair
        Those of the pooling, which was called with ``return_indices=True``.

    See Also
    --------
    MaxPool2d, nn.functional.max_unpool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MaxUnpool2d(2)(*gs.nn.MaxPool2d(2, return_indices=True)(gs.ones(1, 1, 4, 4))).shape
    gradscope.Size([1, 1, 4, 4])
    """

    spatial = 2


class MaxUnpool3d(_MaxUnpool):
    """Puts the maxima of volumes back where they were; parameters as of :class:`MaxUnpool2d`.

    See Also
    --------
    MaxPool3d, nn.functional.max_unpool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.MaxUnpool3d(2)(*gs.nn.MaxPool3d(2, return_indices=True)(gs.ones(1, 1, 4, 4, 4))).shape
    gradscope.Size([1, 1, 4, 4, 4])
    """

    spatial = 3


class _LPPool(Module):
    spatial: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the pooled input."""
        function = getattr(F, f"lp_pool{self.spatial}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The p-th root of the sum of p-th powers over each window of signals.

    See Also
    --------
    AvgPool1d, nn.functional.lp_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LPPool1d(2, kernel_size=2)(gs.tensor([[3.0, 4.0, 0.0, 1.0]]))
    tensor([[5., 1.]])
    """

    spatial = 1


class LPPool2d(_LPPool):
    """The p-th root of the sum of p-th powers over each window of images.

    Parameters
    ----------
    norm_type : float
        p.
    kernel_size, stride : int or pair
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.

    See Also
    --------
    AvgPool2d, nn.functional.lp_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LPPool2d(2, kernel_size=2)(gs.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """

    spatial = 2


class LPPool3d(_LPPool):
    """The p-th root of the sum of p-th powers over each window of volumes.

    See Also
    --------
    AvgPool3d, nn.functional.lp_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LPPool3d(2, kernel_size=2)(gs.ones(1, 1, 4, 4, 4)).shape
    gradscope.Size([1, 1, 2, 2, 2])
    """

    spatial = 3


class _FractionalMaxPool(Module):
    spatial: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        ratios = (output_ratio,) * self.spatial if isinstance(output_ratio, float) else output_ratio
        if ratios is not None and not all(0 < r < 1 for r in ratios):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.kernel_size = several(kernel_size, self.spatial, "kernel_size")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else several(output_size, self.spatial, "output_size")
        self.output_ratio = ratios

    def forward(self, input: Tensor) -> Any:
        """Return the pooled input."""
        function = getattr(F, f"fractional_max_pool{self.spatial}d")
        samples = self._buffers["_random_samples"]
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows of images, at steps of random length.

    Parameters
    ----------
    kernel_size : int or pair
        Height and width of a window; one number for both.
    output_size : int or pair
        Height and width of the output; or
    output_ratio : float or pair
        its ratio to the input, between 0 and 1.
    return_indices : bool
        Return also where each element was.

    References
    ----------
    B. Graham, "Fractional max-pooling", 2014.

    See Also
    --------
    MaxPool2d, nn.functional.fractional_max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.FractionalMaxPool2d(2, output_size=3)(gs.randn(1, 2, 5, 5)).shape
    gradscope.Size([1, 2, 3, 3])
    """

    spatial = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows of volumes, at steps of random length; parameters as for images.

    See Also
    --------
    MaxPool3d, nn.functional.fractional_max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.FractionalMaxPool3d(2, output_size=3)(gs.randn(1, 2, 5, 5, 5)).shape
    gradscope.Size([1, 2, 3, 3, 3])
    """

    spatial = 3
