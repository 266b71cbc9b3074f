"""Unpooling of maxima, and pooling over windows of random position."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...memory import device
from ...memory.dtype import scalar_type
from ..declaration.annotations import Array, Ints, Namespace
from ..declaration.references import largest, pooled
from ..declaration.registry import operator
from ..declaration.samples import Samples
from ..execution.array_errors import refuse_kinds
from .pooling import distinct, max_gather, max_scatter, places

# --- unpooling --------------------------------------------------------------------------------------------------------


def _unpool(xp: Namespace, self: Array, indices: Array, output_size: Ints) -> Array:
    spatial = len(output_size)
    if indices.dtype.name != "int64":
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {scalar_type(indices.dtype)}\nUse .long()."
        )
    if self.ndim not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"Input to max_unpooling{spatial}d should be a {spatial + 1}d or {spatial + 2}d Tensor, but got a tensor "
            f"with {self.ndim} dimensions."
        )
    if self.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    refuse_kinds(f"max_unpool{spatial}d", self, "bc")
    size = math.prod(output_size)
    if type(indices) is device.ndarray and indices.size:
        wrong = indices[(indices < 0) | (indices >= size)]
        if wrong.size:
            raise RuntimeError(
                f"Found an invalid max index: {wrong[0]} (output volumes are of size {'x'.join(map(str, output_size))})"
            )
    return max_scatter(xp, self, indices, output_size, False)


def _unpool_reference(self: Array, indices: Array, output_size: Ints, *rest: Any) -> Array:
    lead = self.shape[: self.ndim - len(output_size)]
    result = numpy.zeros((math.prod(lead), math.prod(output_size)), self.dtype)
    numpy.put_along_axis(result, indices.reshape(len(result), -1), self.reshape(len(result), -1), 1)
    return result.reshape(*lead, *output_size)


for _spatial, _more in ((2, ""), (3, ", int[] stride, int[] padding")):
    operator(
        f"max_unpool{_spatial}d(Tensor self, Tensor indices, int[] output_size{_more})",
        (lambda xp, self, indices, output_size, stride, padding: _unpool(xp, self, indices, output_size))
        if _more
        else _unpool,
        method=False,
        public_name=False,
        node=f"MaxUnpool{_spatial}DBackward0",
        derivatives={"self": lambda g, indices, output_size, F: F.max_gather(g, indices, len(output_size))},
        doc="Put each element where the index says, zeros elsewhere.",
        samples=(
            (lambda make: [((make(1, 1, 1, 2, 2), places([[[[0, 3], [5, 2]]]]), (2, 2, 2), (1, 1, 1), (0, 0, 0)), {})])
            if _more
            else (lambda make: [((make(1, 2, 2), places([[0, 3], [5, 2]]), (2, 3)), {})])
        ),
        reference=_unpool_reference,
        supports="f",
    )

# --- windows of random position ---------------------------------------------------------------------------------------


def _starts(xp: Namespace, sample: Array, size: int, out: int, window: int) -> Array:
    """Return where the windows along one dimension start: steps of one or the other length, by chance.

    B. Graham, "Fractional max-pooling", 2014.
    """
    last = xp.full((*sample.shape, min(out, 1)), size - window, dtype=xp.int64)
    if out <= 1:
        return last
    alpha = sample.dtype.type((size - window) / (out - 1))
    steps = xp.arange(out - 1).astype(sample.dtype)
    first = xp.floor(sample * alpha)[..., None]
    return xp.concatenate([(xp.floor((steps + sample[..., None]) * alpha) - first).astype(xp.int64), last], axis=-1)


def _fractional(
    xp: Namespace, self: Array, kernel: Ints, output_size: Ints, random_samples: Array
) -> tuple[Array, Array]:
    spatial = len(kernel)
    refuse_kinds(f"fractional_max_pool{spatial}d_out_frame", self, "biuc")
    _check_fractional(self, kernel, output_size, random_samples)
    lead, sizes = self.shape[:-spatial], self.shape[-spatial:]
    samples = random_samples.reshape(*lead, spatial).astype(self.dtype)
    flat: Array = None
    # The samples of an image stand in the order width, height; those of a volume depth, height, width.
    for axis, (n, o, k) in enumerate(zip(sizes, output_size, kernel, strict=True)):
        sample = samples[..., axis if spatial == 3 else 1 - axis]
        starts = _starts(xp, sample, n, o, k).reshape(*lead, *(o if a == axis else 1 for a in range(spatial)))
        flat = starts if flat is None else flat * n + starts
    best: Array = None
    index: Array = None
    for offset in _offsets(kernel, sizes):
        where = flat + offset
        candidate = max_gather(xp, self, where, spatial)
        if best is None:
            best, index = candidate, where
            continue
        better = (candidate > best) | (candidate != candidate)
        best, index = xp.where(better, candidate, best), xp.where(better, where, index)
    return best, index


def _offsets(kernel: Ints, sizes: Ints) -> list[int]:
    """Return how far in the flat input each element of a window is from the first."""
    found = [0]
    for k, n in zip(kernel, sizes, strict=True):
        found = [f * n + i for f in found for i in range(k)]
    return found


def _check_fractional(x: Array, kernel: Ints, out: Ints, samples: Array) -> None:
    spatial = len(kernel)
    name = "fractional_max_pool2d()" if spatial == 2 else "fractional_max_pool3d_out()"
    words = ("time", "height", "width")[-spatial:]
    if x.ndim not in (spatial + 1, spatial + 2) or 0 in x.shape[-spatial - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {spatial + 1}D or {spatial + 2}D tensor with non-empty dimensions, but got: "
            f"{list(x.shape)}"
        )
    if min(out) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(out)}: {[*x.shape[:-spatial], *out]}\nThe output "
            "has at least 0 elements in each dimension."
        )
    for word, n, o, k in zip(words, x.shape[-spatial:], out, kernel, strict=True):
        if o + k - 1 > n - (spatial == 3):  # volumes have to leave one more, in PyTorch
            raise RuntimeError(f"{name}: pool {word} {k} too large relative to input {word} {n}")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[2] != spatial:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {spatial}; got {samples.shape[2]}.")
    if samples.shape[1] != x.shape[-spatial - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[0] < (x.shape[0] if x.ndim == spatial + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")


def _fractional_samples(spatial: int) -> Samples:
    shape, kernel, out = ((2, 2, 6, 5), (2, 3), (4, 2)) if spatial == 2 else ((1, 2, 4, 4, 4), (2, 2, 1), (2, 1, 3))
    return lambda make: [
        ((distinct(make, shape), kernel, out, make(shape[0], 2, spatial, low=0.0, high=1.0).detach()), {}),
        ((distinct(make, shape[1:]), kernel, out, make(1, 2, spatial, low=0.0, high=1.0).detach()), {}),
    ]


def _fractional_reference(self: Array, kernel_size: Ints, output_size: Ints, random_samples: Array) -> list[Array]:
    """Windows start at Graham's ``floor(alpha (i + u)) - floor(alpha u)``, the last one at the end."""
    spatial = len(kernel_size)
    shape, lead = self.shape[-spatial:], self.shape[:-spatial]
    values, places_ = [], []
    for image, chances in zip(self.reshape(-1, *shape), random_samples.reshape(-1, spatial)):
        windows = []
        for n, m, k, u in zip(shape, output_size, kernel_size, chances if spatial == 3 else chances[::-1]):
            alpha = (n - k) / (m - 1) if m > 1 else 0
            starts = [int((i + u) * alpha) - int(u * alpha) for i in range(m - 1)] + [n - k]
            windows.append([range(start, start + k) for start in starts])
        found = pooled(largest, image, windows)
        values.append(found[0])
        places_.append(found[1])
    return [numpy.stack(part).reshape(*lead, *output_size) for part in (values, places_)]


for _spatial in (2, 3):
    operator(
        f"fractional_max_pool{_spatial}d(Tensor self, int[] kernel_size, int[] output_size, Tensor random_samples)",
        _fractional,
        outputs=("result0", "result1"),
        node=f"FractionalMaxPool{_spatial}DBackward0",
        method=False,
        public_name=False,
        derivatives={
            "self": lambda g, self, result1, kernel_size, F: F.max_unpool(
                g[0], result1, self.shape[len(self.shape) - len(kernel_size) :], True
            ),
        },
        doc="Return the largest elements of windows of random position, and their places.",
        samples=_fractional_samples(_spatial),
        reference=_fractional_reference,
        supports="f",
    )

del _spatial, _more
