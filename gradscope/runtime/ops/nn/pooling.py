"""Pooling over any number of spatial dimensions: the largest element, or the mean, of each window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy

from ...kernels import threads
from ...tensor import creation
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Ints, Make, Namespace, Shape, Sizes
from ..declaration.references import adjoint, largest, pooled, windows_along
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import Samples
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import is_half, single
from ..index.accumulate_at import accumulate_at
from .convolution import kernel_places, pad_array, several, times


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
            f"Given input size: ({times(spatial)}). Calculated output size: ({times(tuple(sizes))}). Output size is "
            "too small"
        )
    return tuple(sizes)


def _check_pool(kernel: Ints, padding: Ints) -> None:
    for k, p in zip(kernel, padding, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}\nCut the input instead: narrow(), slices.")
        if 2 * p > k:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation=1"
            )


def _after(spatial: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """Return how much padding the last windows need."""
    return tuple(
        max((o - 1) * s + d * (k - 1) + 1 - n - p, 0)
        for n, k, o, s, p, d in zip(spatial, kernel, out, stride, padding, dilation, strict=True)
    )


def _max_pool(
    xp: Namespace, self: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Array, Array]:
    _check_pool(kernel, padding)
    refuse_kinds(f"max_pool{len(kernel)}d", self, "bc")
    lead = self.ndim - len(kernel)
    spatial = self.shape[lead:]
    out = pool_size(spatial, kernel, stride, padding, dilation, ceil_mode)
    lowest = -math.inf if self.dtype.kind == "f" else xp.iinfo(self.dtype).min
    padded = pad_array(xp, self, padding, _after(spatial, kernel, out, stride, padding, dilation), lowest)
    lines = padded.reshape(-1, *padded.shape[lead:])
    best = xp.empty((len(lines), *out), dtype=self.dtype)
    index = xp.empty(best.shape, dtype="int64")
    settings = tuple(map(tuple, (spatial, kernel, out, stride, padding, dilation)))
    places, *tables = _window_places(*settings)
    numbers, table, corners = map(xp.asarray, tables)

    def work(some: slice) -> None:
        best[some] = lowest
        which = xp.empty(best[some].shape, dtype=numbers.dtype)
        which[...] = numbers
        _take_largest(xp, lines[some], places, best[some], which)
        xp.add(table.take(which), corners, out=index[some])

    _over_images(lines, out, work)
    return best.reshape(*self.shape[:lead], *out), index.reshape(*self.shape[:lead], *out)


_BLOCK = 1 << 17


def _over_images(images: Array, out: Ints, work: Callable[[slice], None]) -> None:
    """Call `work` with some images at a time, of which results of sizes `out` are computed; threads share them.

    On the host they are a few, which stay in the processor's cache.
    """
    if type(images) is not numpy.ndarray:
        work(slice(0, len(images)))
        return
    step = max(_BLOCK // max(math.prod(out), 1), 1)

    def share(part: slice) -> None:
        for some in threads.blocks(part, step):
            work(some)

    threads.over(len(images), share, math.prod(images.shape[1:]))


def _take_largest(xp: Namespace, x: Array, places: list[tuple[slice, ...]], best: Array, which: Array) -> None:
    """Write the largest elements of windows where they exceed what is there, or are NaN, and which they are."""
    candidate = xp.empty_like(best)
    for number, slices in enumerate(places):
        candidate[...] = x[(slice(None), *slices)]
        better = candidate > best
        if best.dtype.kind == "f":
            better |= candidate != candidate
        # Without a branch for each element. A NaN stays, and a later place has a larger number.
        xp.maximum(best, candidate, out=best)
        xp.maximum(which, better * which.dtype.type(number), out=which)


@lru_cache(maxsize=256)
def _window_places(
    spatial: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> tuple[list[tuple[slice, ...]], numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Return what a window meets, and what its indices are made of.

    That is the input that each place in the kernel meets, the number of the first place in each window that is no
    padding, how far in the flat input each place is from the corner of its window, and where the corners are.
    """
    found = list(kernel_places(kernel, out, stride, dilation))
    numbers, corners = numpy.zeros(out, int), numpy.zeros(out, int)
    table = numpy.zeros(len(found), int)
    for axis, (n, k, o, s, p, d) in enumerate(zip(spatial, kernel, out, stride, padding, dilation, strict=True)):
        start = (numpy.arange(o) * s - p).reshape(-1, *(1,) * (len(out) - 1 - axis))
        numbers = numbers * k + numpy.maximum(-(start // d), 0)
        corners = corners * n + start
        table = table * n + [position[axis] * d for position, _ in found]
    small = numpy.uint8 if len(found) <= 256 else numpy.int32
    return [slices for _, slices in found], numbers.astype(small), table, corners


def max_scatter(xp: Namespace, self: Array, indices: Array, input_size: Ints, overlap: bool) -> Array:
    """Return zeros with each element where its index says, added up if several may go to one place."""
    lead = self.shape[: self.ndim - len(input_size)]
    rows, size = math.prod(lead), math.prod(input_size)
    result = xp.zeros((rows * size,), dtype=self.dtype)
    count = math.prod(indices.shape[len(lead) :])
    at = (indices.reshape(rows, count) + xp.arange(rows).reshape(rows, 1) * size).reshape(-1)
    if overlap:
        accumulate_at(xp, "add", result, at, self.reshape(-1))
    else:
        result[at] = self.reshape(-1)
    return result.reshape(*lead, *input_size)


def max_gather(xp: Namespace, self: Array, indices: Array, spatial: int) -> Array:
    """Return the elements at indices into the flat last dimensions."""
    lead = self.shape[: self.ndim - spatial]
    rows = math.prod(lead)
    size = math.prod(self.shape[self.ndim - spatial :])
    count = math.prod(indices.shape[len(lead) :])
    at = indices.reshape(rows, count) + xp.arange(rows).reshape(rows, 1) * size
    return self.reshape(-1)[at].reshape(indices.shape)


def _overlap(kernel: Ints, stride: Ints, dilation: Ints) -> bool:
    return any(d * (k - 1) + 1 > s for k, s, d in zip(kernel, stride, dilation, strict=True))


def places(rows: Sequence[object]) -> Array:
    """Return indices for samples."""
    return creation.tensor([rows])


def _max_pool_samples(spatial: int) -> Samples:
    """Return samples for windows over `spatial` dimensions: plain ones, and (in two) overlapping and padded ones."""
    if spatial != 2:
        arguments = ((2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False)
        return lambda make: [((distinct(make, (1, 1, 2, 2, 4)), *arguments), {})]
    return lambda make: [
        ((distinct(make), (2, 2), (2, 2), (0, 0), (1, 1), False), {}),
        ((distinct(make), (3, 2), (1, 2), (1, 0), (1, 1), True), {}),
        ((distinct(make, (1, 4, 6)), (2, 2), (2, 2), (0, 0), (1, 1), False), {}),
    ]


def _avg_pool_samples(spatial: int) -> Samples:
    """Return samples for windows over `spatial` dimensions."""
    if spatial != 2:
        arguments = ((2, 2, 2), (2, 2, 2), (0, 0, 0), False, True, None)
        return lambda make: [((make(1, 2, 4, 4, 4), *arguments), {})]
    return lambda make: [
        ((make(1, 2, 4, 5), (2, 3), (2, 1), (1, 1), False, True, None), {}),
        ((make(2, 5, 5), (2, 2), (2, 2), (0, 0), True, False, None), {}),
        ((make(2, 4, 4), (2, 2), (2, 2), (0, 0), False, True, 3), {}),
    ]


def distinct(make: Make, shape: tuple[int, ...] = (1, 2, 4, 6)) -> Tensor:
    """Return a tensor for samples of which no two elements are equal."""
    # No two elements are equal, so that the maximum does not change under small differences.
    x = make(*shape)
    count = x.numel()
    order = (creation.arange(count) * 29 % count).reshape(shape)
    return (x.detach() * 0.01 + order).requires_grad_(x.requires_grad)


def _max_pool_reference(
    self: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> list[Array]:
    shape = self.shape[self.ndim - len(kernel_size) :]
    windows = []
    for n, k, step, p, d in zip(shape, kernel_size, stride, padding, dilation):
        whole = windows_along(n, k, step, p, d, ceil_mode)
        windows.append([range(max(w.start, w.start % d), min(w.stop, n), d) for w in whole])
    return pooled(largest, self, windows)


def _max_unpool_reference(self: Array, indices: Array, input_size: Ints, *rest: Any) -> Array:
    """Values that go to one place are added up; of places without one, nothing."""
    lead = self.shape[: self.ndim - len(input_size)]
    result = numpy.zeros((int(numpy.prod(lead)), int(numpy.prod(input_size))), self.dtype)
    flat = indices.reshape(len(result), -1)
    for row, (places_, values) in enumerate(zip(flat, self.reshape(flat.shape))):
        numpy.add.at(result[row], places_, values)
    return result.reshape(*lead, *input_size)


def _max_gather_reference(self: Array, indices: Array, spatial: int) -> Array:
    rows = int(numpy.prod(indices.shape[: indices.ndim - spatial]))
    flat = indices.reshape(rows, -1)
    return numpy.take_along_axis(self.reshape(rows, -1), flat, 1).reshape(indices.shape)


def _avg_pool_reference(
    self: Array,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    shape = self.shape[self.ndim - len(kernel_size) :]
    windows = [windows_along(n, k, s, p, 1, ceil_mode) for n, k, s, p in zip(shape, kernel_size, stride, padding)]
    inside = [[range(max(w.start, 0), min(w.stop, n)) for w in ranges] for n, ranges in zip(shape, windows)]
    (total,) = pooled(lambda places_, values: (values.sum(1),), self, inside)
    # What counts of a window: what lies in the padding too, but not what hangs over it.
    counted = [[range(w.start, min(w.stop, n + p)) for w in ranges] for n, p, ranges in zip(shape, padding, windows)]
    chosen = counted if count_include_pad else inside
    counts = [numpy.array([len(w) for w in ranges]) for ranges in chosen]
    return total / (_outer(counts) if divisor_override is None else divisor_override)


def _outer(vectors: list[Array]) -> Array:
    found = numpy.ones((1,) * len(vectors))
    for vector in numpy.ix_(*vectors):
        found = found * vector
    return found


def _avg_unpool_reference(self: Array, input_size: Ints, *window: Any) -> Array:
    size = (*self.shape[: self.ndim - len(input_size)], *input_size)
    return adjoint(lambda x: _avg_pool_reference(x, *window), size, self)


for _spatial in (2, 3):
    operator(
        f"max_pool{_spatial}d_with_indices(Tensor self, int[] kernel_size, int[] stride, int[] padding, "
        "int[] dilation, bool ceil_mode)",
        _max_pool,
        images=1,
        outputs=("result0", "result1"),
        node=f"MaxPool{_spatial}DWithIndicesBackward0",
        method=False,
        public_name=False,
        derivatives={
            "self": lambda g, self, result1, kernel_size, stride, dilation, F: F.max_unpool(
                g[0], result1, self.shape[len(self.shape) - len(kernel_size) :], _overlap(kernel_size, stride, dilation)
            ),
        },
        doc="Return the largest element of each window, and where in the flat input it is.",
        samples=_max_pool_samples(_spatial),
        reference=_max_pool_reference,
        supports="f",
    )
operator(
    "max_unpool(Tensor self, Tensor indices, int[] input_size, bool overlap)",
    max_scatter,
    images=1,
    method=False,
    public_name=False,
    node="MaxPoolWithIndicesBackwardBackward0",
    derivatives={"self": lambda g, indices, input_size, F: F.max_gather(g, indices, len(input_size))},
    doc="The adjoint of max pooling: each gradient goes where the largest element was.",
    samples=lambda make: [((make(1, 2, 2), places([[0, 3], [1, 2]]), (4,), False), {})],
    reference=_max_unpool_reference,
    supports="f",
)
operator(
    "max_gather(Tensor self, Tensor indices, int spatial)",
    max_gather,
    images=1,
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, self_shape, indices, spatial, F: F.max_unpool(
            g, indices, self_shape[len(self_shape) - spatial :], True
        ),
    },
    doc="Return the elements at the indices of max pooling.",
    samples=lambda make: [((make(1, 2, 4), places([[0, 3], [1, 2]]), 1), {})],
    reference=_max_gather_reference,
    supports="f",
)


def _divisors(
    xp: Namespace,
    spatial: Ints,
    kernel: Ints,
    out: Ints,
    stride: Ints,
    padding: Ints,
    include_pad: bool,
    override: int | None,
) -> Array:
    if override is not None:
        return override
    count: Array = 1
    for axis, (n, k, o, s, p) in enumerate(zip(spatial, kernel, out, stride, padding, strict=True)):
        start = xp.arange(o) * s - p
        end = xp.minimum(start + k, n + p)
        if not include_pad:
            start, end = xp.maximum(start, 0), xp.minimum(end, n)
        count = count * (end - start).reshape(-1, *(1,) * (len(out) - 1 - axis))
    return count


def _avg_pool(
    xp: Namespace,
    self: Array,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    _check_pool(kernel, padding)
    if self.dtype != "int64":  # of the integers PyTorch takes only these, and cuts their means
        refuse_kinds("avg_pool2d" if len(kernel) == 2 else "avg_pool3d_out_frame", self, "biuc")
    if is_half(self):
        rest = kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
        return _avg_pool(xp, single(self), *rest).astype(self.dtype)
    one = (1,) * len(kernel)
    spatial = self.shape[self.ndim - len(kernel) :]
    out = pool_size(spatial, kernel, stride, padding, one, ceil_mode)
    lead = self.ndim - len(kernel)
    padded = pad_array(xp, self, padding, _after(spatial, kernel, out, stride, padding, one))
    images = padded.reshape(-1, *padded.shape[lead:])
    result = xp.empty((len(images), *out), dtype=self.dtype)
    count = _divisors(xp, spatial, kernel, out, stride, padding, count_include_pad, divisor_override)
    first, *others = [slices for _, slices in kernel_places(kernel, out, stride, one)]

    def average(some: slice) -> None:
        total = images[(some, *first)].copy()
        for slices in others:
            total += images[(some, *slices)]
        result[some] = total / count

    _over_images(images, out, average)
    return result.reshape(*self.shape[:lead], *out)


def _avg_unpool(
    xp: Namespace,
    self: Array,
    input_size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    lead = self.ndim - len(kernel)
    out, one = self.shape[lead:], (1,) * len(kernel)
    count = _divisors(xp, input_size, kernel, out, stride, padding, count_include_pad, divisor_override)
    each = (self / count).astype(self.dtype, copy=False)
    after = _after(input_size, kernel, out, stride, padding, one)
    size = tuple(p + n + a for p, n, a in zip(padding, input_size, after, strict=True))
    whole = xp.zeros((*self.shape[:lead], *size), dtype=self.dtype)
    for _, slices in kernel_places(kernel, out, stride, one):
        whole[(Ellipsis, *slices)] += each
    inside = tuple(slice(p, p + n) for p, n in zip(padding, input_size, strict=True))
    return xp.ascontiguousarray(whole[(Ellipsis, *inside)])


_POOLING = (
    "int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override"
)


def _avg_pool_self(
    g: Gradient,
    self_shape: Shape,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    F: Namespace,
) -> Gradient:
    spatial = self_shape[len(self_shape) - len(kernel_size) :]
    return F.avg_unpool(g, spatial, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


for _spatial in (2, 3):
    operator(
        f"avg_pool{_spatial}d(Tensor self, {_POOLING})",
        _avg_pool,
        images=1,
        node=f"AvgPool{_spatial}DBackward0",
        method=False,
        public_name=False,
        derivatives={"self": _avg_pool_self},
        doc="Return the mean of each window.",
        samples=_avg_pool_samples(_spatial),
        reference=_avg_pool_reference,
        supports="f",
    )


def _avg_pool_of_grad(
    g: Gradient,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    F: Namespace,
) -> Gradient:
    function = getattr(F, f"avg_pool{len(kernel_size)}d")
    return function(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


operator(
    f"avg_unpool(Tensor self, int[] input_size, {_POOLING})",
    _avg_unpool,
    images=1,
    method=False,
    public_name=False,
    node="AvgPoolBackwardBackward0",
    derivatives={"self": _avg_pool_of_grad},
    doc="The adjoint of average pooling.",
    samples=lambda make: [((make(1, 2, 2, 3), (4, 6), (2, 2), (2, 2), (0, 0), False, True, None), {})],
    reference=_avg_unpool_reference,
    supports="f",
)


# --- arguments --------------------------------------------------------------------------------------------------------


def window_sizes(spatial: int, kernel_size: Sizes, stride: Sizes, padding: Sizes) -> tuple[Ints, Ints, Ints]:
    """Return size, stride and padding of windows; the stride is the size unless given."""
    kernel = several(kernel_size, spatial, "kernel_size")
    steps = kernel if stride is None or stride in ([], ()) else several(stride, spatial, "stride")
    if min(*kernel, *steps) <= 0:
        raise RuntimeError(
            f"kernel size and stride must be greater than zero, but got kernel_size={kernel_size}, stride={stride}\n"
            "The stride of a window is at least 1."
        )
    return kernel, steps, several(padding, spatial, "padding")


def _check_dimensions(x: Array, spatial: int) -> None:
    shape = x._array.shape
    if len(shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected for input\nIts shape is "
            f"{list(shape)}: (batch,) channels and {spatial} dimensions of space are wanted."
        )
    if 0 in shape[-spatial - 1 :]:
        raise RuntimeError(
            f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(shape)}"
        )


def as_image(signal: Array, name: str) -> Array:
    """Return a signal as an image of height 1: pooling in one dimension is that of two."""
    shape = signal._array.shape
    if len(shape) not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )
    return signal.unsqueeze(-2)


def _in_rows(values: Sizes, name: str, least: int) -> Ints:
    """Return the setting of a window of height 1."""
    return (least, *several(values, 1, name))


def max_pool(
    spatial: int,
    input: Array,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window, over `spatial` dimensions, and where in the flat input it is."""
    if spatial == 1:
        _check_signal(input, kernel_size, padding)
        kernel, steps = _in_rows(kernel_size, "kernel_size", 1), stride
        if stride is not None and stride not in ([], ()):
            steps = _in_rows(stride, "stride", 1)
        edges, spread = _in_rows(padding, "padding", 0), _in_rows(dilation, "dilation", 1)
        values, indices = max_pool(2, as_image(input, "max_pool1d"), kernel, steps, edges, spread, ceil_mode)
        return values.squeeze(-2), indices.squeeze(-2)
    _check_dimensions(input, spatial)
    sizes = window_sizes(spatial, kernel_size, stride, padding)
    spread = several(dilation, spatial, "dilation")
    if min(spread) <= 0:
        raise RuntimeError(
            "dilation should be greater than zero, but got "
            + " ".join(f"dilation{axis}: {d}" for axis, d in zip("THW"[-spatial:], spread, strict=True))
        )
    values, indices = OPERATORS[f"max_pool{spatial}d_with_indices"].function(input, *sizes, spread, ceil_mode)
    return values, indices


def _check_signal(input: Array, kernel_size: Sizes, padding: Sizes) -> None:
    shape = input._array.shape
    if len(shape) not in (2, 3):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )
    (kernel,), (pad,) = several(kernel_size, 1, "kernel_size"), several(padding, 1, "padding")
    if kernel <= 0:
        raise RuntimeError(f"max_pool1d() kernel_size must be greater than zero, but got {kernel}")
    if not 0 <= 2 * pad <= kernel:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={pad} and "
            f"kernel_size={kernel}"
        )


def avg_pool(
    spatial: int,
    input: Array,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Return the mean of each window, over `spatial` dimensions."""
    if spatial == 1:
        image, kernel = as_image(input, "avg_pool1d"), _in_rows(kernel_size, "kernel_size", 1)
        steps = stride if stride is None or stride in ([], ()) else _in_rows(stride, "stride", 1)
        edges = _in_rows(padding, "padding", 0)
        return avg_pool(2, image, kernel, steps, edges, ceil_mode, count_include_pad).squeeze(-2)
    _check_dimensions(input, spatial)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero\nIt divides the sum of each window; None counts its elements.")
    windows = window_sizes(spatial, kernel_size, stride, padding)
    function = OPERATORS[f"avg_pool{spatial}d"].function
    return function(input, *windows, ceil_mode, count_include_pad, divisor_override)


@public(method=False)
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the largest element of each window of signals (N, C, L).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.max_pool1d(gs.tensor([[1.0, 2.0, 3.0, 5.0]]), 2)
    tensor([[2., 5.]])
    """
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@public(method=False)
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window of signals (N, C, L), and where it is.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.max_pool1d_with_indices(gs.tensor([[1.0, 2.0, 5.0, 3.0]]), 2)
    (tensor([[2., 5.]]), tensor([[1, 2]]))
    """
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


@public(method=False)
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the largest element of each window of images (N, C, H, W).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.max_pool2d(gs.arange(16.0).view(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@public(method=False)
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the largest element of each window of volumes (N, C, D, H, W).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.max_pool3d(gs.ones(1, 2, 4, 4, 4), 2).shape
    gradscope.Size([1, 2, 2, 2, 2])
    """
    return max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@public(method=False)
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of signals (N, C, L).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.avg_pool1d(gs.tensor([[1.0, 2.0, 3.0, 5.0]]), 2)
    tensor([[1.5000, 4.0000]])
    """
    return avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


del _spatial
