"""Convolutions as modules."""

from __future__ import annotations

import math
from operator import index as whole
from typing import Any

from ...runtime.ops.nn.convolution import several
from ...runtime.tensor.creation import empty
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """Base of convolutions of any number of dimensions."""

    spatial: int
    transposed = False
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _PADDING_MODES:
            modes = "{" + str(_PADDING_MODES)[1:-1] + "}"
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of ['same', 'valid']")
        count = self.spatial
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = several(kernel_size, count, "kernel_size")
        self.stride = several(stride, count, "stride")
        self.padding = padding if isinstance(padding, str) else several(padding, count, "padding")
        self.dilation = several(dilation, count, "dilation")
        self.output_padding = several(output_padding, count, "output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self._reversed_padding_repeated_twice = self._pads()
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _pads(self) -> list[int]:
        """Return the padding as :func:`~.functional.pad` takes it, for the modes that pad with other than zeros."""
        if self.padding == "valid":
            return [0] * (2 * self.spatial)
        if not isinstance(self.padding, str):
            return [size for size in reversed(self.padding) for _ in range(2)]
        totals = [d * (k - 1) for d, k in zip(reversed(self.dilation), reversed(self.kernel_size))]
        return [size for total in totals for size in (total // 2, total - total // 2)]

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if isinstance(self.padding, str) or any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Forward(_Convolution):
    def forward(self, input: Tensor) -> Tensor:
        """Return the convolved input."""
        function = getattr(F, f"conv{self.spatial}d")
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            return function(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1d(_Forward):
    """Convolution of signals (N, C, L), see :class:`Conv2d`.

    See Also
    --------
    Conv2d, Conv3d, ConvTranspose1d, nn.functional.conv1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Conv1d(2, 4, kernel_size=3)(gs.randn(1, 2, 10)).shape
    gradscope.Size([1, 4, 8])
    """

    spatial = 1


class Conv2d(_Forward):
    """Convolution of images (N, C, H, W).

    Parameters
    ----------
    kernel_size, stride, dilation : int or pair
        Size of the kernel, step between its places, step between its elements: one number, or one for the height and
        one for the width.
    padding : int, pair, "valid" or "same"
        How many elements are added at each side; "same" adds what keeps the size (at stride 1), "valid" none.
    groups : int
        Channels are split into so many groups, convolved apart.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}

    See Also
    --------
    Conv1d, Conv3d, ConvTranspose2d, nn.functional.conv2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Conv2d(1, 4, 3, padding=1)(gs.ones(2, 1, 8, 8)).shape
    gradscope.Size([2, 4, 8, 8])
    """

    spatial = 2


class Conv3d(_Forward):
    """Convolution of volumes (N, C, D, H, W), see :class:`Conv2d`.

    See Also
    --------
    Conv1d, Conv2d, ConvTranspose3d, nn.functional.conv3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Conv3d(1, 2, kernel_size=3, padding=1)(gs.randn(1, 1, 4, 4, 4)).shape
    gradscope.Size([1, 2, 4, 4, 4])
    """

    spatial = 3


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
            output_padding,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Return the adjoint of a convolution, applied to the input; several sizes may fit, one can be asked for."""
        function = getattr(F, f"conv_transpose{self.spatial}d")
        extra = self.output_padding if output_size is None else self._padding_for(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _padding_for(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """Return the output padding that leads to a size."""
        count, ndim = self.spatial, input.dim()
        size = tuple(map(whole, output_size))
        if len(size) == ndim and len(size) != count:
            size = size[-count:]
        if len(size) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {ndim}D input, output_size must have {count} or {ndim} elements (got "
                f"{len(size)})"
            )
        shape = tuple(input.shape[-count:])
        edges = several(self.padding, count, "padding")
        settings = zip(shape, self.stride, edges, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in settings]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for n, low, high in zip(size, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {size}, but valid sizes range from {least} to {most} (for an input of "
                f"gradscope.Size({list(input.shape[2:])}))"
            )
        return tuple(n - low for n, low in zip(size, least, strict=True))


class ConvTranspose1d(_Transposed):
    """The adjoint of a convolution of signals, see :class:`ConvTranspose2d`.

    See Also
    --------
    Conv1d, nn.functional.conv_transpose1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ConvTranspose1d(2, 4, kernel_size=3, stride=2)(gs.randn(1, 2, 5)).shape
    gradscope.Size([1, 4, 11])
    """

    spatial = 1


class ConvTranspose2d(_Transposed):
    """The adjoint of a convolution of images.

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or pair
        Of the convolution.
    output_padding : int or pair
        Added to the size of the output.

    See Also
    --------
    Conv2d, nn.functional.conv_transpose2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ConvTranspose2d(2, 4, kernel_size=2, stride=2)(gs.randn(1, 2, 5, 5)).shape
    gradscope.Size([1, 4, 10, 10])
    """

    spatial = 2


class ConvTranspose3d(_Transposed):
    """The adjoint of a convolution of volumes, see :class:`ConvTranspose2d`.

    See Also
    --------
    Conv3d, nn.functional.conv_transpose3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ConvTranspose3d(1, 2, kernel_size=2, stride=2)(gs.randn(1, 1, 3, 3, 3)).shape
    gradscope.Size([1, 2, 6, 6, 6])
    """

    spatial = 3
