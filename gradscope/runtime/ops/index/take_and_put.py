"""Elements by their position in row-major order, or along one dimension: take, put, take_along_dim."""

from __future__ import annotations

import numpy

from ...memory import device as devices
from ...tensor import creation
from ...tensor.creation import broadcast_shapes
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Namespace, Shape, Sizes
from ..declaration.references import adjoint, placed
from ..declaration.registry import OPERATORS, operator, public
from ..execution import inplace_and_out
from ..shape.reshape import axis_of
from .accumulate_at import accumulate_at
from .gather_and_scatter import is_integer, kind_of, longs
from .indexing import check_bounds


def _take(xp: Namespace, self: Array, index: Array) -> Array:
    if not is_integer(index):
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {kind_of(index)}\nUse .long().")
    count = self.size
    message = f"out of range: tried to access index {{index}} on a tensor of {count} elements."
    check_bounds(index, count, message, -count)
    return self.reshape(-1)[index]


def _take_backward(xp: Namespace, self: Array, size: Sizes, index: Array) -> Array:
    whole = xp.zeros(size, dtype=self.dtype)
    accumulate_at(xp, "add", whole.reshape(-1), index.reshape(-1), self.reshape(-1))
    return whole


operator(
    "take(Tensor self, Tensor index)",
    _take,
    out="exact",
    derivatives={"self": lambda g, self_shape, index, F: F.take_backward(g, self_shape, index)},
    doc="Take elements by their position in row-major order.",
    samples=lambda make: [
        ((x := make(3, 4), longs(x, [[0, 11], [-1, 5]])), {}),
        ((x := make(3), longs(x, 1)), {}),
    ],
    reference="numpy.take",
)
operator(
    "take_backward(Tensor self, int[] size, Tensor index)",
    _take_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, index, F: F.take(g, index)},
    doc="The adjoint of take: zeros, to which each element is added where it came from.",
    samples=lambda make: [((x := make(2), (2, 2), longs(x, [3, 3])), {})],
    reference=lambda self, size, index: adjoint(lambda x: numpy.take(x, index), size, self),
)


def _put(xp: Namespace, self: Array, index: Array, source: Array, accumulate: bool = False) -> None:
    if self.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{kind_of(self)} and source.dtype = {kind_of(source)}\nConvert one with .to()."
        )
    if not is_integer(index):
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {kind_of(index)}\nUse .long().")
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    count = self.size
    message = f"out of range: tried to access index {{index}} on a tensor of {count} elements."
    check_bounds(index, count, message, -count)
    if not index.size:
        return
    if not self.ndim:
        self = self.reshape(1)
    # One index a dimension, so that a tensor of any strides is written where it lies.
    places = _coordinates(index.reshape(-1) % count, self.shape)
    if accumulate:
        accumulate_at(xp, "add", self, places, source.reshape(-1))
    else:
        self[places] = source.reshape(-1)


def _coordinates(position: Array, shape: Shape) -> tuple[Array, ...]:
    """Return the index in each dimension of flat positions."""
    found = []
    for size in reversed(shape):
        found.append(position % size)
        position = position // size
    return tuple(reversed(found))


def _zero_at(xp: Namespace, self: Array, index: Array) -> Array:
    result = self.copy(order="C")
    result.reshape(-1)[index.reshape(-1)] = 0
    return result


operator(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False)",
    write=_put,
    inplace=True,
    derivatives={
        "self": lambda g, index, accumulate, F: g if accumulate else F.put_zero(g, index),
        "source": lambda g, index, source_shape, F: F.reshape(F.take(g, index), source_shape),
    },
    doc="Return `self` with the elements of `source` written (or added) at positions in row-major order.",
    samples=lambda make: [
        ((x := make(3, 4), longs(x, [[0, 11], [-2, 5]]), make(2, 2)), {}),
        ((x := make(2, 3), longs(x, [1, 1]), make(2), True), {}),
    ],
    reference=lambda self, index, *rest: placed(self.reshape(-1), index, rest[0], add=rest[1:] == (True,)).reshape(
        self.shape
    ),
)
operator(
    "put_zero(Tensor self, Tensor index)",
    _zero_at,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, index, F: F.put_zero(g, index)},
    doc="Return `self` with zeros at positions in row-major order.",
    samples=lambda make: [((x := make(3, 4), longs(x, [0, -1])), {})],
    reference=lambda self, index: placed(self.reshape(-1), index, 0).reshape(self.shape),
)


def _from_the_front(indices: Array, self: Array, axis: int) -> Array:
    """Return indices along a dimension with negative ones counted from the front."""
    size, array = self._array.shape[axis], indices._array
    if array.dtype.kind != "i":
        return indices
    return type(indices)._wrap(devices.array_module(array).where(array < 0, array + size, array))


@public
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Take elements by their position along `dim`, the other dimensions broadcast; flat positions without `dim`.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([[30, 10, 20]])
    >>> gs.take_along_dim(x, gs.argsort(x), dim=1)
    tensor([[10, 20, 30]])
    """
    if dim is None:
        return OPERATORS["gather"].function(self.reshape(-1), 0, indices.reshape(-1), out=out)
    axis = axis_of(dim, self._array.ndim)
    if indices._array.ndim != self._array.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{self._array.ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    indices = _from_the_front(indices, self, axis)
    own, other = list(self._array.shape), list(indices._array.shape)
    size, count = own[axis], other[axis]
    own[axis] = other[axis] = 1
    shape = list(broadcast_shapes(own, other))
    wide = [*shape[:axis], size, *shape[axis + 1 :]], [*shape[:axis], count, *shape[axis + 1 :]]
    return OPERATORS["gather"].function(self.expand(*wide[0]), axis, indices.expand(*wide[1]), out=out)


@public
def narrow_copy(self: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None) -> Tensor:
    """Return a copy of `length` indices of dimension `dim` from `start`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.narrow_copy(gs.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    if out is not None:
        return inplace_and_out.into(out, "narrow_copy", [self], lambda: self.narrow(dim, start, length), exact=True)
    return self.narrow(dim, start, length).clone()


# --- which positions --------------------------------------------------------------------------------------------------


@public(method=False)
def unravel_index(indices: Tensor, shape: Sizes) -> tuple[Tensor, ...]:
    """Return the coordinates, one tensor a dimension, of positions in the row-major order of a shape.

    Raises
    ------
    TypeError
        If the positions are no integers.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.unravel_index(gs.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    if indices._dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}\nConvert them with .long().")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    found, rest = [], indices.long()
    for size in reversed(sizes):
        found.append(rest % size)
        rest = rest // size
    return tuple(reversed(found))


@public(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of `r` elements of a vector, in the order of their positions.

    Raises
    ------
    RuntimeError
        If `input` is no vector, or `r` is negative.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.combinations(gs.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    places = _combinations(input._array.shape[0], r, 0 if with_replacement else 1)
    return input[creation.tensor(places, device=input.device)]


def _combinations(count: int, r: int, step: int) -> numpy.ndarray:
    """Return the combinations of `r` of so many integers, in their order, each one `step` above the last at least."""
    chosen = numpy.arange(count).reshape(-1, 1)
    for _ in range(1, r):
        first = chosen[:, -1] + step
        following = numpy.maximum(count - first, 0)
        begins = numpy.cumsum(following) - following
        added = numpy.arange(following.sum()) + (first - begins).repeat(following)
        chosen = numpy.concatenate([chosen.repeat(following, 0), added[:, None]], 1)
    return chosen
