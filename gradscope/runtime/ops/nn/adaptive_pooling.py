"""Pooling to a given size: windows so chosen that they cover the input as evenly as possible."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index as whole

import numpy

from ...kernels import forms, loading, threads
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Ints, Namespace, Shape, Sizes
from ..declaration.references import adaptive_windows, adjoint, largest, mean_of, pooled
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import Samples
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import in_rows, is_half, single
from ..vision.separable_resampling import Taps, adaptive_bounds, as_slice, read_along, resample, windows
from .convolution import several
from .pooling import as_image, distinct

# --- windows ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _sums(size: int, out: int) -> tuple[Taps, numpy.ndarray]:
    """Return the sums of the windows along one dimension, and how many elements each has."""
    starts, ends = adaptive_bounds(size, out)
    counts = [e - s for s, e in zip(starts, ends, strict=True)]
    return windows(starts, ends, size, [[1.0] * c for c in counts]), numpy.array(counts, dtype=float)


def _counts(xp: Namespace, x: Array, sums: list[tuple[Taps, numpy.ndarray]]) -> Array:
    """Return how many elements each window has: a number if they are all alike."""
    total: Array = 1.0
    for axis, (_, counts) in enumerate(sums):
        if counts.size and (counts == counts[0]).all():
            total = total * float(counts[0])
        else:
            total = total * xp.asarray(counts.astype(x.dtype)).reshape(-1, *(1,) * (len(sums) - 1 - axis))
    return total


def _check_filled(name: str, shape: Ints, spatial: int, first: int) -> None:
    for axis in range(len(shape) - spatial - first, len(shape)):
        if not shape[axis]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {axis} being empty"
            )


# --- means ------------------------------------------------------------------------------------------------------------


def _avg(xp: Namespace, self: Array, output_size: Ints) -> Array:
    spatial = len(output_size)
    refuse_kinds(f"adaptive_avg_pool{spatial}d", self, "biuc")
    if is_half(self):
        return _avg(xp, single(self), output_size).astype(self.dtype)
    sums = [_sums(n, o) for n, o in zip(self.shape[-spatial:], output_size, strict=True)]
    result = resample(xp, self, [taps for taps, _ in sums])
    result /= _counts(xp, self, sums)
    return result


def _avg_backward(xp: Namespace, grad_output: Gradient, input_size: Ints) -> Array:
    if is_half(grad_output):
        return _avg_backward(xp, single(grad_output), input_size).astype(grad_output.dtype)
    spatial = len(input_size)
    sums = [_sums(n, o) for n, o in zip(input_size, grad_output.shape[-spatial:], strict=True)]
    return resample(xp, grad_output / _counts(xp, grad_output, sums), [taps.adjoint for taps, _ in sums])


def _avg_samples(spatial: int) -> Samples:
    size, even = ((5, 4), (4, 4)) if spatial == 2 else ((3, 2, 4), (2, 2, 4))
    out = (3, 2, 3)[:spatial]
    return lambda make: [
        ((make(2, 1, *size), out), {}),
        ((make(1, *even), (2,) * spatial), {}),
        ((make(0, 1, *size), (2,) * spatial), {}),
    ]


def _adaptive_avg_reference(self: Array, output_size: Ints) -> list[Array]:
    return pooled(mean_of, self, adaptive_windows(self.shape[self.ndim - len(output_size) :], output_size))


def _adaptive_unpool_reference(grad: Gradient, input_size: Ints) -> Array:
    lead, out = grad.shape[: grad.ndim - len(input_size)], grad.shape[grad.ndim - len(input_size) :]
    return adjoint(lambda x: _adaptive_avg_reference(x, out)[0], (*lead, *input_size), grad)


def _adaptive_max_reference(self: Array, output_size: Ints) -> list[Array]:
    return pooled(largest, self, adaptive_windows(self.shape[self.ndim - len(output_size) :], output_size))


for _spatial in (2, 3):
    operator(
        f"_adaptive_avg_pool{_spatial}d(Tensor self, int[] output_size)",
        _avg,
        images=1,
        node=f"AdaptiveAvgPool{_spatial}DBackward0",
        method=False,
        public_name=False,
        derivatives={
            "self": lambda g, self_shape, output_size, F: F.adaptive_avg_unpool(g, self_shape[-len(output_size) :]),
        },
        doc="Return means of windows, so chosen that the output has the given size.",
        samples=_avg_samples(_spatial),
        reference=_adaptive_avg_reference,
        supports="f",
    )


def _avg_of_grad(g: Gradient, grad_output_shape: Shape, input_size: Sizes, F: Namespace) -> Gradient:
    spatial = len(input_size)
    return getattr(F, f"_adaptive_avg_pool{spatial}d")(g, tuple(grad_output_shape[-spatial:]))


operator(
    "adaptive_avg_unpool(Tensor grad_output, int[] input_size)",
    _avg_backward,
    images=1,
    method=False,
    public_name=False,
    node="AdaptiveAvgPoolBackwardBackward0",
    derivatives={"grad_output": _avg_of_grad},
    doc="The adjoint of adaptive average pooling.",
    samples=lambda make: [((make(1, 2, 3, 2), (5, 4)), {}), ((make(1, 1, 2, 1, 3), (3, 1, 3)), {})],
    reference=_adaptive_unpool_reference,
    supports="f",
)


def adaptive_avg_pool(spatial: int, input: Array, output_size: Sizes) -> Array:
    """Return means of windows over `spatial` dimensions; None in `output_size` keeps the input's size."""
    shape = input._array.shape
    if len(shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"adaptive_avg_pool{spatial}d(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got {list(shape)}"
        )
    out = _wanted(f"adaptive_avg_pool{spatial}d", shape, spatial, output_size)
    if min(out) < 0:
        raise RuntimeError(
            f"adaptive_avg_pool{spatial}d: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, out))}}}"
        )
    _check_filled(f"adaptive_avg_pool{spatial}d", shape, spatial, spatial == 3)  # as PyTorch: of volumes, channels too
    if all(o == 1 for o in out):
        return input.mean(tuple(range(-spatial, 0)), True)
    return OPERATORS[f"_adaptive_avg_pool{spatial}d"].function(input, out)


def _wanted(name: str, shape: Ints, spatial: int, output_size: Sizes) -> Ints:
    """Return the output's size in full."""
    if output_size is None or hasattr(output_size, "__index__"):
        output_size = (output_size,) * spatial
    try:
        out = tuple(None if size is None else whole(size) for size in output_size)
    except TypeError:
        raise TypeError(
            f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not {output_size!r}\nNone keeps the "
            "size of the input."
        ) from None
    if len(out) != spatial:
        raise RuntimeError(f"{name}: output_size must be {spatial}\nIt has {len(out)} elements.")
    return tuple(n if o is None else o for n, o in zip(shape[-spatial:], out, strict=True))


# --- maxima -----------------------------------------------------------------------------------------------------------


def _max(xp: Namespace, self: Array, output_size: Ints) -> tuple[Array, Array]:
    """Find the largest along one dimension after the other, the last first.

    So the first of equals in reading order, and the last NaN, win, as in one pass over the whole window.
    """
    spatial = len(output_size)
    name = f"adaptive_max_pool{spatial}d"
    refuse_kinds(name, self, "biuc")
    sizes = self.shape[-spatial:]
    if spatial == 2 and type(self) is numpy.ndarray and self.dtype.char == "f" and self.size >= forms.LEAST:
        loops = loading.compiled("extremes_loops")
        if loops is not None and 0 not in output_size:
            return _max_of_images(loops, self, output_size)
    best = self
    index = xp.arange(math.prod(sizes)).reshape(sizes)
    for axis in reversed(range(spatial)):
        best, index = _best_along(xp, best, index, axis - spatial, _sums(sizes[axis], output_size[axis])[0])
    if index.ndim < best.ndim:  # no window has two elements
        index = xp.broadcast_to(index, best.shape).copy()
    return best if best is not self else self.copy(), index


def _max_of_images(loops: Namespace, self: Array, output_size: Ints) -> tuple[Array, Array]:
    """Return the same of images by a compiled loop."""
    images = in_rows(numpy, self).reshape(-1, *self.shape[-2:])
    shape = (len(images), *output_size)
    values, places = numpy.empty(shape, self.dtype), numpy.empty(shape, numpy.int64)
    sides = [adaptive_bounds(size, out) for size, out in zip(self.shape[-2:], output_size, strict=True)]
    bounds = [numpy.array(ends, numpy.int64) for side in sides for ends in side]

    def find(part: slice) -> None:
        loops.largest_in_windows(images[part], *bounds, values[part], places[part])

    threads.over(len(images), find, images[:1].size)
    lead = (*self.shape[:-2], *output_size)
    return values.reshape(lead), places.reshape(lead)


def _best_along(xp: Namespace, values: Array, index: Array, axis: int, taps: Taps) -> tuple[Array, Array]:
    """Return the largest of each window along one dimension, counted from the last, and their places.

    The places are those of one image until images differ.
    """
    if taps.identity:
        return values, index
    best, found = (read_along(xp, array, as_slice(taps.places[0]), axis) for array in (values, index))
    for tap in range(1, len(taps.places)):
        candidate, where = (read_along(xp, array, as_slice(taps.places[tap]), axis) for array in (values, index))
        better = (candidate > best) | (candidate != candidate)
        if taps.filling is not None:
            better &= xp.asarray(~taps.filling[tap]).reshape(-1, *(1,) * (-1 - axis))
        best, found = xp.where(better, candidate, best), xp.where(better, where, found)
    return best, found


def _max_samples(spatial: int) -> Samples:
    shapes = ((1, 2, 5, 4), (2, 4, 4)) if spatial == 2 else ((1, 1, 3, 2, 4), (2, 2, 2, 4))
    out = (3, 2, 3)[:spatial]
    return lambda make: [
        ((distinct(make, shapes[0]), out), {}),
        ((distinct(make, shapes[1]), (2,) * spatial), {}),
    ]


for _spatial in (2, 3):
    operator(
        f"adaptive_max_pool{_spatial}d(Tensor self, int[] output_size)",
        _max,
        outputs=("result0", "result1"),
        node=f"AdaptiveMaxPool{_spatial}DBackward0",
        method=False,
        public_name=False,
        derivatives={
            "self": lambda g, self, result1, output_size, F: F.max_unpool(
                g[0], result1, self.shape[len(self.shape) - len(output_size) :], True
            ),
        },
        doc="Return the largest elements of windows, so chosen that the output has the given size, and their places.",
        samples=_max_samples(_spatial),
        reference=_adaptive_max_reference,
        supports="f",
    )


def adaptive_max_pool(spatial: int, input: Array, output_size: Sizes) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows over `spatial` dimensions, and where in the flat input they are."""
    shape = input._array.shape
    name = f"adaptive_max_pool{spatial}d"
    if len(shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(f"{name}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got: {list(shape)}")
    out = _wanted(name, shape, spatial, output_size)
    if min(out) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(out)}\nSizes are 0 or more.")
    _check_filled(name, shape, spatial, 1)
    values, indices = OPERATORS[name].function(input, out)
    return values, indices


# --- signals ----------------------------------------------------------------------------------------------------------


def _row(name: str, output_size: Sizes) -> Ints:
    if output_size is None:
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not NoneType")
    if not hasattr(output_size, "__index__") and len(output_size) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")
    return (1, *several(output_size, 1, "output_size"))


@public(method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return means of windows of signals (N, C, L), so chosen that the output has the given length.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.adaptive_avg_pool1d(gs.tensor([[1.0, 2.0, 3.0, 5.0]]), 2)
    tensor([[1.5000, 4.0000]])
    """
    image = as_image(input, "adaptive_avg_pool1d")
    return adaptive_avg_pool(2, image, _row("adaptive_avg_pool1d", output_size)).squeeze(-2)


@public(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows of signals, and where they are; the output has the given length.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.adaptive_max_pool1d(gs.tensor([[1.0, 2.0, 3.0, 5.0]]), 2)
    (tensor([[2., 5.]]), tensor([[1, 3]]))
    """
    image = as_image(input, "adaptive_max_pool1d")
    _check_filled("adaptive_max_pool1d", input._array.shape, 1, 1)
    values, indices = adaptive_max_pool(2, image, _row("adaptive_max_pool1d", output_size))
    return values.squeeze(-2), indices.squeeze(-2)


del _spatial
