"""Convolution over any number of spatial dimensions, as products of strided windows.

Convolution is linear in the input and in the weight. With its two adjoints it makes a triple that is closed under
differentiation, so derivatives of every order are one of the three::

    convolution(x, w) -> y      conv_input(y, w) -> x      conv_weight(x, y) -> w
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from operator import index as whole
from typing import Any

import numpy

from ...kernels.convolution import convolution_kernels as kernels
from ...kernels.copies import copy_into
from ...memory.elements import as_element
from ...memory.storage import restrided
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, Gradient, Ints, Make, Namespace, Number, Sizes
from ..declaration.references import adjoint, convolved, padded
from ..declaration.registry import OPERATORS, operator, public
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import conj, matrix_product

# --- geometry ---------------------------------------------------------------------------------------------------------

BLOCK = 1 << 22
"""Elements of the matrix of windows that are made at once; larger batches go in parts."""


def pad_array(xp: Namespace, x: Array, before: Ints, after: Ints, value: Number = 0) -> Array:
    """Return `x` with its last dimensions padded."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    spatial = tuple(b + s + a for b, s, a in zip(before, x.shape[lead:], after, strict=True))
    padded = xp.full((*x.shape[:lead], *spatial), value, dtype=x.dtype)
    inside = tuple(slice(b, b + s) for b, s in zip(before, x.shape[lead:], strict=True))
    copy_into(padded[(Ellipsis, *inside)], x)
    return padded


def _windows(xp: Namespace, x: Array, kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> Array:
    """View `x` of shape (..., *spatial) as (..., *kernel, *out)."""
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    return restrided(
        x,
        (*x.shape[:lead], *kernel, *out),
        (
            *x.strides[:lead],
            *(d * s for d, s in zip(dilation, steps, strict=True)),
            *(t * s for t, s in zip(stride, steps, strict=True)),
        ),
    )


def kernel_places(kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> Iterator[tuple[Ints, tuple[slice, ...]]]:
    """Yield each position in the kernel with the slices of the input that it meets."""
    for position in itertools.product(*map(range, kernel)):
        yield (
            position,
            tuple(
                slice(k * d, k * d + (o - 1) * s + 1, s)
                for k, o, s, d in zip(position, out, stride, dilation, strict=True)
            ),
        )


def _out_size(spatial: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True)
    )


def times(sizes: Ints) -> str:
    """Return ``"3 x 4"`` for a shape, as messages have it."""
    return " x ".join(str(s) for s in sizes)


def _check_geometry(weight: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    shape = list(weight.shape)
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(shape) != len(stride) + 2:
        raise RuntimeError(
            f"expected stride to be a single integer value or a list of {len(shape) - 2} values to match the "
            f"convolution dimensions, but got stride={list(stride)}\nThe weight has shape {shape}."
        )
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if 0 in shape[2:]:
        raise RuntimeError(f"kernel size should be greater than zero\nThe weight has shape {shape}.")
    if shape[0] < groups or shape[0] % groups:
        wanted = "at least" if shape[0] < groups else "divisible by"
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be {wanted} {groups} at dimension 0, but got weight of size "
            f"{shape} instead"
        )


def _check_channels(x: Array, weight: Array, bias: Array, into: int, out: int, given: str) -> None:
    """Raise unless the input has `into` channels, the bias `out`, and input and weight one dtype, which is not bool."""
    refuse_kinds(f"slow_conv{x.ndim - 2}d_cpu", x, "b")
    shape = list(weight.shape)
    if x.shape[1] != into:
        raise RuntimeError(
            f"Given {given}, weight of size {shape}, expected input{list(x.shape)} to have {into} channels, but got "
            f"{x.shape[1]} channels instead"
        )
    if bias is not None and bias.shape != (out,):
        given = "transposed=1, " if given.startswith("transposed") else ""
        raise RuntimeError(
            f"Given {given}weight of size {shape}, expected bias to be 1-dimensional with {out} elements, but got bias "
            f"of size {list(bias.shape)} instead"
        )
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"Input type ({x.dtype}) and weight type ({weight.dtype}) should be the same\nConvert one of them."
        )
    if bias is not None and bias.dtype != x.dtype:
        raise RuntimeError(
            f"Input type ({x.dtype}) and bias type ({bias.dtype}) should be the same\nConvert one of them."
        )


def _check(x: Array, weight: Array, bias: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    _check_geometry(weight, stride, padding, dilation, groups)
    shape = weight.shape
    _check_channels(x, weight, bias, shape[1] * groups, shape[0], f"groups={groups}")
    padded = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))
    reach = tuple(d * (k - 1) + 1 for k, d in zip(shape[2:], dilation, strict=True))
    if any(n < r for n, r in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({times(padded)}). Kernel size: ({times(reach)}). Kernel size "
            "can't be greater than actual input size"
        )


# --- the three products -----------------------------------------------------------------------------------------------


def _parts(batch: int, columns: int) -> Iterator[slice]:
    """Yield slices of the batch whose matrices of windows are not too large."""
    size = max(1, BLOCK // max(columns, 1))
    for start in range(0, batch, size):
        yield slice(start, min(start + size, batch))


def _convolution(
    xp: Namespace, input: Array, weight: Array, bias: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    _check(input, weight, bias, stride, padding, dilation, groups)
    kernel = weight.shape[2:]
    batch, channels, spatial = input.shape[0], input.shape[1], input.shape[2:]
    out = _out_size(spatial, kernel, stride, padding, dilation)
    if kernels.suits(input, weight):
        return kernels.convolved(input, weight, bias, out, stride, padding, dilation, groups)
    rows = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    count, depth = math.prod(out), rows.shape[2]
    padded = pad_array(xp, input, padding, padding).reshape(
        batch, groups, channels // groups, *(n + 2 * p for n, p in zip(spatial, padding, strict=True))
    )
    result = xp.empty((batch, groups, rows.shape[1], count), dtype=input.dtype)
    for part in _parts(batch, groups * depth * count):
        windows = _windows(xp, padded[part], kernel, out, stride, dilation)
        result[part] = matrix_product(xp, rows, windows.reshape(windows.shape[0], groups, depth, count))
    result = result.reshape(batch, weight.shape[0], *out)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * len(out))
    return result


def _conv_input(
    xp: Namespace,
    grad_output: Gradient,
    weight: Array,
    input_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    kernel, spatial, out = weight.shape[2:], tuple(input_size), grad_output.shape[2:]
    if kernels.suits(grad_output, weight) and numpy.isfinite(weight).all():
        return kernels.input_gradient(grad_output, weight, spatial, stride, padding, dilation, groups)
    batch = grad_output.shape[0]
    rows = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    count, depth = math.prod(out), rows.shape[2]
    # Room for windows that reach beyond the padded input, where a transposed convolution asks for a smaller one.
    reach = tuple((o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(out, stride, dilation, kernel, strict=True))
    size = tuple(max(r, n + 2 * p) for r, n, p in zip(reach, spatial, padding, strict=True))
    whole = xp.zeros((batch, groups, weight.shape[1], *size), dtype=grad_output.dtype)
    grouped = grad_output.reshape(batch, groups, rows.shape[1], count)
    for part in _parts(batch, groups * depth * count):
        columns = matrix_product(xp, rows.swapaxes(-1, -2), grouped[part])
        columns = columns.reshape(columns.shape[0], groups, weight.shape[1], *kernel, *out)
        target = whole[part]
        for position, slices in kernel_places(kernel, out, stride, dilation):
            target[(Ellipsis, *slices)] += columns[(slice(None),) * 3 + position]
    inside = tuple(slice(p, p + n) for p, n in zip(padding, spatial, strict=True))
    result = whole[(Ellipsis, *inside)]
    return xp.ascontiguousarray(result).reshape(batch, groups * weight.shape[1], *spatial)


def _conv_weight(
    xp: Namespace,
    input: Array,
    grad_output: Gradient,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    kernel, out = tuple(kernel), grad_output.shape[2:]
    if kernels.suits(input, grad_output):
        found = kernels.weight_gradient(input, grad_output, kernel, stride, padding, dilation, groups)
        if numpy.isfinite(found).all():
            return found
    batch, channels = input.shape[:2]
    count = math.prod(out)
    padded = pad_array(xp, input, padding, padding)
    padded = padded.reshape(batch, groups, channels // groups, *padded.shape[2:])
    per_group = grad_output.shape[1] // groups
    grouped = grad_output.reshape(batch, groups, per_group, count)
    depth = channels // groups * math.prod(kernel)
    result = xp.zeros((groups, per_group, depth), dtype=input.dtype)
    for part in _parts(batch, groups * depth * count):
        # One product for the whole part: its samples lie side by side.
        windows = _windows(xp, padded[part], kernel, out, stride, dilation)
        size = windows.shape[0] * count
        order = (1, 2, *range(3, 3 + len(kernel)), 0, *range(3 + len(kernel), windows.ndim))
        columns = windows.transpose(order).reshape(groups, depth, size)
        rows = grouped[part].transpose(1, 2, 0, 3).reshape(groups, per_group, size)
        result += matrix_product(xp, rows, columns.swapaxes(-1, -2))
    return result.reshape(groups * per_group, channels // groups, *kernel)


def _sum_channels(g: Gradient, F: Namespace) -> Gradient:
    return F.sum(g, (0, *range(2, len(g.shape))))


def _leading(x: Array, shape: Ints, F: Namespace) -> Array:
    """Return the part of `x` that has the spatial sizes of `shape`.

    A transposed convolution with more output padding than stride has room for windows that it has not made.
    """
    for dim in range(2, len(shape)):
        if x.shape[dim] > shape[dim]:
            x = F.slice(x, dim, 0, shape[dim], 1)
    return x


_GEOMETRY = "int[] stride, int[] padding, int[] dilation, int groups"


def _conv_samples(make: Make) -> Cases:
    found: Cases = []
    for stride, padding, dilation, groups in (((1, 1), (0, 0), (1, 1), 1), ((2, 1), (1, 0), (1, 2), 2)):
        arguments = (make(2, 2, 5, 4), make(2, 2 // groups, 3, 2), make(2), stride, padding, dilation, groups)
        found.append((arguments, {}))
    found.append(((make(1, 2, 4), make(3, 2, 2), None, (1,), (1,), (1,), 1), {}))
    return found


def _conv_input_reference(grad: Gradient, weight: Array, input_size: Sizes, *geometry: Any) -> Array:
    size = (len(grad), weight.shape[1] * geometry[-1], *input_size)
    return adjoint(lambda x: convolved(x, weight, None, *geometry), size, grad)


def _conv_weight_reference(input: Array, grad: Array, kernel: Ints, *geometry: Any) -> Array:
    size = (grad.shape[1], input.shape[1] // geometry[-1], *kernel)
    return adjoint(lambda w: convolved(input, w, None, *geometry), size, grad)


operator(
    f"convolution(Tensor input, Tensor weight, Tensor? bias, {_GEOMETRY})",
    _convolution,
    images=2,
    method=False,
    public_name=False,
    derivatives={
        "input": lambda g, input_shape, weight, stride, padding, dilation, groups, F: F.conv_input(
            g, conj(weight), input_shape[2:], stride, padding, dilation, groups
        ),
        "weight": lambda g, input, weight_shape, stride, padding, dilation, groups, F: F.conv_weight(
            conj(input), g, weight_shape[2:], stride, padding, dilation, groups
        ),
        "bias": _sum_channels,
    },
    doc="Slide the weight over the input and sum the products (a cross-correlation).",
    samples=_conv_samples,
    reference=convolved,
    supports="f",
)
for _name, _node in (("conv_input", "ConvolutionBackwardBackward0"), ("conv_transpose", "ConvolutionBackward0")):
    operator(
        f"{_name}(Tensor grad_output, Tensor weight, int[] input_size, {_GEOMETRY})",
        _conv_input,
        images=2,
        method=False,
        public_name=False,
        node=_node,
        derivatives={
            "grad_output": lambda g, grad_output_shape, weight, stride, padding, dilation, groups, F: _leading(
                F.convolution(g, conj(weight), None, stride, padding, dilation, groups), grad_output_shape, F
            ),
            "weight": lambda g, grad_output, weight_shape, stride, padding, dilation, groups, F: F.conv_weight(
                g, conj(grad_output), weight_shape[2:], stride, padding, dilation, groups
            ),
        },
        doc="The transpose of convolution in its input: a transposed convolution.",
        samples=lambda make: [
            ((make(2, 2, 2, 3), make(2, 1, 3, 2), (3, 4), (2, 1), (1, 0), (1, 1), 2), {}),
        ],
        reference=_conv_input_reference,
        supports="f",
    )
operator(
    f"conv_weight(Tensor input, Tensor grad_output, int[] kernel, {_GEOMETRY})",
    _conv_weight,
    images=2,
    method=False,
    public_name=False,
    node="ConvolutionBackwardBackward0",
    derivatives={
        "input": lambda g, input_shape, grad_output, stride, padding, dilation, groups, F: F.conv_input(
            conj(grad_output), g, input_shape[2:], stride, padding, dilation, groups
        ),
        "grad_output": lambda g, input, grad_output_shape, stride, padding, dilation, groups, F: _leading(
            F.convolution(conj(input), g, None, stride, padding, dilation, groups), grad_output_shape, F
        ),
    },
    doc="The transpose of convolution in its weight.",
    samples=lambda make: [((make(2, 2, 5, 4), make(2, 2, 2, 3), (3, 2), (2, 1), (0, 0), (1, 1), 2), {})],
    reference=_conv_weight_reference,
    supports="f",
)
operator(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0)",
    lambda xp, self, pad, value=0: _constant_pad(xp, self, pad, value),
    images=1,
    method=False,
    derivatives={"self": lambda g, pad, F: F.constant_pad_nd(g, tuple(-p for p in pad))},
    doc="Pad the last dimensions, last one first, with a number; negative sizes cut.",
    samples=lambda make: [((make(2, 3), (1, 2)), {}), ((make(2, 3), (1, -1, 0, 2), 1.5), {})],
    reference=lambda self, pad, value=0: padded(self, pad, "constant", constant_values=value),
)


def _constant_pad(xp: Namespace, self: Array, pad: Ints, value: Number) -> Array:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {self.ndim} dimensions."
        )
    # The list starts with the last dimension.
    before, after = tuple(pad[0::2])[::-1], tuple(pad[1::2])[::-1]
    sizes = self.shape[self.ndim - len(before) :]
    for b, a, n in zip(before, after, sizes, strict=True):
        if n + min(b, 0) + min(a, 0) < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {b} and {a}, resulted in a negative output size, which is "
                f"invalid.\nThe input has shape {list(self.shape)}, pad is {list(pad)}."
            )
    cut = tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, sizes, strict=True))
    inside = self[(Ellipsis, *cut)]
    start, end = (tuple(max(p, 0) for p in side) for side in (before, after))
    result = pad_array(xp, inside, start, end, as_element(value, self))
    return result if result is not inside and result is not self else inside.copy()


# --- convolution, as called -------------------------------------------------------------------------------------------


def several(value: Sizes, count: int, name: str) -> Ints:
    """Return one number or a sequence of `count` as a tuple."""
    if hasattr(value, "__index__"):
        return (int(value),) * count
    try:
        values = tuple(map(whole, value))
    except TypeError:
        raise TypeError(
            f"argument '{name}' must be tuple of ints, not {value!r}\nGive an int, or one for each."
        ) from None
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count} values, but got {value}")
    return values


def as_batch(x: Array, spatial: int, name: str) -> tuple[Array, bool]:
    """Return the input with a batch dimension, and whether it had one."""
    if x._array.ndim == spatial + 2:
        return x, True
    if x._array.ndim == spatial + 1:
        return x.unsqueeze(0), False
    raise RuntimeError(
        f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, but got input of size: "
        f"{list(x.shape)}"
    )


def _convolve(
    spatial: int, input: Array, weight: Array, bias: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Array:
    name = f"conv{spatial}d"
    x, batched = as_batch(input, spatial, name)
    stride, dilation = several(stride, spatial, "stride"), several(dilation, spatial, "dilation")
    if isinstance(padding, str):
        x, padding = _named_padding(x, weight, padding, stride, dilation)
    padding = several(padding, spatial, "padding")
    result = OPERATORS["convolution"].function(x, weight, bias, stride, padding, dilation, groups)
    return result if batched else result.squeeze(0)


def _named_padding(x: Array, weight: Array, padding: str, stride: Ints, dilation: Ints) -> tuple[Array, Ints]:
    if padding == "valid":
        return x, (0,) * len(stride)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'\nUse 'valid', 'same' or numbers.")
    if weight._array.ndim != x._array.ndim:
        raise RuntimeError(
            f"Expected {weight._array.ndim}-dimensional input for {weight._array.ndim}-dimensional weight"
            f"{list(weight.shape)}, but got {x._array.ndim}-dimensional input of size {list(x.shape)} instead"
        )
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(t % 2 for t in total):
        # One more at the end.
        extra = itertools.chain.from_iterable((0, t % 2) for t in reversed(total))
        x = OPERATORS["constant_pad_nd"].function(x, tuple(extra))
    return x, tuple(t // 2 for t in total)


@public(method=False)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve signals (N, C, L), see :func:`conv2d`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.conv1d(gs.tensor([[[1.0, 2.0, 4.0]]]), gs.tensor([[[1.0, -1.0]]]))
    tensor([[[-1., -2.]]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve images.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W).
    weight : Tensor
        Of shape (out_channels, C / groups, kernel_height, kernel_width).
    bias : Tensor, optional
        One number an output channel.
    stride, dilation : int or pair
        Step between the places of the kernel, and between its elements: one number, or one for the height and one for
        the width.
    padding : int, pair, "valid" or "same"
        How many zeros are added at each side; "same" adds what keeps the size (at stride 1), "valid" none.
    groups : int
        Channels are split into so many groups, convolved apart.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.conv2d(gs.ones(1, 1, 3, 3), gs.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve volumes (N, C, D, H, W), see :func:`conv2d`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.conv3d(gs.ones(1, 2, 4, 4, 4), gs.ones(3, 2, 2, 2, 2)).shape
    gradscope.Size([1, 3, 3, 3, 3])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    spatial: int,
    input: Array,
    weight: Array,
    bias: Array,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Array:
    x, batched = as_batch(input, spatial, f"conv_transpose{spatial}d")
    stride, padding = several(stride, spatial, "stride"), several(padding, spatial, "padding")
    dilation, extra = several(dilation, spatial, "dilation"), several(output_padding, spatial, "output_padding")
    array, kernels = x._array, weight._array
    _check_geometry(kernels, stride, padding, dilation, groups)
    out = kernels.shape[1] * groups
    _check_channels(array, kernels, None if bias is None else bias._array, kernels.shape[0], out, "transposed=1")
    if any(e < 0 for e in extra):
        raise RuntimeError("negative output_padding is not supported")
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError("output padding must be smaller than either stride or dilation")
    settings = zip(array.shape[2:], stride, padding, dilation, kernels.shape[2:], extra, strict=True)
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in settings)
    if min(size) < 0:  # PyTorch's kernel for large float32 images, and for half precision, makes an empty one too
        raise RuntimeError(
            f"Given input size per channel: ({times(array.shape[2:])}). Calculated output size per channel: "
            f"({times(size)}). Output size is too small"
        )
    result = OPERATORS["conv_transpose"].function(x, weight, size, stride, padding, dilation, groups)
    if bias is not None:
        result = result + bias.reshape(-1, *(1,) * spatial)
    return result if batched else result.squeeze(0)


@public(method=False)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Apply the adjoint of a convolution to signals, see :func:`conv_transpose2d`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.conv_transpose1d(gs.tensor([[[1.0, 2.0]]]), gs.tensor([[[1.0, 1.0]]]), stride=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Apply the adjoint of a convolution to images; the weight has shape (C, out_channels / groups, height, width).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.conv_transpose2d(gs.ones(1, 2, 4, 4), gs.ones(2, 3, 2, 2), stride=2).shape
    gradscope.Size([1, 3, 8, 8])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Apply the adjoint of a convolution to volumes, see :func:`conv_transpose2d`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.conv_transpose3d(gs.ones(1, 2, 3, 3, 3), gs.ones(2, 3, 2, 2, 2), stride=2).shape
    gradscope.Size([1, 3, 6, 6, 6])
    """
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


del _name, _node
