"""Convolution and pooling over any number of spatial dimensions, as products of strided windows.

Convolution is linear in the input and in the weight. With its two adjoints it makes a triple that is closed under
differentiation, so derivatives of every order are one of the three::

    convolution(x, w) -> y      conv_input(y, w) -> x      conv_weight(x, y) -> w
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from .registry import OPERATORS, operator, public

Ints = tuple[int, ...]

# --- geometry ---------------------------------------------------------------------------------------------------------

BLOCK = 1 << 22
"""Elements of the matrix of windows that are made at once; larger batches go in parts."""


def _pad(xp: Any, x: Any, before: Ints, after: Ints, value: Any = 0) -> Any:
    """Return `x` with its last dimensions padded."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    spatial = tuple(b + s + a for b, s, a in zip(before, x.shape[lead:], after, strict=True))
    padded = xp.full((*x.shape[:lead], *spatial), value, dtype=x.dtype)
    inside = tuple(slice(b, b + s) for b, s in zip(before, x.shape[lead:], strict=True))
    padded[(Ellipsis, *inside)] = x
    return padded


def _windows(xp: Any, x: Any, kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> Any:
    """View `x` of shape (..., *spatial) as (..., *kernel, *out)."""
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    return xp.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:lead], *kernel, *out),
        (
            *x.strides[:lead],
            *(d * s for d, s in zip(dilation, steps, strict=True)),
            *(t * s for t, s in zip(stride, steps, strict=True)),
        ),
    )


def _places(kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> Iterator[tuple[Ints, tuple[slice, ...]]]:
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


def _by(sizes: Ints) -> str:
    return " x ".join(str(s) for s in sizes)


def _check(x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    shape = list(weight.shape)
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if shape[0] < groups or shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size {shape} instead"
        )
    if x.shape[1] != shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {shape}, expected input{list(x.shape)} to have "
            f"{shape[1] * groups} channels, but got {x.shape[1]} channels instead"
        )
    if bias is not None and bias.shape != (shape[0],):
        raise RuntimeError(
            f"Given weight of size {shape}, expected bias to be 1-dimensional with {shape[0]} elements, but got bias "
            f"of size {list(bias.shape)} instead"
        )
    padded = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))
    reach = tuple(d * (k - 1) + 1 for k, d in zip(shape[2:], dilation, strict=True))
    if any(n < r for n, r in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: ({_by(reach)}). Kernel size "
            "can't be greater than actual input size"
        )
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"Input type ({x.dtype}) and weight type ({weight.dtype}) should be the same\nConvert one of them."
        )


# --- the three products -----------------------------------------------------------------------------------------------


def _parts(batch: int, columns: int) -> Iterator[slice]:
    """Yield slices of the batch whose matrices of windows are not too large."""
    size = max(1, BLOCK // max(columns, 1))
    for start in range(0, batch, size):
        yield slice(start, min(start + size, batch))


def _convolution(
    xp: Any, input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    _check(input, weight, bias, stride, padding, dilation, groups)
    kernel = weight.shape[2:]
    batch, channels, spatial = input.shape[0], input.shape[1], input.shape[2:]
    out = _out_size(spatial, kernel, stride, padding, dilation)
    rows = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    count, depth = math.prod(out), rows.shape[2]
    padded = _pad(xp, input, padding, padding).reshape(
        batch, groups, channels // groups, *(n + 2 * p for n, p in zip(spatial, padding, strict=True))
    )
    result = xp.empty((batch, groups, rows.shape[1], count), dtype=input.dtype)
    for part in _parts(batch, groups * depth * count):
        windows = _windows(xp, padded[part], kernel, out, stride, dilation)
        result[part] = xp.matmul(rows, windows.reshape(windows.shape[0], groups, depth, count))
    result = result.reshape(batch, weight.shape[0], *out)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * len(out))
    return result


def _conv_input(
    xp: Any,
    grad_output: Any,
    weight: Any,
    input_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    kernel, spatial, out = weight.shape[2:], tuple(input_size), grad_output.shape[2:]
    batch = grad_output.shape[0]
    rows = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    count, depth = math.prod(out), rows.shape[2]
    adjoint = rows.swapaxes(-1, -2)
    if adjoint.dtype.kind == "c":
        adjoint = adjoint.conj()
    # Room for windows that reach beyond the padded input, where a transposed convolution asks for a smaller one.
    reach = tuple((o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(out, stride, dilation, kernel, strict=True))
    size = tuple(max(r, n + 2 * p) for r, n, p in zip(reach, spatial, padding, strict=True))
    whole = xp.zeros((batch, groups, weight.shape[1], *size), dtype=grad_output.dtype)
    grouped = grad_output.reshape(batch, groups, rows.shape[1], count)
    for part in _parts(batch, groups * depth * count):
        columns = xp.matmul(adjoint, grouped[part])
        columns = columns.reshape(columns.shape[0], groups, weight.shape[1], *kernel, *out)
        target = whole[part]
        for position, slices in _places(kernel, out, stride, dilation):
            target[(Ellipsis, *slices)] += columns[(slice(None),) * 3 + position]
    inside = tuple(slice(p, p + n) for p, n in zip(padding, spatial, strict=True))
    result = whole[(Ellipsis, *inside)]
    return xp.ascontiguousarray(result).reshape(batch, groups * weight.shape[1], *spatial)


def _conv_weight(
    xp: Any, input: Any, grad_output: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    batch, channels = input.shape[:2]
    kernel, out = tuple(kernel), grad_output.shape[2:]
    count = math.prod(out)
    padded = _pad(xp, input, padding, padding)
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
        if columns.dtype.kind == "c":
            columns = columns.conj()
        rows = grouped[part].transpose(1, 2, 0, 3).reshape(groups, per_group, size)
        result += xp.matmul(rows, columns.swapaxes(-1, -2))
    return result.reshape(groups * per_group, channels // groups, *kernel)


def _sum_channels(g: Any, F: Any) -> Any:
    return F.sum(g, (0, *range(2, len(g.shape))))


_GEOMETRY = "int[] stride, int[] padding, int[] dilation, int groups"


def _conv_samples(make: Any) -> Any:
    found: list[Any] = []
    for stride, padding, dilation, groups in (((1, 1), (0, 0), (1, 1), 1), ((2, 1), (1, 0), (1, 2), 2)):
        arguments = (make(2, 2, 5, 4), make(2, 2 // groups, 3, 2), make(2), stride, padding, dilation, groups)
        found.append((arguments, {}))
    found.append(((make(1, 2, 4), make(3, 2, 2), None, (1,), (1,), (1,), 1), {}))
    return found


operator(
    f"convolution(Tensor input, Tensor weight, Tensor? bias, {_GEOMETRY})",
    _convolution,
    method=False,
    public_name=False,
    derivatives={
        "input": lambda g, input_shape, weight, stride, padding, dilation, groups, F: F.conv_input(
            g, weight, input_shape[2:], stride, padding, dilation, groups
        ),
        "weight": lambda g, input, weight_shape, stride, padding, dilation, groups, F: F.conv_weight(
            input, g, weight_shape[2:], stride, padding, dilation, groups
        ),
        "bias": _sum_channels,
    },
    doc="Slide the weight over the input and sum the products (a cross-correlation).",
    samples=_conv_samples,
    supports="f",
)
for _name, _node in (("conv_input", "ConvolutionBackwardBackward0"), ("conv_transpose", "ConvolutionBackward0")):
    operator(
        f"{_name}(Tensor grad_output, Tensor weight, int[] input_size, {_GEOMETRY})",
        _conv_input,
        method=False,
        public_name=False,
        node=_node,
        derivatives={
            "grad_output": lambda g, weight, stride, padding, dilation, groups, F: F.convolution(
                g, weight, None, stride, padding, dilation, groups
            ),
            "weight": lambda g, grad_output, weight_shape, stride, padding, dilation, groups, F: F.conv_weight(
                g, grad_output, weight_shape[2:], stride, padding, dilation, groups
            ),
        },
        doc="The adjoint of convolution in its input: a transposed convolution.",
        samples=lambda make: [
            ((make(2, 2, 2, 3), make(2, 1, 3, 2), (3, 4), (2, 1), (1, 0), (1, 1), 2), {}),
        ],
        supports="f",
    )
operator(
    f"conv_weight(Tensor input, Tensor grad_output, int[] kernel, {_GEOMETRY})",
    _conv_weight,
    method=False,
    public_name=False,
    node="ConvolutionBackwardBackward0",
    derivatives={
        "input": lambda g, input_shape, grad_output, stride, padding, dilation, groups, F: F.conv_input(
            grad_output, g, input_shape[2:], stride, padding, dilation, groups
        ),
        "grad_output": lambda g, input, stride, padding, dilation, groups, F: F.convolution(
            input, g, None, stride, padding, dilation, groups
        ),
    },
    doc="The adjoint of convolution in its weight.",
    samples=lambda make: [((make(2, 2, 5, 4), make(2, 2, 2, 3), (3, 2), (2, 1), (0, 0), (1, 1), 2), {})],
    supports="f",
)
operator(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0)",
    lambda xp, self, pad, value=0: _constant_pad(xp, self, pad, value),
    method=False,
    derivatives={"self": lambda g, pad, F: F.constant_pad_nd(g, tuple(-p for p in pad))},
    doc="Pad the last dimensions, last one first, with a number; negative sizes cut.",
    samples=lambda make: [((make(2, 3), (1, 2)), {}), ((make(2, 3), (1, -1, 0, 2), 1.5), {})],
)


def _constant_pad(xp: Any, self: Any, pad: Ints, value: Any) -> Any:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {self.ndim} dimensions."
        )
    # The list starts with the last dimension.
    before, after = tuple(pad[0::2])[::-1], tuple(pad[1::2])[::-1]
    cut = tuple(
        slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, self.shape[-len(before) :], strict=True)
    )
    inside = self[(Ellipsis, *cut)]
    start, end = (tuple(max(p, 0) for p in side) for side in (before, after))
    result = _pad(xp, inside, start, end, value)
    return result if result is not inside and result is not self else inside.copy()


# --- convolution, as called -------------------------------------------------------------------------------------------


def several(value: Any, count: int, name: str) -> Ints:
    """Return one number or a sequence of `count` as a tuple."""
    if isinstance(value, int):
        return (value,) * count
    values = tuple(int(v) for v in value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count} values, but got {value}")
    return values


def _batched(x: Any, spatial: int, name: str) -> tuple[Any, bool]:
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
    spatial: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    name = f"conv{spatial}d"
    x, batched = _batched(input, spatial, name)
    stride, dilation = several(stride, spatial, "stride"), several(dilation, spatial, "dilation")
    if isinstance(padding, str):
        x, padding = _named_padding(x, weight, padding, stride, dilation)
    padding = several(padding, spatial, "padding")
    result = OPERATORS["convolution"].function(x, weight, bias, stride, padding, dilation, groups)
    return result if batched else result.squeeze(0)


def _named_padding(x: Any, weight: Any, padding: str, stride: Ints, dilation: Ints) -> tuple[Any, Ints]:
    if padding == "valid":
        return x, (0,) * len(stride)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'\nUse 'valid', 'same' or numbers.")
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
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve signals (N, C, L), see :func:`conv2d`."""
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
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
    padding : int, pair, ``"valid"`` or ``"same"``
    groups : int
        Channels are split into so many groups, convolved apart.
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve volumes (N, C, D, H, W), see :func:`conv2d`."""
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    spatial: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    x, batched = _batched(input, spatial, f"conv_transpose{spatial}d")
    stride, padding = several(stride, spatial, "stride"), several(padding, spatial, "padding")
    dilation, extra = several(dilation, spatial, "dilation"), several(output_padding, spatial, "output_padding")
    if x.shape[1] != weight.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have "
            f"{weight.shape[0]} channels, but got {x.shape[1]} channels instead"
        )
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError("output padding must be smaller than either stride or dilation")
    size = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True)
    )
    result = OPERATORS["conv_transpose"].function(x, weight, size, stride, padding, dilation, groups)
    if bias is not None:
        result = result + bias.reshape(-1, *(1,) * spatial)
    return result if batched else result.squeeze(0)


@public(method=False)
def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Apply the adjoint of a convolution to signals, see :func:`conv_transpose2d`."""
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False)
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Apply the adjoint of a convolution to images; the weight has shape (C, out_channels / groups, height, width)."""
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


# --- pooling ----------------------------------------------------------------------------------------------------------


def pool_size(spatial: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Ints:
    """Return the output's spatial shape.

    Raises
    ------
    RuntimeError
        If it would be empty.
    """
    sizes = []
    for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        size = (-(-room // s) if ceil_mode else room // s) + 1
        # A window must start inside the input or the padding before it.
        if ceil_mode and (size - 1) * s >= n + p:
            size -= 1
        sizes.append(size)
    if any(size < 1 for size in sizes):
        raise RuntimeError(
            f"Given input size: ({_by(spatial)}). Calculated output size: ({_by(tuple(sizes))}). Output size is too "
            "small"
        )
    return tuple(sizes)


def _check_pool(kernel: Ints, padding: Ints) -> None:
    if any(2 * p > k for k, p in zip(kernel, padding, strict=True)):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={padding[0]}, kernel_size={kernel[0]} "
            "and dilation=1"
        )


def _after(spatial: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """Return how much padding the last windows need."""
    return tuple(
        max((o - 1) * s + d * (k - 1) + 1 - n - p, 0)
        for n, k, o, s, p, d in zip(spatial, kernel, out, stride, padding, dilation, strict=True)
    )


def _max_pool(
    xp: Any, self: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Any, Any]:
    _check_pool(kernel, padding)
    lead = self.ndim - len(kernel)
    spatial = self.shape[lead:]
    out = pool_size(spatial, kernel, stride, padding, dilation, ceil_mode)
    lowest = -math.inf if self.dtype.kind == "f" else xp.iinfo(self.dtype).min
    padded = _pad(xp, self, padding, _after(spatial, kernel, out, stride, padding, dilation), lowest)
    best: Any = None
    index: Any = None
    for position, slices in _places(kernel, out, stride, dilation):
        candidate = padded[(Ellipsis, *slices)]
        where = _flat_index(xp, position, spatial, out, stride, padding, dilation)
        if best is None:
            best, index = candidate.copy(), xp.zeros(candidate.shape, dtype=xp.int64) + where
            continue
        better = candidate > best
        if self.dtype.kind == "f":
            better |= candidate != candidate
        best = xp.where(better, candidate, best)
        index = xp.where(better, where, index)
    return best, index


def _flat_index(xp: Any, position: Ints, spatial: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    """Return the place in the flat input of one kernel position, for every output; inside even where padded."""
    index: Any = 0
    for axis, (k, n, o, s, p, d) in enumerate(zip(position, spatial, out, stride, padding, dilation, strict=True)):
        line = xp.minimum(xp.maximum(xp.arange(o) * s - p + k * d, 0), n - 1)
        index = index * n + line.reshape(-1, *(1,) * (len(out) - 1 - axis))
    return index


def _max_unpool(xp: Any, self: Any, indices: Any, input_size: Ints, overlap: bool) -> Any:
    lead = self.shape[: self.ndim - len(input_size)]
    rows, size = math.prod(lead), math.prod(input_size)
    result = xp.zeros((rows * size,), dtype=self.dtype)
    count = math.prod(indices.shape[len(lead) :])
    at = (indices.reshape(rows, count) + xp.arange(rows).reshape(rows, 1) * size).reshape(-1)
    if overlap:
        xp.add.at(result, at, self.reshape(-1))
    else:
        result[at] = self.reshape(-1)
    return result.reshape(*lead, *input_size)


def _max_gather(xp: Any, self: Any, indices: Any, spatial: int) -> Any:
    lead = self.shape[: self.ndim - spatial]
    rows = math.prod(lead)
    size = math.prod(self.shape[self.ndim - spatial :])
    count = math.prod(indices.shape[len(lead) :])
    at = indices.reshape(rows, count) + xp.arange(rows).reshape(rows, 1) * size
    return self.reshape(-1)[at].reshape(indices.shape)


def _overlap(kernel: Ints, stride: Ints, dilation: Ints) -> bool:
    return any(d * (k - 1) + 1 > s for k, s, d in zip(kernel, stride, dilation, strict=True))


def _distinct(make: Any) -> Any:
    from ..creation import arange

    # No two elements are equal, so that the maximum does not change under small differences.
    x = make(1, 2, 4, 6)
    order = (arange(48) * 29 % 48).reshape(1, 2, 4, 6)
    return (x.detach() * 0.01 + order).requires_grad_(x.requires_grad)


for _spatial, _node in (
    (1, "MaxPool1DBackward0"),
    (2, "MaxPool2DWithIndicesBackward0"),
    (3, "MaxPool3DWithIndicesBackward0"),
):
    operator(
        f"max_pool{_spatial}d.values(Tensor self, int[] kernel, int[] stride, int[] padding, int[] dilation, "
        "bool ceil_mode)",
        _max_pool,
        aux=("indices",),
        node=_node,
        method=False,
        derivatives={
            "self": lambda g, self, indices, kernel, stride, dilation, F: F.max_unpool(
                g, indices, self.shape[len(self.shape) - len(kernel) :], _overlap(kernel, stride, dilation)
            ),
        },
        doc="Return the largest element of each window.",
        samples=None
        if _spatial != 2
        else lambda make: [
            ((_distinct(make), (2, 2), (2, 2), (0, 0), (1, 1), False), {}),
            ((_distinct(make), (3, 2), (1, 2), (1, 0), (1, 1), True), {}),
        ],
        supports="f",
    )
operator(
    "max_unpool(Tensor self, Tensor indices, int[] input_size, bool overlap)",
    _max_unpool,
    method=False,
    public_name=False,
    node="MaxPoolWithIndicesBackwardBackward0",
    derivatives={"self": lambda g, indices, input_size, F: F.max_gather(g, indices, len(input_size))},
    doc="The adjoint of max pooling: each gradient goes where the largest element was.",
)
operator(
    "max_gather(Tensor self, Tensor indices, int spatial)",
    _max_gather,
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, self_shape, indices, spatial, F: F.max_unpool(
            g, indices, self_shape[len(self_shape) - spatial :], True
        ),
    },
    doc="Return the elements at the indices of max pooling.",
)


def _divisors(
    xp: Any,
    spatial: Ints,
    kernel: Ints,
    out: Ints,
    stride: Ints,
    padding: Ints,
    include_pad: bool,
    override: int | None,
) -> Any:
    if override is not None:
        return override
    count: Any = 1
    for axis, (n, k, o, s, p) in enumerate(zip(spatial, kernel, out, stride, padding, strict=True)):
        start = xp.arange(o) * s - p
        end = xp.minimum(start + k, n + p)
        if not include_pad:
            start, end = xp.maximum(start, 0), xp.minimum(end, n)
        count = count * (end - start).reshape(-1, *(1,) * (len(out) - 1 - axis))
    return count


def _avg_pool(
    xp: Any,
    self: Any,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    _check_pool(kernel, padding)
    one = (1,) * len(kernel)
    spatial = self.shape[self.ndim - len(kernel) :]
    out = pool_size(spatial, kernel, stride, padding, one, ceil_mode)
    padded = _pad(xp, self, padding, _after(spatial, kernel, out, stride, padding, one))
    total: Any = None
    for _, slices in _places(kernel, out, stride, one):
        part = padded[(Ellipsis, *slices)]
        total = part.copy() if total is None else xp.add(total, part, out=total)
    count = _divisors(xp, spatial, kernel, out, stride, padding, count_include_pad, divisor_override)
    return (total / count).astype(self.dtype, copy=False)


def _avg_unpool(
    xp: Any,
    self: Any,
    input_size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    lead = self.ndim - len(kernel)
    out, one = self.shape[lead:], (1,) * len(kernel)
    count = _divisors(xp, input_size, kernel, out, stride, padding, count_include_pad, divisor_override)
    each = (self / count).astype(self.dtype, copy=False)
    after = _after(input_size, kernel, out, stride, padding, one)
    size = tuple(p + n + a for p, n, a in zip(padding, input_size, after, strict=True))
    whole = xp.zeros((*self.shape[:lead], *size), dtype=self.dtype)
    for _, slices in _places(kernel, out, stride, one):
        whole[(Ellipsis, *slices)] += each
    inside = tuple(slice(p, p + n) for p, n in zip(padding, input_size, strict=True))
    return xp.ascontiguousarray(whole[(Ellipsis, *inside)])


_POOLING = "int[] kernel, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override"

for _spatial in (1, 2, 3):
    operator(
        f"avg_pool{_spatial}d.windows(Tensor self, {_POOLING})",
        _avg_pool,
        node=f"AvgPool{_spatial}DBackward0",
        method=False,
        derivatives={
            "self": lambda g, self_shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override, F: (
                F.avg_unpool(
                    g, self_shape[len(self_shape) - len(kernel) :], kernel, stride, padding, ceil_mode,
                    count_include_pad, divisor_override,
                )
            ),
        },
        doc="Return the mean of each window.",
        samples=None if _spatial != 2 else lambda make: [
            ((make(1, 2, 4, 5), (2, 3), (2, 1), (1, 1), False, True, None), {}),
            ((make(2, 5, 5), (2, 2), (2, 2), (0, 0), True, False, None), {}),
            ((make(2, 4, 4), (2, 2), (2, 2), (0, 0), False, True, 3), {}),
        ],
        supports="f",
    )  # fmt: skip


def _avg_pool_of_grad(
    g: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: Any,
    count_include_pad: Any,
    divisor_override: Any,
    F: Any,
) -> Any:
    function = getattr(F, f"avg_pool{len(kernel)}d.windows")
    return function(g, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)


operator(
    f"avg_unpool(Tensor self, int[] input_size, {_POOLING})",
    _avg_unpool,
    method=False,
    public_name=False,
    node="AvgPoolBackwardBackward0",
    derivatives={"self": _avg_pool_of_grad},
    doc="The adjoint of average pooling.",
    samples=lambda make: [((make(1, 2, 2, 3), (4, 6), (2, 2), (2, 2), (0, 0), False, True, None), {})],
    supports="f",
)


def max_pool(
    spatial: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Return the largest element of each window, over `spatial` dimensions."""
    x, batched = _batched(input, spatial, f"max_pool{spatial}d")
    kernel = several(kernel_size, spatial, "kernel_size")
    steps = kernel if stride is None or stride == [] else several(stride, spatial, "stride")
    geometry = (kernel, steps, several(padding, spatial, "padding"), several(dilation, spatial, "dilation"))
    result = OPERATORS[f"max_pool{spatial}d.values"].function(x, *geometry, ceil_mode)
    return result if batched else result.squeeze(0)


def max_pool_indices(
    spatial: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Return where in the flat input the largest element of each window is."""
    from .. import device

    array = input._array
    kernel = several(kernel_size, spatial, "kernel_size")
    steps = kernel if stride is None else several(stride, spatial, "stride")
    geometry = (kernel, steps, several(padding, spatial, "padding"), several(dilation, spatial, "dilation"))
    return type(input.detach())._wrap(_max_pool(device.array_module(array), array, *geometry, ceil_mode)[1])


def avg_pool(
    spatial: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Return the mean of each window, over `spatial` dimensions."""
    x, batched = _batched(input, spatial, f"avg_pool{spatial}d")
    kernel = several(kernel_size, spatial, "kernel_size")
    steps = kernel if stride is None or stride == [] else several(stride, spatial, "stride")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    function = OPERATORS[f"avg_pool{spatial}d.windows"].function
    pads = several(padding, spatial, "padding")
    result = function(x, kernel, steps, pads, ceil_mode, count_include_pad, divisor_override)
    return result if batched else result.squeeze(0)


del _name, _node, _spatial
