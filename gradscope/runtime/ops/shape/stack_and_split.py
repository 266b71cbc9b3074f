"""Joining and splitting by other names: hstack, vstack, tensor_split, meshgrid and their kin, made of cat and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ...memory import dtype as dtypes
from ...tensor.creation import broadcast_shapes
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Operand, Out, Results, Shape, Sizes
from ..declaration.references import from_library
from ..declaration.registry import METHODS, OPERATORS, operator, public
from .reshape import axis_of
from .slice_and_cat import cat, slice_

_cat = cat.function
_unsqueeze = OPERATORS["unsqueeze"].function
_slice = slice_.function


def _each(tensors: tuple[Operand, ...], function: Callable[[Array], Array]) -> Results:
    """Apply `function` to one tensor, to several, or to a list of them."""
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return function(tensors[0])
    given = tensors[0] if len(tensors) == 1 else tensors
    return tuple(function(tensor) for tensor in given)


@public(method=False)
def atleast_1d(*tensors: Operand) -> Tensor:
    """Return each tensor with one dimension at least.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.atleast_1d(gs.tensor(3.0))
    tensor([3.])
    """
    return _each(tensors, lambda t: t if t._array.ndim else METHODS["reshape"](t, 1))


@public(method=False)
def atleast_2d(*tensors: Operand) -> Results:
    """Return each tensor with two dimensions at least, new ones in front.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.atleast_2d(gs.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """

    def widened(tensor: Array) -> Array:
        if not tensor._array.ndim:
            return METHODS["reshape"](tensor, 1, 1)
        return _unsqueeze(tensor, 0) if tensor._array.ndim == 1 else tensor

    return _each(tensors, widened)


@public(method=False)
def atleast_3d(*tensors: Operand) -> Results:
    """Return each tensor with three dimensions at least; a matrix gets a last one, a vector a first and a last one.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.atleast_3d(gs.tensor([1.0, 2.0])).shape
    gradscope.Size([1, 2, 1])
    """

    def widened(tensor: Array) -> Array:
        ndim = tensor._array.ndim
        if not ndim:
            return METHODS["reshape"](tensor, 1, 1, 1)
        if ndim == 1:
            return _unsqueeze(_unsqueeze(tensor, 0), -1)
        return _unsqueeze(tensor, -1) if ndim == 2 else tensor

    return _each(tensors, widened)


def _joined(name: str, tensors: Sequence[Tensor], dim: int, out: Out) -> Array:
    if not len(tensors):
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return _cat(list(tensors), dim, out=out)


@public(method=False)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the second dimension; vectors along their only one.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.hstack((gs.tensor([1, 2]), gs.tensor([3])))
    tensor([1, 2, 3])
    """
    widened = [atleast_1d(tensor) for tensor in tensors]
    return _joined("hstack", widened, 0 if widened and widened[0]._array.ndim == 1 else 1, out)


@public(method=False)
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the first dimension; vectors are rows.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.vstack((gs.tensor([1, 2]), gs.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return _joined("vstack", [atleast_2d(tensor) for tensor in tensors], 0, out)


@public(method=False)
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Another name of :func:`vstack`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.row_stack((gs.tensor([1, 2]), gs.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return vstack(tensors, out=out)


@public(method=False)
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the third dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.dstack((gs.tensor([1, 2]), gs.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _joined("dstack", [atleast_3d(tensor) for tensor in tensors], 2, out)


@public(method=False)
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the second dimension; vectors are columns.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.column_stack((gs.tensor([1, 2]), gs.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [t if t._array.ndim > 1 else METHODS["reshape"](t, t._array.size, 1) for t in tensors]
    return _joined("column_stack", columns, 1, out)


def _at_least_rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the block that a tensor is: a vector is a row."""
    return (1,) * (2 - len(shape)) + tuple(shape)


def _block_diag(xp: Namespace, tensors: Array) -> Array:
    for position, array in enumerate(tensors):
        if array.ndim > 2:
            raise RuntimeError(
                f"block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {array.ndim} "
                "dimensions"
            )
    shapes = [_at_least_rows(array.shape) for array in tensors]
    kind = dtypes.result_numpy(tensors)
    result = xp.zeros((sum(rows for rows, _ in shapes), sum(columns for _, columns in shapes)), dtype=kind)
    top = left = 0
    for array, (rows, columns) in zip(tensors, shapes, strict=True):
        result[top : top + rows, left : left + columns] = array.reshape(rows, columns)
        top, left = top + rows, left + columns
    return result


def _block_diag_backward(g: Gradient, tensors_shape: list[Shape], F: Namespace) -> list[Gradient]:
    parts: list[Gradient] = []
    top = left = 0
    for shape in tensors_shape:
        rows, columns = _at_least_rows(shape)
        block = F.slice(F.slice(g, 0, top, top + rows, 1), 1, left, left + columns, 1)
        parts.append(F.reshape(block, shape))
        top, left = top + rows, left + columns
    return parts


_blocks = operator(
    "block_diag(Tensor[] tensors)",
    _block_diag,
    method=False,
    public_name=False,
    derivatives={"tensors": _block_diag_backward},
    doc="Return the matrix with the given matrices on its diagonal and zeros elsewhere.",
    samples=lambda make: [(([make(2, 3), make(3), make()],), {}), (([make(2, 1)],), {})],
    reference=lambda tensors: from_library("scipy.linalg.block_diag")(*tensors),
)


@public(method=False)
def block_diag(*tensors: Operand) -> Tensor:
    """Return the matrix with the given matrices on its diagonal and zeros elsewhere.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.block_diag(gs.ones(1, 2), gs.ones(1, 1))
    tensor([[1., 1., 0.],
            [0., 0., 1.]])
    """
    return _blocks.function(tensors)


# --- splitting --------------------------------------------------------------------------------------------------------


@public
def tensor_split(self: Tensor, indices_or_sections: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of parts of a dimension: so many (the first ones longer by one), or between positions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor_split(gs.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if self._array.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = axis_of(dim, self._array.ndim)
    size = self._array.shape[axis]
    if hasattr(indices_or_sections, "_array"):
        indices_or_sections = indices_or_sections.tolist()
    if hasattr(indices_or_sections, "__index__"):
        sections = int(indices_or_sections)
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        short, longer = divmod(size, sections)
        cuts = [i * short + min(i, longer) for i in range(1, sections)]
    else:
        cuts = list(indices_or_sections)
    bounds = [0, *cuts, size]
    return tuple(_slice(self, axis, a, b, 1) for a, b in pairwise(bounds))


def _split_along(name: str, self: Array, indices_or_sections: Sizes, dim: int, least: int) -> tuple[Tensor, ...]:
    if self._array.ndim < least:
        raise RuntimeError(
            f"{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{self._array.ndim} dimensions!"
        )
    size = self._array.shape[dim]
    if hasattr(indices_or_sections, "__index__") and (indices_or_sections <= 0 or size % indices_or_sections):
        raise RuntimeError(
            f"{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not "
            f"divisible by the split_size {indices_or_sections}!"
        )
    return tensor_split(self, indices_or_sections, dim)


@public
def hsplit(self: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Split along the second dimension; a vector along its only one.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.hsplit(gs.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1],
            [3]]), tensor([[2],
            [4]]))
    """
    return _split_along("hsplit", self, indices_or_sections, 0 if self._array.ndim == 1 else 1, 1)


@public
def vsplit(self: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Split along the first dimension of two or more.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.vsplit(gs.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along("vsplit", self, indices_or_sections, 0, 2)


@public
def dsplit(self: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Split along the third dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> [x.shape for x in gs.dsplit(gs.ones(2, 3, 4), 2)]
    [gradscope.Size([2, 3, 2]), gradscope.Size([2, 3, 2])]
    """
    return _split_along("dsplit", self, indices_or_sections, 2, 3)


# --- grids ------------------------------------------------------------------------------------------------------------


@public(method=False)
def broadcast_tensors(*tensors: Operand) -> tuple[Tensor, ...]:
    """Expand all tensors to the shape that they broadcast to.

    Examples
    --------
    >>> import gradscope as gs
    >>> [x.shape for x in gs.broadcast_tensors(gs.ones(2, 1), gs.ones(3))]
    [gradscope.Size([2, 3]), gradscope.Size([2, 3])]
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    shape = broadcast_shapes(*(tensor._array.shape for tensor in given))
    return tuple(tensor if tensor._array.shape == shape else METHODS["expand"](tensor, *shape) for tensor in given)


@public(method=False)
def meshgrid(*tensors: Operand, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each vector expanded over the dimensions of the others.

    Parameters
    ----------
    *tensors : Tensor
        Vectors or 0-d tensors.
    indexing : {"ij", "xy"}
        "xy" swaps the first two dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.meshgrid(gs.tensor([1, 2]), gs.tensor([3, 4]), indexing="ij")
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for tensor in given:
        if tensor._array.ndim > 1:
            raise RuntimeError(f"Expected 0D or 1D tensor in the tensor list but got: {tensor._array.ndim}-D")
    swap = indexing == "xy" and len(given) > 1
    vectors = [given[1], given[0], *given[2:]] if swap else list(given)
    shape = [vector._array.size for vector in vectors]
    grids = []
    for axis, vector in enumerate(vectors):
        own = [1] * len(shape)
        own[axis] = shape[axis]
        grids.append(METHODS["expand"](METHODS["reshape"](vector, *own), *shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Operand) -> Tensor:
    """Return all combinations of the elements of vectors, one a row.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.cartesian_prod(gs.tensor([1, 2]), gs.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    if len(tensors) == 1:
        return tensors[0]
    return OPERATORS["stack"].function([METHODS["reshape"](grid, -1) for grid in meshgrid(*tensors)], 1)
