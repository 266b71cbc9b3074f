"""Images rearranged: pixels between space and channels, windows as columns."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..declaration.annotations import Array, Ints, Namespace, Sizes
from ..declaration.references import adjoint, columns
from ..declaration.registry import operator
from ..execution.array_errors import refuse_kinds
from ..nn.convolution import kernel_places, pad_array

# --- channels ---------------------------------------------------------------------------------------------------------


def _check_pixels(name: str, x: Array, which: str, factor: int) -> None:
    if x.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {which}, but got {factor}")


def _pixel_shuffle(xp: Namespace, self: Array, upscale_factor: int) -> Array:
    r = upscale_factor
    _check_pixels("pixel_shuffle", self, "upscale_factor", r)
    *lead, channels, height, width = self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n = len(lead)
    parts = self.reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return xp.array(parts.transpose(order), order="C").reshape(*lead, channels // (r * r), height * r, width * r)


def _pixel_unshuffle(xp: Namespace, self: Array, downscale_factor: int) -> Array:
    r = downscale_factor
    _check_pixels("pixel_unshuffle", self, "downscale_factor", r)
    *lead, channels, height, width = self.shape
    for what, axis, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but input.size({axis})={size} is "
                f"not divisible by {r}"
            )
    n = len(lead)
    parts = self.reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return xp.array(parts.transpose(order), order="C").reshape(*lead, channels * r * r, height // r, width // r)


def _pixel_shuffle_reference(self: Array, r: int) -> Array:
    *lead, channels, height, width = self.shape
    cells = self.reshape(*lead, channels // r**2, r, r, height, width)
    return numpy.einsum("...crshw->...chrws", cells).reshape(*lead, channels // r**2, height * r, width * r)


def _pixel_unshuffle_reference(self: Array, r: int) -> Array:
    *lead, channels, height, width = self.shape
    cells = self.reshape(*lead, channels, height // r, r, width // r, r)
    return numpy.einsum("...chrws->...crshw", cells).reshape(*lead, channels * r**2, height // r, width // r)


def _channel_shuffle_reference(self: Array, groups: int) -> Array:
    batch, channels, *rest = self.shape
    return self.reshape(batch, groups, channels // groups, *rest).swapaxes(1, 2).reshape(self.shape)


def _col2im_reference(self: Array, output_size: Sizes, kernel_size: Sizes, *window: Any) -> Array:
    channels = self.shape[-2] // (kernel_size[0] * kernel_size[1])
    size = (*self.shape[:-2], channels, *output_size)
    return adjoint(lambda x: columns(x, kernel_size, *window), size, self)


operator(
    "pixel_shuffle(Tensor self, int upscale_factor)",
    _pixel_shuffle,
    images=1,
    method=False,
    derivatives={"self": lambda g, upscale_factor, F: F.pixel_unshuffle(g, upscale_factor)},
    doc="Turn (*, C r r, H, W) into (*, C, H r, W r): channels become pixels.",
    samples=lambda make: [((make(2, 4, 2, 3), 2), {}), ((make(1, 2, 9, 1, 2), 3), {})],
    reference=_pixel_shuffle_reference,
)
operator(
    "pixel_unshuffle(Tensor self, int downscale_factor)",
    _pixel_unshuffle,
    images=1,
    method=False,
    derivatives={"self": lambda g, downscale_factor, F: F.pixel_shuffle(g, downscale_factor)},
    doc="Turn (*, C, H r, W r) into (*, C r r, H, W): pixels become channels.",
    samples=lambda make: [((make(2, 1, 4, 6), 2), {}), ((make(1, 2, 3, 6), 3), {})],
    reference=_pixel_unshuffle_reference,
)


def _channel_shuffle(xp: Namespace, self: Array, groups: int) -> Array:
    if self.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels, *rest = self.shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    parts = self.reshape(batch, groups, channels // groups, *rest)
    return xp.array(parts.swapaxes(1, 2), order="C").reshape(self.shape)


operator(
    "channel_shuffle(Tensor self, int groups)",
    _channel_shuffle,
    images=1,
    method=False,
    derivatives={"self": lambda g, self_shape, groups, F: F.channel_shuffle(g, self_shape[1] // groups)},
    doc="Split channels into groups and let the groups take turns.",
    samples=lambda make: [((make(2, 6, 3), 2), {}), ((make(1, 4, 2, 2), 4), {})],
    reference=_channel_shuffle_reference,
)


# --- windows as columns -----------------------------------------------------------------------------------------------


def _check_windows(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    for what, name, values in (
        ("kernel size", "kernel", kernel),
        ("dilation", "dilation", dilation),
        ("stride", "stride", stride),
    ):
        if min(values) <= 0:
            raise RuntimeError(
                f"{what} should be greater than zero, but got {name}_height: {values[0]} {name}_width: {values[1]}"
            )
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def _blocks(size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    """Return how many windows there are along each dimension."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    )


def _im2col(xp: Namespace, self: Array, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    _check_windows(kernel, dilation, padding, stride)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    refuse_kinds("im2col_out_cpu", self, "iu")
    size = self.shape[-2:]
    out = _blocks(size, kernel, dilation, padding, stride)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_pair(size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, calculated shape of the array of sliding blocks as {_pair(out)}, but its "
            "components must be at least one."
        )
    padded = pad_array(xp, self, padding, padding)
    *lead, channels = self.shape[:-2]
    columns = xp.empty((*lead, channels, *kernel, *out), dtype=self.dtype)
    for (i, j), slices in kernel_places(kernel, out, stride, dilation):
        columns[..., i, j, :, :] = padded[(Ellipsis, *slices)]
    return columns.reshape(*lead, channels * math.prod(kernel), math.prod(out))


def _pair(values: Ints) -> str:
    return f"({values[0]}, {values[1]})"


def _col2im(xp: Namespace, self: Array, size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    _check_windows(kernel, dilation, padding, stride)
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(self.shape)}"
        )
    *lead, rows, count = self.shape
    depth = math.prod(kernel)
    if rows % depth:
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={_pair(kernel)}."
        )
    out = _blocks(size, kernel, dilation, padding, stride)
    if math.prod(out) != count or min(out) < 1:
        raise RuntimeError(
            f"Given output_size={_pair(size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {out[0]} * {out[1]} = {math.prod(out)}, but got "
            f"input.size(2)={count}."
        )
    refuse_kinds("col2im_out_cpu", self, "iu")
    columns = self.reshape(*lead, rows // depth, *kernel, *out)
    whole = xp.zeros((*lead, rows // depth, *(n + 2 * p for n, p in zip(size, padding, strict=True))), self.dtype)
    for (i, j), slices in kernel_places(kernel, out, stride, dilation):
        whole[(Ellipsis, *slices)] += columns[..., i, j, :, :]
    inside = tuple(slice(p, p + n) for p, n in zip(padding, size, strict=True))
    return xp.ascontiguousarray(whole[(Ellipsis, *inside)])


_WINDOWS = "int[] kernel_size, int[] dilation, int[] padding, int[] stride"

operator(
    f"im2col(Tensor self, {_WINDOWS})",
    _im2col,
    method=False,
    public_name=False,
    node="Im2ColBackward0",
    derivatives={
        "self": lambda g, self_shape, kernel_size, dilation, padding, stride, F: F.col2im(
            g, self_shape[-2:], kernel_size, dilation, padding, stride
        ),
    },
    doc="Write each window of an image as a column.",
    samples=lambda make: [
        ((make(2, 2, 4, 5), (2, 3), (1, 1), (1, 0), (2, 1)), {}),
        ((make(1, 4, 4), (2, 2), (2, 1), (0, 0), (1, 1)), {}),
    ],
    reference=columns,
)
operator(
    f"col2im(Tensor self, int[] output_size, {_WINDOWS})",
    _col2im,
    method=False,
    public_name=False,
    node="Col2ImBackward0",
    derivatives={
        "self": lambda g, kernel_size, dilation, padding, stride, F: F.im2col(
            g, kernel_size, dilation, padding, stride
        ),
    },
    doc="Add up columns where their windows are: the adjoint of im2col.",
    samples=lambda make: [
        ((make(2, 12, 9), (4, 5), (2, 3), (1, 1), (1, 0), (2, 1)), {}),
        ((make(4, 6), (4, 4), (2, 2), (2, 1), (0, 0), (1, 1)), {}),
    ],
    reference=_col2im_reference,
)
