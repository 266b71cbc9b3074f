"""Pooling: what windows come to."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.execution.inplace_and_out import into
from ...runtime.ops.families import PUBLIC
from ...runtime.ops.nn.pooling import avg_pool, max_pool
from ...runtime.tensor.tensor import Tensor

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


avg_pool1d = PUBLIC["avg_pool1d"]


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of signals, see :func:`max_pool2d`.

    See Also
    --------
    nn.MaxPool1d, avg_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.max_pool1d(gs.tensor([[1.0, 2.0, 3.0, 5.0]]), 2)
    tensor([[2., 5.]])
    """
    found = max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)
    return found if return_indices else found[0]


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of images.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size, stride, padding, dilation : int or pair
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    return_indices : bool
        Return also where in the flat image each element was.

    See Also
    --------
    nn.MaxPool2d, avg_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.max_pool2d(gs.arange(16.0).view(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    found = max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)
    return found if return_indices else found[0]


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of volumes, see :func:`max_pool2d`.

    See Also
    --------
    nn.MaxPool3d, avg_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.max_pool3d(gs.ones(1, 3, 4, 4, 4), 2).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """
    found = max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)
    return found if return_indices else found[0]


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean of each window of images.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
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
    nn.AvgPool2d, max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.avg_pool2d(gs.ones(1, 3, 4, 4), 2).shape
    gradscope.Size([1, 3, 2, 2])
    """
    settings = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    if out is not None:
        return into(out, "avg_pool2d", [input], lambda: avg_pool(2, input, *settings))
    return avg_pool(2, input, *settings)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean of each window of volumes, see :func:`avg_pool2d`.

    See Also
    --------
    nn.AvgPool3d, max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.avg_pool3d(gs.ones(1, 3, 4, 4, 4), 2).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """
    settings = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    if out is not None:
        return into(out, "avg_pool3d", [input], lambda: avg_pool(3, input, *settings))
    return avg_pool(3, input, *settings)
