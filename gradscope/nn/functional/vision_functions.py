"""Functions of images: interpolation, rearranged pixels, windows as columns, sampling along a grid, and their norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index as whole
from typing import Any

from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.families import PUBLIC
from ...runtime.ops.nn.adaptive_pooling import adaptive_avg_pool, adaptive_avg_pool1d
from ...runtime.ops.nn.convolution import several
from ...runtime.ops.nn.instance_norm import instance_norm as _instance_norm
from ...runtime.ops.nn.pooling import avg_pool
from ...runtime.ops.vision.grid_sample import grid_sampler
from ...runtime.tensor.overrides import overridable
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "fold",
    "grid_sample",
    "instance_norm",
    "interpolate",
    "local_response_norm",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

pixel_shuffle = PUBLIC["pixel_shuffle"]
pixel_unshuffle = PUBLIC["pixel_unshuffle"]
channel_shuffle = PUBLIC["channel_shuffle"]

# --- interpolation ----------------------------------------------------------------------------------------------------

_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
_ALIGNED = ("linear", "bilinear", "bicubic", "trilinear", "lanczos")
_INTERPOLATIONS = {
    **{("nearest", d + 2): f"upsample_nearest{d}d" for d in (1, 2, 3)},
    **{("nearest-exact", d + 2): f"_upsample_nearest_exact{d}d" for d in (1, 2, 3)},
    ("linear", 3): "upsample_linear1d",
    ("bilinear", 4): "upsample_bilinear2d",
    ("trilinear", 5): "upsample_trilinear3d",
    ("bicubic", 4): "upsample_bicubic2d",
    ("lanczos", 4): "_upsample_lanczos2d_aa",
}


def _check_mode(mode: str, align_corners: bool | None, antialias: bool, ndim: int) -> None:
    if mode not in _ALIGNED and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias and (mode not in ("bilinear", "bicubic", "lanczos") or ndim != 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode in _LINEAR and ndim in (3, 4, 5) and ndim != _LINEAR[mode]:
        raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_LINEAR[mode]}D input")
    if (mode, ndim) not in _INTERPOLATIONS and not (mode == "area" and ndim in (3, 4, 5)):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: nearest | linear | "
            f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )


def _one_each(value: Any, spatial: Sequence[int], what: str, form: str) -> tuple[Any, ...]:
    """Return one size or factor for each dimension of space."""
    if not isinstance(value, (list, tuple)):
        return (value,) * len(spatial)
    if len(value) != len(spatial):
        names = ("output size of", "size", "o") if what == "size" else ("scale_factor of shape", "scale_factor", "s")
        first = "output" if what == "size" else "scale_factor"
        raise ValueError(
            f"Input and {first} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(spatial)} and {names[0]} {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
            f"and {form} in ({names[2]}1, {names[2]}2, ...,{names[2]}K) format."
        )
    return tuple(value)


def _output_size(
    spatial: Sequence[int], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the output's size, and the factors that decide where each output reads (None: the sizes do)."""
    nothing = (None,) * len(spatial)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        sizes = _one_each(size, spatial, "size", "output size")
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(_whole(s) for s in sizes), nothing
    scales = tuple(float(s) for s in _one_each(scale_factor, spatial, "scale_factor", "scale_factor"))
    sizes = tuple(math.floor(n * s) for n, s in zip(spatial, scales, strict=True))
    return sizes, nothing if recompute else scales


def _whole(size: Any) -> int:
    if hasattr(size, "__index__") or hasattr(size, "_array"):
        return int(size)
    raise TypeError(f"interpolate(): a size must be an int, not {type(size).__name__}\nGive scale_factor for a ratio.")


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Bring signals, images or volumes to another size.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
    size : int or sequence of int
        Of the output; or `scale_factor`.
    mode : str
        ``"nearest"``, ``"nearest-exact"``, ``"area"``; ``"linear"`` (signals), ``"bilinear"``, ``"bicubic"``,
        ``"lanczos"`` (images), ``"trilinear"`` (volumes).
    align_corners : bool
        The centres of the corner elements coincide, not the corners of the whole.
    recompute_scale_factor : bool
        Read where the sizes say, which may be rounded, not where `scale_factor` says.
    antialias : bool
        Widen the kernel where the image shrinks (``"bilinear"``, ``"bicubic"``, ``"lanczos"``).

    Raises
    ------
    ValueError
        If neither or both of `size` and `scale_factor` are given, or options do not fit the mode.
    NotImplementedError
        If the mode does not fit the number of dimensions.

    See Also
    --------
    nn.Upsample, grid_sample

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.interpolate(gs.tensor([[[0.0, 1.0]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]])
    """
    ndim, spatial = input.dim(), tuple(input.shape[2:])
    if mode not in _ALIGNED and align_corners is not None:
        _check_mode(mode, align_corners, antialias, ndim)
    sizes, scales = _output_size(spatial, size, scale_factor, recompute_scale_factor)
    _check_mode(mode, align_corners, antialias, ndim)
    if mode == "area":
        return adaptive_avg_pool1d(input, sizes) if ndim == 3 else adaptive_avg_pool(ndim - 2, input, sizes)
    name = _INTERPOLATIONS[mode, ndim]
    if antialias and mode != "lanczos":
        name = f"_{name}_aa"
    options = () if mode.startswith("nearest") else (bool(align_corners),)
    return OPERATORS[name].function(input, sizes, *options, *scales)


def _deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Bring the input to another size: the older name of :func:`interpolate`.

    See Also
    --------
    interpolate : describes the arguments, and does not warn.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gs.nn.functional.upsample(gs.tensor([[[0.0, 1.0]]]), size=4)
    tensor([[[0., 0., 1., 1.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Bring the input to another size, nearest neighbours: an older name of :func:`interpolate`.

    See Also
    --------
    interpolate : describes the arguments, and does not warn.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gs.nn.functional.upsample_nearest(gs.tensor([[[0.0, 1.0]]]), scale_factor=2)
    tensor([[[0., 0., 1., 1.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Bring images to another size, bilinear with corners aligned: an older name of :func:`interpolate`.

    See Also
    --------
    interpolate : describes the arguments, and does not warn.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gs.nn.functional.upsample_bilinear(gs.tensor([[[[0.0, 1.0], [2.0, 3.0]]]]), size=(2, 3))
    tensor([[[[0.0000, 0.5000, 1.0000],
              [2.0000, 2.5000, 3.0000]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


# --- windows as columns -----------------------------------------------------------------------------------------------


def _pair(value: Any, name: str) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)) and len(value) not in (1, 2):
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return several(value, 2, name)


@overridable
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the windows of images as columns.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size, dilation, padding, stride : int or pair
        Of the windows, as of a convolution: one number, or one for the height and one for the width.

    Returns
    -------
    Tensor
        Of shape (N, C * kernel_height * kernel_width, number of windows).

    See Also
    --------
    nn.Unfold, fold, Tensor.unfold

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.unfold(gs.arange(9.0).view(1, 1, 3, 3), 2)[0]
    tensor([[0., 1., 3., 4.],
            [1., 2., 4., 5.],
            [3., 4., 6., 7.],
            [4., 5., 7., 8.]])
    """
    pairs = [_pair(v, n) for v, n in ((kernel_size, "kernel_size"), (dilation, "dilation"))]
    pairs += [_pair(v, n) for v, n in ((padding, "padding"), (stride, "stride"))]
    return OPERATORS["im2col"].function(input, *pairs)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Add up columns to images, each where its window is: the adjoint of :func:`unfold`.

    See Also
    --------
    nn.Fold, unfold

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.fold(gs.ones(1, 4, 4), (3, 3), kernel_size=2)[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """
    pairs = [_pair(v, n) for v, n in ((output_size, "output_size"), (kernel_size, "kernel_size"))]
    pairs += [_pair(v, n) for v, n in ((dilation, "dilation"), (padding, "padding"), (stride, "stride"))]
    return OPERATORS["col2im"].function(input, *pairs)


# --- grids ------------------------------------------------------------------------------------------------------------

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read images or volumes at the places that a grid names.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (N, C, D, H, W).
    grid : Tensor
        Of shape (N, out_height, out_width, 2), places (x, y) in [-1, 1]; for volumes (N, D, H, W, 3), (x, y, z).
    mode : str
        ``"bilinear"`` (trilinear in volumes), ``"nearest"`` or, for images, ``"bicubic"``.
    padding_mode : str
        What is outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
    align_corners : bool
        -1 and 1 are the centres of the corner elements, not the corners of the whole; False unless given.

    References
    ----------
    M. Jaderberg et al., "Spatial transformer networks", NeurIPS 2015.

    See Also
    --------
    affine_grid, interpolate

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.grid_sample(gs.arange(4.0).view(1, 1, 2, 2), gs.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[1.5000]]]])
    """
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        _warn_of_corners()
    return grid_sampler(input, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners))


def _warn_of_corners() -> None:
    warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
        "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
        "details.",
    )


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid by which :func:`grid_sample` transforms images or volumes of the given size.

    Parameters
    ----------
    theta : Tensor
        Affine maps, of shape (N, 2, 3), or (N, 3, 4) for volumes.
    size : sequence of int
        (N, C, H, W) or (N, C, D, H, W) of the output.
    align_corners : bool
        As of :func:`grid_sample`.

    See Also
    --------
    grid_sample

    Examples
    --------
    >>> import gradscope as gs
    >>> theta = gs.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> gs.nn.functional.affine_grid(theta, (1, 1, 2, 2), align_corners=True).shape
    gradscope.Size([1, 2, 2, 2])
    """
    size = tuple(map(whole, size))
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{_written(size)}."
        )
    spatial = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (spatial, spatial + 1):
        raise ValueError(
            f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} for size "
            f"{_written(size)}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {_written(size)}")
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
        )
    if align_corners is None:
        _warn_of_corners()
    return PUBLIC["affine_grid_generator"](theta, size, bool(align_corners))


def _written(size: Sequence[int]) -> str:
    return f"({', '.join(map(str, size))})"


# --- norms ------------------------------------------------------------------------------------------------------------


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each example to mean 0 and variance 1; then scale and shift.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, ...).
    running_mean, running_var : Tensor, optional
        Statistics of the channels, averaged over the examples; used if not `use_input_stats`, else written.
    weight, bias : Tensor, optional
        Scale and shift of each channel.
    momentum : float
        Weight of the batch in the running statistics.
    eps : float
        Added to the variance.

    References
    ----------
    D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization: the missing ingredient for fast stylization", 2016.

    See Also
    --------
    nn.InstanceNorm2d, batch_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.instance_norm(gs.tensor([[[0.0, 2.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    shape = input.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {shape}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide by a power of the mean square over `size` neighbouring channels.

    References
    ----------
    A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with deep convolutional neural networks",
    NeurIPS 2012, section 3.3.

    See Also
    --------
    nn.LocalResponseNorm, batch_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.local_response_norm(gs.ones(1, 3, 2), 2).shape
    gradscope.Size([1, 3, 2])
    """
    ndim, shape = input.dim(), tuple(input.shape)
    if ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {ndim} dimensions)\n"
            "Its shape is (N, C, ...)."
        )
    if not input.numel():
        return input
    squares = (input * input).unsqueeze(1)
    pad = OPERATORS["constant_pad_nd"].function
    if ndim == 3:
        padded = pad(squares, (0, 0, size // 2, (size - 1) // 2))
        mean = avg_pool(2, padded, (size, 1), 1).squeeze(1)
    else:
        volumes = squares.view(shape[0], 1, shape[1], shape[2], -1)
        padded = pad(volumes, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = avg_pool(3, padded, (size, 1, 1), 1).squeeze(1).view(shape)
    return input / (mean * alpha + k).pow(beta)
