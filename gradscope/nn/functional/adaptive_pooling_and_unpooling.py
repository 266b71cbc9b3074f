"""Pooling as functions: adaptive, power means, random windows, and the way back from maxima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.ops.declaration.registry import METHODS, OPERATORS
from ...runtime.ops.families import PUBLIC
from ...runtime.ops.nn.adaptive_pooling import adaptive_avg_pool, adaptive_avg_pool1d, adaptive_max_pool
from ...runtime.ops.nn.convolution import several
from ...runtime.ops.nn.pooling import avg_pool, max_pool, window_sizes
from ...runtime.tensor.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

# --- maxima with their places -----------------------------------------------------------------------------------------


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window of signals, and where it was.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L).
    kernel_size, stride, padding, dilation : int
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    return_indices : bool
        Taken for PyTorch's sake; both are returned.

    See Also
    --------
    max_pool1d : the elements alone.
    max_unpool1d : the way back.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.max_pool1d_with_indices(gs.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window of images, and where in the flat image it was.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size, stride, padding, dilation : int or pair
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    return_indices : bool
        Taken for PyTorch's sake; both are returned.

    See Also
    --------
    max_pool2d : the elements alone.
    max_unpool2d : the way back.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.max_pool2d_with_indices(gs.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window of volumes, and where in the flat volume it was.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, D, H, W) or (C, D, H, W).
    kernel_size, stride, padding, dilation : int or triple
        The stride is the size of the window unless given.
    ceil_mode : bool
        Windows may reach beyond the end.
    return_indices : bool
        Taken for PyTorch's sake; both are returned.

    See Also
    --------
    max_pool3d : the elements alone.
    max_unpool3d : the way back.

    Examples
    --------
    >>> import gradscope as gs
    >>> values, places = gs.nn.functional.max_pool3d_with_indices(gs.arange(8.0).view(1, 2, 2, 2), 2)
    >>> values.item(), places.item()
    (7.0, 7)
    """
    return max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


# --- to a given size --------------------------------------------------------------------------------------------------


def _need_dimensions(input: Tensor, output_size: Any) -> None:
    if isinstance(output_size, (list, tuple)) and input.dim() <= len(output_size):
        raise ValueError(
            f"Input dimension should be at least {len(output_size) + 1}\n"
            f"Its shape is {list(input.shape)}; one dimension at least is that of the channels."
        )


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return means of windows of images, so chosen that the output has the given height and width.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    output_size : int, None, or pair of them
        None keeps the input's size.

    See Also
    --------
    nn.AdaptiveAvgPool2d, adaptive_max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_avg_pool2d(gs.ones(1, 3, 4, 4), (1, 2)).shape
    gradscope.Size([1, 3, 1, 2])
    """
    _need_dimensions(input, output_size)
    return adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return means of windows of volumes, see :func:`adaptive_avg_pool2d`.

    See Also
    --------
    nn.AdaptiveAvgPool3d, adaptive_max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_avg_pool3d(gs.ones(1, 3, 4, 4, 4), 2).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """
    _need_dimensions(input, output_size)
    return adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows of signals, and where they were.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L).
    output_size : int
        How many windows there are; they cover the signal.
    return_indices : bool
        Taken for PyTorch's sake; both are returned.

    See Also
    --------
    adaptive_max_pool1d : the elements alone.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_max_pool1d_with_indices(gs.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return PUBLIC["adaptive_max_pool1d"](input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows of signals, see :func:`adaptive_max_pool2d`.

    See Also
    --------
    nn.AdaptiveMaxPool1d, adaptive_avg_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_max_pool1d(gs.tensor([[1.0, 2.0, 3.0, 5.0]]), 2)
    tensor([[2., 5.]])
    """
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows of images, and where in the flat image they were.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    output_size : int or pair
        How many windows there are along each dimension, where None keeps its size; they cover the image.
    return_indices : bool
        Taken for PyTorch's sake; both are returned.

    See Also
    --------
    adaptive_max_pool2d : the elements alone.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_max_pool2d_with_indices(gs.arange(9.0).view(1, 3, 3), (1, 2))
    (tensor([[[7., 8.]]]), tensor([[[7, 8]]]))
    """
    _need_dimensions(input, output_size)
    return adaptive_max_pool(2, input, output_size)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows of images, so chosen that the output has the given height and width.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    output_size : int, None, or pair of them
        None keeps the input's size.
    return_indices : bool
        Return also where in the flat image each element was.

    See Also
    --------
    nn.AdaptiveMaxPool2d, adaptive_avg_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_max_pool2d(gs.ones(1, 3, 4, 4), (1, 2)).shape
    gradscope.Size([1, 3, 1, 2])
    """
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows of volumes, and where in the flat volume they were.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, D, H, W) or (C, D, H, W).
    output_size : int or triple
        How many windows there are along each dimension, where None keeps its size; they cover the volume.
    return_indices : bool
        Taken for PyTorch's sake; both are returned.

    See Also
    --------
    adaptive_max_pool3d : the elements alone.

    Examples
    --------
    >>> import gradscope as gs
    >>> values, places = gs.nn.functional.adaptive_max_pool3d_with_indices(gs.arange(8.0).view(1, 2, 2, 2), 1)
    >>> values.item(), places.item()
    (7.0, 7)
    """
    _need_dimensions(input, output_size)
    return adaptive_max_pool(3, input, output_size)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows of volumes, see :func:`adaptive_max_pool2d`.

    See Also
    --------
    nn.AdaptiveMaxPool3d, adaptive_avg_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_max_pool3d(gs.ones(1, 3, 4, 4, 4), 2).shape
    gradscope.Size([1, 3, 2, 2, 2])
    """
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


# --- power means ------------------------------------------------------------------------------------------------------


def _lp_pool(spatial: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    window = several(kernel_size, spatial, "kernel_size")
    count = 1
    for size in window:
        count *= size
    mean = avg_pool(spatial, input.pow(norm_type), window, stride, 0, ceil_mode)
    # The sign is for odd powers: their mean may be negative.
    return (mean.sign() * METHODS["relu"](mean.abs())).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return the p-th root of the sum of p-th powers over each window of signals.

    See Also
    --------
    nn.LPPool1d, avg_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.lp_pool1d(gs.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    tensor([[5., 1.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return the p-th root of the sum of p-th powers over each window of images.

    See Also
    --------
    nn.LPPool2d, avg_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.lp_pool2d(gs.ones(1, 1, 2, 2), 2, 2)
    tensor([[[[2.]]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return the p-th root of the sum of p-th powers over each window of volumes.

    See Also
    --------
    nn.LPPool3d, avg_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.lp_pool3d(gs.ones(1, 1, 4, 4, 4), 2, 2).shape
    gradscope.Size([1, 1, 2, 2, 2])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# --- random windows ---------------------------------------------------------------------------------------------------


def _fractional(
    spatial: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Tensor, Tensor]:
    if output_size is None and output_ratio is None:
        raise ValueError(f"fractional_max_pool{spatial}d requires specifying either an output_size or an output_ratio")
    shape = input.shape
    if output_size is None:
        ratios = (output_ratio,) * spatial if isinstance(output_ratio, float) else output_ratio
        output_size = [int(n * r) for n, r in zip(shape[-spatial:], ratios, strict=True)]
    if samples is None:
        batch = shape[0] if input.dim() == spatial + 2 else 1
        channels = shape[-spatial - 1]
        samples = PUBLIC["rand"](batch, channels, spatial, dtype=input.dtype, device=input.device)
    sizes = several(kernel_size, spatial, "kernel_size"), several(output_size, spatial, "output_size")
    values, indices = OPERATORS[f"fractional_max_pool{spatial}d"].function(input, *sizes, samples)
    return values, indices


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return what :func:`fractional_max_pool2d` does, and where in the flat image each element was.

    See Also
    --------
    fractional_max_pool2d : the elements alone, where its arguments are described.

    Examples
    --------
    >>> import gradscope as gs
    >>> images = gs.arange(25.0).view(1, 5, 5)
    >>> values, places = gs.nn.functional.fractional_max_pool2d_with_indices(images, 2, output_size=3)
    >>> values.shape, gs.equal(images.flatten()[places], values)
    (gradscope.Size([1, 3, 3]), True)
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest elements of windows of images, at steps of random length.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size : int or pair
        Height and width of a window; one number for both.
    output_size : int or pair
        Height and width of the output; or `output_ratio` of the input's, between 0 and 1.
    return_indices : bool
        Return also where in the flat image each element was.

    References
    ----------
    B. Graham, "Fractional max-pooling", 2014.

    See Also
    --------
    nn.FractionalMaxPool2d, max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.fractional_max_pool2d(gs.ones(1, 2, 5, 5), 2, output_size=3).shape
    gradscope.Size([1, 2, 3, 3])
    """
    found = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return what :func:`fractional_max_pool3d` does, and where in the flat volume each element was.

    See Also
    --------
    fractional_max_pool3d : the elements alone, where its arguments are described.

    Examples
    --------
    >>> import gradscope as gs
    >>> volumes = gs.arange(125.0).view(1, 5, 5, 5)
    >>> values, places = gs.nn.functional.fractional_max_pool3d_with_indices(volumes, 2, output_size=3)
    >>> values.shape, gs.equal(volumes.flatten()[places], values)
    (gradscope.Size([1, 3, 3, 3]), True)
    """
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest elements of windows of volumes, at steps of random length; see the form for images.

    See Also
    --------
    nn.FractionalMaxPool3d, max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.fractional_max_pool3d(gs.ones(1, 2, 5, 5, 5), 2, output_size=3).shape
    gradscope.Size([1, 2, 3, 3, 3])
    """
    found = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


# --- the way back -----------------------------------------------------------------------------------------------------


def _unpooled_size(
    shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], wanted: Any
) -> tuple[int, ...]:
    """Return the output's size: the smallest that pools to `shape`, or the wanted one if near that."""
    count = len(kernel)
    least = [(n - 1) * s - 2 * p + k for n, k, s, p in zip(shape[-count:], kernel, stride, padding, strict=True)]
    if wanted is None:
        return tuple(least)
    size = tuple(wanted)
    if len(size) == count + 2:
        size = size[2:]
    if len(size) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length of "
            f"'{len(size)}'"
        )
    for axis, (n, usual, step) in enumerate(zip(size, least, stride, strict=True)):
        if not usual - step < n < usual + step:
            raise ValueError(
                f'invalid output_size "{size}" (dim {axis} must be between {usual - step} and {usual + step})'
            )
    return size


def _unpool(
    spatial: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    kernel, steps, edges = window_sizes(spatial, kernel_size, stride, padding)
    size = _unpooled_size(input.shape, kernel, steps, edges, output_size)
    if spatial == 1:
        images = input.unsqueeze(-1), indices.unsqueeze(-1)
        return OPERATORS["max_unpool2d"].function(*images, (*size, 1)).squeeze(-1)
    more = (steps, edges) if spatial == 3 else ()
    return OPERATORS[f"max_unpool{spatial}d"].function(input, indices, size, *more)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put the maxima of signals back where they were, see :func:`max_unpool2d`.

    See Also
    --------
    nn.MaxUnpool1d, max_pool1d

    Examples
    --------
    >>> import gradscope as gs
    >>> pooled, places = gs.nn.functional.max_pool1d(gs.tensor([[[1.0, 2.0, 5.0, 3.0]]]), 2, return_indices=True)
    >>> gs.nn.functional.max_unpool1d(pooled, places, 2)
    tensor([[[0., 2., 5., 0.]]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put the maxima of images back where they were, with zeros elsewhere.

    Parameters
    ----------
    input, indices : Tensor
        What ``max_pool2d(..., return_indices=True)`` returned.
    kernel_size, stride, padding : int or pair
        Those of the pooling.
    output_size : sequence of int, optional
        Several sizes pool to one; the smallest is taken unless one is given.

    Raises
    ------
    RuntimeError
        If an index is outside the output.
    ValueError
        If no pooling leads from `output_size` to the input's size.

    See Also
    --------
    nn.MaxUnpool2d, max_pool2d

    Examples
    --------
    >>> import gradscope as gs
    >>> pooled, places = gs.nn.functional.max_pool2d(gs.ones(1, 1, 4, 4), 2, return_indices=True)
    >>> gs.nn.functional.max_unpool2d(pooled, places, 2).shape
    gradscope.Size([1, 1, 4, 4])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put the maxima of volumes back where they were, see :func:`max_unpool2d`.

    See Also
    --------
    nn.MaxUnpool3d, max_pool3d

    Examples
    --------
    >>> import gradscope as gs
    >>> pooled, places = gs.nn.functional.max_pool3d(gs.ones(1, 1, 4, 4, 4), 2, return_indices=True)
    >>> gs.nn.functional.max_unpool3d(pooled, places, 2).shape
    gradscope.Size([1, 1, 4, 4, 4])
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
