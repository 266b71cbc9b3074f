"""Sampling along a grid: images and volumes read at any place, and the grids of affine maps.

A place lies between a few elements, its taps. Which they are does not change under small moves; only the weights do,
and they are polynomials in how far the place is past the first tap, which is an affine function of the grid. So the
derivative is written in lookups of rows and arithmetic, and runs on tensors for the derivatives of higher order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from ...memory import device
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, Gradient, Ints, Make, Namespace, Sizes
from ..declaration.extremes import substituted
from ..declaration.references import adjoint
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import Samples
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import in_rows
from .separable_resampling import cubic_weights

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
CUBIC = -0.75

# --- geometry ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Axis:
    """The taps along one dimension of space, fixed while the grid moves a little; arrays of shape (N, places)."""

    places: list[Array]
    """For each tap its element, within bounds."""
    inside: list[Array] | None
    """For each tap whether it was within bounds; None if all are made to be."""
    past: Array
    """How far the place is past the first tap."""
    slope: Array
    """The derivative of that."""


def _pixels(coordinate: Array, size: int, align_corners: bool) -> tuple[Array, float]:
    """Return coordinates in elements, and their derivative."""
    if align_corners:
        return (coordinate + 1) * ((size - 1) / 2), (size - 1) / 2
    return ((coordinate + 1) * size - 1) / 2, size / 2


def _reflected(xp: Namespace, x: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return places reflected at the two edges until they are between them, and the sign of their derivative."""
    span = high - low
    if span <= 0:
        return xp.zeros_like(x), xp.zeros_like(x)
    moved = x - low
    distance = xp.absolute(moved)
    flips = xp.floor(distance / span)
    rest = distance - flips * span
    even = flips % 2 == 0
    sign = xp.where(moved < 0, -1.0, 1.0).astype(x.dtype)
    return xp.where(even, rest + low, high - rest), xp.where(even, sign, -sign)


def _clipped(xp: Namespace, x: Array, size: int) -> tuple[Array, Array]:
    """Return places brought within bounds, and their derivative."""
    within = (x > 0) & (x < size - 1)
    return xp.fmin(xp.fmax(x, 0), size - 1), within.astype(x.dtype)


def _padded(xp: Namespace, x: Array, size: int, padding: int, align_corners: bool) -> tuple[Array, Array]:
    """Return where a place outside is read, and the derivative of that."""
    if padding == ZEROS:
        # Far outside is as good as outside, and fits an integer; NaN is outside.
        return xp.fmin(xp.fmax(x, -3), size + 2), 1
    if padding == BORDER:
        return _clipped(xp, x, size)
    edges = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    x, sign = _reflected(xp, x, *edges)
    x, within = _clipped(xp, x, size)
    return x, sign * within


def _taps(
    xp: Namespace, first: Array, size: int, padding: int, align_corners: bool, offsets: Ints, *, each: bool = False
) -> tuple[list[Array], list[Array] | None]:
    """Return the elements that lie `offsets` past the first, and which of them are inside (None: all).

    `each` of them is padded; else the place between them has been, and one past the last element counts for nothing.
    """
    places, inside = [], []
    for step in offsets:
        at = first + step
        if padding == ZEROS or not each:
            inside.append((at >= 0) & (at <= size - 1))
        else:
            at, _ = _padded(xp, at, size, padding, align_corners)
        places.append(xp.fmin(xp.fmax(at, 0), size - 1).astype(xp.int64))
    return places, inside or None


def _axis(xp: Namespace, coordinate: Array, size: int, mode: int, padding: int, align_corners: bool) -> Axis:
    at, slope = _pixels(coordinate, size, align_corners)
    if mode == BICUBIC:
        # The taps are padded one by one, not the place between them.
        first = xp.floor(at)
        whole = xp.fmin(xp.fmax(first, -(2.0**31)), 2.0**31)
        places, inside = _taps(xp, whole, size, padding, align_corners, (-1, 0, 1, 2), each=True)
        return Axis(places, inside, at - first, slope)
    at, turn = _padded(xp, at, size, padding, align_corners)
    if mode == NEAREST:
        places, inside = _taps(xp, xp.rint(at), size, padding, align_corners, (0,))
        return Axis(places, inside, 0.0, 0.0)
    first = xp.floor(at)
    places, inside = _taps(xp, first, size, padding, align_corners, (0, 1))
    return Axis(places, inside, at - first, slope * turn)


def _geometry(
    xp: Namespace, grid: Array, sizes: Ints, mode: int, padding: int, align_corners: bool
) -> tuple[list[Axis], list[tuple[int, ...]]]:
    """Return the dimensions of space, outermost first, and the taps of each combination."""
    count = len(sizes)
    flat = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), count)
    axes = [_axis(xp, flat[..., count - 1 - a], size, mode, padding, align_corners) for a, size in enumerate(sizes)]
    return axes, list(itertools.product(*(range(len(a.places)) for a in axes)))


def _rows(xp: Namespace, axes: list[Axis], sizes: Ints, taps: tuple[int, ...]) -> Array:
    """Return, for one combination of taps, the rows of the table that has one for each element of each image."""
    flat: Array = 0
    for axis, size, tap in zip(axes, sizes, taps, strict=True):
        flat = flat * size + axis.places[tap]
    return flat + xp.arange(flat.shape[0]).reshape(-1, 1) * math.prod(sizes)


# --- weights ----------------------------------------------------------------------------------------------------------


def _weights(mode: int, t: Array) -> list[Array]:
    """Return the weights of the taps along one dimension at the distance `t` past the first."""
    if mode == NEAREST:
        return [1.0]
    return [1 - t, t] if mode == BILINEAR else cubic_weights(t, CUBIC)


def _slopes(mode: int, t: Array) -> list[Array]:
    """Return the derivatives of the weights."""
    if mode == BILINEAR:
        return [-1.0, 1.0]
    a, s = CUBIC, 1 - t
    return [_outer_slope(t + 1, a), _inner_slope(t, a), -_inner_slope(s, a), -_outer_slope(s + 1, a)]


def _inner_slope(x: Array, a: float) -> Array:
    return (x * (3 * (a + 2)) - 2 * (a + 3)) * x


def _outer_slope(x: Array, a: float) -> Array:
    return (x * (3 * a) - 10 * a) * x + 8 * a


def _beyond_edges(xp: Namespace, axes: list[Axis], taps: tuple[int, ...]) -> Array | None:
    """Return where one combination of taps is outside; None where it is nowhere, or where a device alone knows."""
    inside: Array = True
    for axis, tap in zip(axes, taps, strict=True):
        if axis.inside is not None:
            inside = inside & axis.inside[tap]
    return None if inside is True or (xp is numpy and inside.all()) else ~inside


def _product(factors: list[Array]) -> Array:
    result = factors[0]
    for factor in factors[1:]:
        result = factor if isinstance(result, float) and result == 1.0 else result * factor
    return result


# --- the operators ----------------------------------------------------------------------------------------------------


def _distances(axes: list[Axis], grid: Array) -> list[Array]:
    """Return how far each place is past its first tap, dimension by dimension; of a tensor, as functions of it."""
    if not hasattr(grid, "_array"):
        return [axis.past for axis in axes]
    moved = grid - grid.detach()
    count = len(axes)
    return [moved[..., count - 1 - a] * axis.slope + axis.past for a, axis in enumerate(axes)]


def _sample(xp: Namespace, input: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    _check(input, grid, mode)
    batch, channels, *sizes = input.shape
    spatial = tuple(grid.shape[1:-1])
    axes, combinations = _geometry(xp, grid, tuple(sizes), mode, padding, align_corners)
    weights = [_weights(mode, a.past) for a in axes]
    table = _table(xp, input)
    total: Array = None
    for taps in combinations:
        weight = _product([w[k] for w, k in zip(weights, taps, strict=True)])
        read = table.take(_rows(xp, axes, tuple(sizes), taps), axis=0)
        outside = _beyond_edges(xp, axes, taps)
        if outside is not None:
            read[outside] = 0  # a weight of 0 would make a NaN of an infinity
        if hasattr(weight, "shape"):
            read *= weight[..., None]
        total = read if total is None else xp.add(total, read, out=total)
    return in_rows(xp, total.swapaxes(1, 2)).reshape(batch, channels, *spatial)


def _table(xp: Namespace, input: Array) -> Array:
    """Return one row of channels for each element of each image."""
    batch, channels = input.shape[:2]
    count = math.prod(input.shape[2:])
    return in_rows(xp, input.reshape(batch, channels, count).swapaxes(1, 2)).reshape(batch * count, channels)


def _check(input: Array, grid: Array, mode: int) -> None:
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type(input.dtype)} but found {scalar_type(grid.dtype)}\n"
            "Bring input and grid to one dtype."
        )
    refuse_kinds(f"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl", input, "biuc")


def _sample_joint(
    g: Gradient,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, Gradient]:
    mode = interpolation_mode
    bare = grid._array if hasattr(grid, "_array") else grid
    xp = device.array_module(bare)
    batch, channels, *sizes = input.shape
    spatial, count = tuple(grid.shape[1:-1]), len(sizes)
    places = math.prod(spatial)
    axes, combinations = _geometry(xp, bare, tuple(sizes), mode, padding_mode, align_corners)
    recorded = hasattr(grid, "_array")
    wrapped = _constants(axes, recorded)
    distances = _distances(wrapped, F.reshape(grid, (batch, places, count)))
    weights = [_weights(mode, t) for t in distances]
    outside = [_beyond_edges(xp, axes, taps) for taps in combinations]
    rows = xp.stack([_rows(xp, axes, tuple(sizes), taps) for taps in combinations])
    rows = _as_constant(rows, recorded)
    columns = F.permute(F.reshape(g, (batch, channels, places)), (0, 2, 1))
    of_input = of_grid = None
    if needs[0]:
        parts = [_product([w[k] for w, k in zip(weights, taps, strict=True)]) for taps in combinations]
        nearest = isinstance(parts[0], float)  # one tap, of weight 1
        spread = columns if nearest else columns * F.unsqueeze(F.stack(parts, 0), -1)
        if any(mask is not None for mask in outside):
            nowhere = xp.zeros((batch, places), dtype=bool)
            masks = xp.stack([nowhere if mask is None else mask for mask in outside])
            spread = F.where(_as_constant(masks[..., None], recorded), F.zeros_like(spread), spread)
        gathered = F.embedding_backward(spread, rows, batch * math.prod(sizes), -1, False)
        of_input = F.reshape(
            F.permute(F.reshape(gathered, (batch, math.prod(sizes), channels)), (0, 2, 1)), tuple(input.shape)
        )
    if needs[1] and mode == NEAREST:
        of_grid = F.zeros_like(grid)
    elif needs[1]:
        # A product with ones is a sum over the channels; of short rows it is many times faster.
        ones = _as_constant(xp.ones(channels, dtype=bare.dtype), recorded)
        products = _products(input, columns, ones, rows, outside, F)
        of_grid = _grid_gradient(products, wrapped, weights, distances, combinations, mode, F)
        of_grid = F.reshape(of_grid, tuple(grid.shape))
    return of_input, of_grid


def _products(
    input: Array, columns: Array, ones: Array, rows: Array, outside: list[Array | None], F: Namespace
) -> list[Array]:
    """Return for each combination of taps what it reads times what comes in, summed over the channels; 0 outside."""
    batch, channels, *sizes = input.shape
    table = F.reshape(
        F.permute(F.reshape(input, (batch, channels, math.prod(sizes))), (0, 2, 1)),
        (batch * math.prod(sizes), channels),
    )
    found = []
    for k, mask in enumerate(outside):
        product = F.matmul(F.embedding_rows(table, rows[k], -1, False) * columns, ones)
        if mask is not None:
            product = F.where(_as_constant(mask, hasattr(product, "_array")), F.zeros_like(product), product)
        found.append(product)
    return found


def _grid_gradient(
    products: list[Array],
    axes: list[Axis],
    weights: list[list[Array]],
    distances: list[Array],
    combinations: list[tuple[int, ...]],
    mode: int,
    F: Namespace,
) -> Array:
    """Return the gradient of each place: how the weights change there, times what they weigh."""
    found = []
    for a, axis in enumerate(axes):
        slopes = _slopes(mode, distances[a])
        total: Array = None
        for taps, product in zip(combinations, products, strict=True):
            factors = [slopes[k] if b == a else weights[b][k] for b, k in enumerate(taps)]
            part = product * _product(factors)
            total = part if total is None else total + part
        found.append(total * axis.slope)
    return F.stack(found[::-1], -1)


def _as_constant(value: Array, recorded: bool) -> Array:
    """Return an array as what a derivative may mix with its other values: on tensors, a tensor."""
    if not recorded or not device.is_array(value):
        return value
    return Tensor._wrap(value)


def _constants(axes: list[Axis], recorded: bool) -> list[Axis]:
    return [
        Axis(
            a.places,
            a.inside,
            _as_constant(a.past, recorded),
            _as_constant(a.slope, recorded),
        )
        for a in axes
    ]


def _grid_samples(spatial: int) -> Samples:
    def make_samples(make: Make) -> Cases:
        size, out = ((3, 4), (2, 3)) if spatial == 2 else ((2, 3, 2), (1, 2, 2))
        found: Cases = []
        for mode in (BILINEAR, NEAREST, BICUBIC)[: 3 if spatial == 2 else 2]:
            for padding, align in ((ZEROS, False), (BORDER, True), (REFLECTION, False)):
                grid = make(2, *out, spatial, low=-1.3, high=1.3)
                found.append(((make(2, 2, *size), grid, mode, padding, align), {}))
        return found

    return make_samples


def _outside(finfo: numpy.finfo) -> list[list[float]]:
    """Return places on the edges, near and far outside; of one that no integer holds PyTorch reads where it likes."""
    near = [1.25, -2.625, 0.375, 7.125, -1.0, 0.75]
    return [[0.0], [-1.0, 1.0, 0.25, -0.125, 1.0], near, [1e3, -0.375, -1e6, 0.875, 1e5]]


def _sample_reference(input: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    """Return what is read, one place after the other."""
    sizes = input.shape[2:]
    found = numpy.zeros((*input.shape[:2], *grid.shape[1:-1]), dtype=input.dtype)
    for image, *place in numpy.ndindex(grid.shape[:-1]):
        coordinates = grid[(image, *place)][::-1]
        lines = [_line_reference(c, size, mode, padding, align_corners) for c, size in zip(coordinates, sizes)]
        for taps in itertools.product(*lines):
            elements, weights = zip(*taps)
            found[(image, slice(None), *place)] += input[(image, slice(None), *elements)] * math.prod(weights)
    return found


def _line_reference(
    coordinate: float, size: int, mode: int, padding: int, align_corners: bool
) -> list[tuple[int, float]]:
    """Return the elements along one dimension that are read, and their weights."""
    at = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
    at = at if mode == BICUBIC else _brought_back(at, size, padding, align_corners)
    if mode == NEAREST:
        taps = [(numpy.rint(at), 1.0)]
    else:
        reach, kernel = (2, _keys) if mode == BICUBIC else (1, lambda distance: 1 - distance)
        around = [math.floor(at) + step for step in range(1 - reach, reach + 1)]
        taps = [(element, kernel(abs(at - element))) for element in around]
    if mode == BICUBIC:
        taps = [(_brought_back(element, size, padding, align_corners), weight) for element, weight in taps]
    return [(int(element), weight) for element, weight in taps if 0 <= element <= size - 1]


def _keys(distance: float) -> float:
    """Return the cubic kernel of R. Keys (1981) with a = -3/4."""
    powers = distance ** numpy.arange(4)
    return float(powers @ ((1, 0, -2.25, 1.25) if distance <= 1 else (3, -6, 3.75, -0.75)))


def _brought_back(at: float, size: int, padding: int, align_corners: bool) -> float:
    """Return where a place outside is read."""
    if padding == ZEROS:
        return at
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        past = (at - low) % (2 * span)
        at = low + min(past, 2 * span - past)
    return min(max(at, 0.0), size - 1.0)


for _spatial in (2, 3):
    operator(
        f"grid_sampler_{_spatial}d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
        "bool align_corners)",
        _sample,
        method=False,
        node=f"GridSampler{_spatial}DBackward0",
        joint=_sample_joint,
        doc="Read an image or a volume at the places that a grid names.",
        samples=_grid_samples(_spatial),
        reference=_sample_reference,
        extremes=substituted(_grid_samples(_spatial), _outside),
        supports="f",
    )


@public(method=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Read images or volumes at the places that a grid names; modes as numbers, see ``nn.functional.grid_sample``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.grid_sampler(gs.arange(4.0).view(1, 1, 2, 2), gs.zeros(1, 1, 1, 2), 0, 0, True)
    tensor([[[[1.5000]]]])
    """
    shape, places = input._array.shape, grid._array.shape
    spatial = len(shape) - 2
    if shape[0] != places[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(shape)} and grid with sizes {list(places)}"
        )
    if places[-1] != spatial:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {spatial} in last dimension, but got grid with sizes "
            f"{list(places)}"
        )
    if spatial not in (2, 3) or len(places) != len(shape):
        raise RuntimeError(
            f"grid_sampler(): expected {len(shape) if spatial in (2, 3) else '4D or 5'}D input and grid with same "
            f"number of dimensions, but got input with sizes {list(shape)} and grid with sizes {list(places)}"
        )
    for axis in range(2, len(shape)):
        if not shape[axis]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(shape)} with dimension {axis} being empty"
            )
    if spatial == 3 and interpolation_mode == BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    function = OPERATORS[f"grid_sampler_{spatial}d"].function
    return function(input, grid, interpolation_mode, padding_mode, align_corners)


# --- grids of affine maps ---------------------------------------------------------------------------------------------


def _base(xp: Namespace, like: Array, sizes: Ints, align_corners: bool) -> Array:
    """Return the places of all elements and a one, of shape (elements, dimensions + 1)."""
    lines = []
    for size in sizes:
        # From -1 to 1, 0 in the middle, exactly: a place times a huge number is no sum to round in.
        steps = max(size - 1, 1) if align_corners else size
        lines.append((xp.arange(1 - size, size, 2) / steps).astype(like.dtype))
    columns = [
        xp.broadcast_to(line.reshape(-1, *(1,) * (len(sizes) - 1 - a)), sizes).reshape(-1)
        for a, line in enumerate(lines)
    ]
    return xp.stack([*columns[::-1], xp.ones_like(columns[0])], axis=-1)


def _affine_grid(xp: Namespace, theta: Array, size: Ints, align_corners: bool) -> Array:
    batch, sizes = size[0], tuple(size[2:])
    if theta.shape != (batch, len(sizes), len(sizes) + 1):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {len(sizes) + 1}] but got: "
            f"[{theta.shape[0]}, {theta.shape[-1]}].\nEach image has its own map."
        )
    grid = xp.matmul(_base(xp, theta, sizes, align_corners), theta.swapaxes(1, 2))
    return grid.reshape(batch, *sizes, len(sizes))


def _affine_grid_backward(xp: Namespace, grad: Gradient, size: Ints, align_corners: bool) -> Array:
    batch, sizes = size[0], tuple(size[2:])
    flat = grad.reshape(batch, math.prod(sizes), len(sizes))
    return xp.matmul(flat.swapaxes(1, 2), _base(xp, grad, sizes, align_corners))


def _affine_reference(theta: Array, size: Sizes, align_corners: bool) -> Array:
    lines = [numpy.linspace(-1, 1, n) if n > 1 else numpy.zeros(1) for n in size[2:]]
    if not align_corners:
        lines = [line * (n - 1) / n for line, n in zip(lines, size[2:])]
    places = numpy.stack([*numpy.meshgrid(*lines, indexing="ij")[::-1], numpy.ones(size[2:])], -1)
    return numpy.einsum("...j,nij->n...i", places.astype(theta.dtype), theta)


operator(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners)",
    _affine_grid,
    method=False,
    derivatives={"theta": lambda g, size, align_corners, F: F.affine_grid_generator_backward(g, size, align_corners)},
    doc="Return where each element of an image or a volume comes from under an affine map, as grid_sampler takes it.",
    samples=lambda make: [
        ((make(2, 2, 3), (2, 1, 3, 2), False), {}),
        ((make(1, 2, 3), (1, 2, 1, 3), True), {}),
        ((make(1, 3, 4), (1, 1, 2, 1, 3), False), {}),
    ],
    reference=_affine_reference,
    supports="f",
)
operator(
    "affine_grid_generator_backward(Tensor grad, int[] size, bool align_corners)",
    _affine_grid_backward,
    method=False,
    public_name=False,
    derivatives={"grad": lambda g, size, align_corners, F: F.affine_grid_generator(g, size, align_corners)},
    doc="The adjoint of affine_grid_generator.",
    samples=lambda make: [((make(2, 3, 2, 2), (2, 1, 3, 2), False), {})],
    reference=lambda grad, size, align_corners: adjoint(
        lambda theta: _affine_reference(theta, size, align_corners), (size[0], len(size) - 2, len(size) - 1), grad
    ),
    supports="f",
)

del _spatial
