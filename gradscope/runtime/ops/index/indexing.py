"""``tensor[...]`` and ``tensor[...] = value``, and the operators behind them.

Integers, slices, None and Ellipsis are a chain of views, as in PyTorch; tensors, masks and lists that remain are one
``index`` (or ``index_put_``) of the view.
"""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Sequence

import numpy

from ... import events, state
from ...kernels import forms, loading
from ...kernels.copies import taken
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...memory.elements import as_element
from ...memory.storage import memory_of, overlaps_itself
from ...tensor import creation, tangents
from ...tensor.from_python import to_array
from ...tensor.tensor import Tensor
from ...tensor.views import CopySlices, edge_of
from ...user_warnings import warn
from ..declaration.annotations import (
    Argument,
    Array,
    Cases,
    Dims,
    GraphNode,
    Index,
    Make,
    Namespace,
    Number,
    Operand,
    Shape,
    Sizes,
)
from ..declaration.references import adjoint, placed
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution import general, inplace_and_out
from ..execution.bare_functions import in_rows, writable_copy
from ..shape import slice_and_cat
from .accumulate_at import accumulate_at

# --- index arrays -----------------------------------------------------------------------------------------------------


def key_of(arrays: Array, dims: Dims) -> tuple[Index, ...]:
    """Return the key of an array that has `arrays` at the dimensions `dims` and everything elsewhere."""
    key: list[Index] = []
    position = 0
    for array, dim in zip(arrays, dims, strict=True):
        key += [slice(None)] * (dim - position)
        key.append(array)
        position = dim + width_of(array)
    return tuple(key)


def width_of(array: Array) -> int:
    """Return the number of dimensions that an index array takes: a mask takes as many as it has."""
    return array.ndim if array.dtype.kind == "b" else 1


def check_masks(shape: Shape, arrays: Array, dims: Dims) -> None:
    """Raise IndexError for a mask of another shape than the dimensions it takes; NumPy lets an empty one pass."""
    for position, (array, dim) in enumerate(zip(arrays, dims, strict=True)):
        wanted = shape[dim : dim + width_of(array)]
        if array.dtype.kind == "b" and tuple(array.shape) != tuple(wanted):
            at = next((i for i, (a, b) in enumerate(zip(array.shape, wanted)) if a != b), 0)
            raise IndexError(
                f"The shape of the mask {list(array.shape)} at index {at} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {dim + at}\nThis is index number {position}."
            )


def index_error(shape: Shape, arrays: Array, error: Exception) -> Exception:
    """Translate an array module's complaint about index arrays into PyTorch's."""
    text = str(error)
    if "broadcast" in text:
        shapes = ", ".join(str(list(a.shape)) for a in arrays)
        return IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}\n"
            "Give them one shape, or dimensions of size 1."
        )
    return IndexError(text.replace("for axis", "for dimension") + f"\nThe shape is {list(shape)}.")


def check_bounds(index: Array, size: int, message: str, low: int = 0) -> None:
    """Raise IndexError for a host index array that leaves ``range(low, size)``.

    A device is not asked: that would wait for it. CuPy wraps such indices around.
    """
    if type(index) is devices.ndarray and index.size:
        for value in (int(index.min()), int(index.max())):
            if not low <= value < size:
                raise IndexError(message.format(index=value, size=size))


BLOCK = 1 << 16
"""Elements that are added at once on the CPU where rows are added to rows."""


def add_at(xp: Namespace, target: Array, arrays: Sequence[Array], dims: Dims, values: Array) -> None:
    """Add `values` to the elements of `target` that `arrays` at `dims` choose, once for each time they do."""
    if len(arrays) == 1 and arrays[0].dtype.kind == "b":
        target[key_of(arrays, dims)] += values
        return
    adjacent = all(later == dim + width_of(a) for a, dim, later in zip(arrays, dims, dims[1:]))
    if not adjacent or not target.flags.c_contiguous or target.ndim == 0:
        accumulate_at(xp, "add", target, key_of(arrays, dims), values)
        return
    # One flat position an element: an indexed loop over one dimension is several times faster than a fancy one.
    flat = [part for array in arrays for part in (array.nonzero() if array.dtype.kind == "b" else (array,))]
    first, count = dims[0], len(flat)
    middle = target.shape[first : first + count]
    position: Array = 0
    for index, size in zip(flat, middle, strict=True):
        check_bounds(index, size, "index {index} is out of bounds for axis 0 with size {size}", -size)
        position = position * size + _from_the_front(index, size)
    outer, inner, whole = math.prod(target.shape[:first]), math.prod(target.shape[first + count :]), math.prod(middle)
    values = xp.broadcast_to(values, (*target.shape[:first], *position.shape, *target.shape[first + count :]))
    position = position.reshape(-1)
    loops = _loops_for(target, values) if outer != 1 and inner == 1 else None
    if loops is not None:
        columns = numpy.ascontiguousarray(values.reshape(outer, position.size))
        loops.add_columns(target.reshape(outer, whole), position.astype("int64", copy=False), columns)
        return
    if outer != 1:
        position = (xp.arange(outer).reshape(-1, 1) * whole + position).reshape(-1)
    _add_rows(xp, target.reshape(-1), position, values.reshape(position.size, inner))


def _from_the_front(index: Array, size: int) -> Array:
    """Return indices as counted from the front; to divide takes longer than to look whether any is negative."""
    if type(index) is devices.ndarray and index.size and index.min() >= 0:
        return index
    return index % max(size, 1)


def _are_large(total: Array, values: Array) -> bool:
    """Whether many numbers are added on the CPU, of the dtype of the total."""
    return values.size >= forms.LEAST and type(total) is devices.ndarray and total.dtype.char == values.dtype.char


def _loops_for(total: Array, values: Array) -> Namespace | None:
    """Return the compiled loops, where they are for the arrays."""
    return loading.compiled("index_loops") if _are_large(total, values) and total.dtype.char == "f" else None


def _add_rows(xp: Namespace, flat: Array, places: Array, rows: Array) -> None:
    """Add `rows` to those rows of a flat array that `places` count, in blocks whose indices stay in the cache."""
    width = rows.shape[1]
    loops = _loops_for(flat, rows)
    if loops is not None:
        given = places.astype("int64", copy=False), xp.ascontiguousarray(rows)
        loops.add_rows(flat.reshape(-1, width), *given)
        return
    if width == 1:
        accumulate_at(xp, "add", flat, places, rows.reshape(-1))
        return
    if _are_large(flat, rows) and flat.dtype.char in "fd" and flat.size <= 2 * rows.size:
        _add_product(flat.reshape(-1, width), places, rows)
        return
    within = xp.arange(width)
    step = max(1, BLOCK // max(width, 1)) if type(flat) is devices.ndarray else max(places.size, 1)
    for start in range(0, places.size, step):
        block = places[start : start + step, None] * width + within
        accumulate_at(xp, "add", flat, block.reshape(-1), rows[start : start + step].reshape(-1))


def _add_product(total: Array, places: Array, rows: Array) -> None:
    """Add rows as the product with a sparse matrix, each column of which has a one at a place.

    It adds the rows one after the other, as ``ufunc.at`` does, in a fifth of the time. It makes an array of the size of
    the total, which is not to be much larger than the rows.
    """
    from scipy.sparse import csc_array  # 0.1 s of CPU time, once many rows are added

    ones, begins = numpy.ones(len(rows), rows.dtype), numpy.arange(len(rows) + 1)
    total += csc_array((ones, places, begins), shape=(len(total), len(rows))) @ rows


# --- the operators ----------------------------------------------------------------------------------------------------


def _refuse_in_nothing(shape: tuple[int, ...], indices: Index, dims: Dims) -> None:
    """Raise where an index would choose from a dimension of size 0, at which NumPy looks only if something is left."""
    if any(index.dtype.kind == "b" or not index.size for index in indices):
        return
    if 0 in [shape[dim] for dim in dims]:
        raise IndexError(f"index is out of bounds for dimension with size 0\nThe shape is {list(shape)}.")


def _index(xp: Namespace, self: Array, indices: Index, dims: Dims) -> Array:
    first = indices[0]
    check_masks(self.shape, indices, dims)
    if not self.size:
        _refuse_in_nothing(self.shape, indices, dims)
    try:
        # Several times faster than an index, and in row-major order.
        if len(indices) == 1 and first.dtype.kind == "i" and self.flags.c_contiguous:
            return taken(self, first, dims[0])
        return in_rows(xp, self[key_of(indices, dims)])
    except IndexError as error:
        raise index_error(self.shape, indices, error) from None


def _index_backward(xp: Namespace, self: Array, indices: Index, dims: Dims, size: Sizes) -> Array:
    whole = xp.zeros(size, dtype=self.dtype)
    if len(indices) == 1 and indices[0].dtype.kind == "b":
        whole[key_of(indices, dims)] = self
    else:
        add_at(xp, whole, indices, dims, self)
    return whole


def _longs(like: Array, *values: Operand) -> list[Tensor]:
    return [creation.tensor(value, device=like.device) for value in values]


def _index_samples(make: Make) -> Cases:
    x, y, z = make(4, 3), make(3, 4, 2), make(2, 3, 2)
    return [
        ((x, _longs(x, [0, 2, 2]), (0,)), {}),
        ((x, _longs(x, [[True, False, True], [False] * 3, [True] * 3, [False] * 3]), (0,)), {}),
        ((y, _longs(y, [0, -1], [[1], [1]]), (0, 1)), {}),
        ((y, _longs(y, [1, 1], [0, 1]), (0, 2)), {}),
        ((z, _longs(z, [True, False, True], [1, 0]), (1, 2)), {}),
    ]


def _index_reference(indices: Index, dims: Dims) -> tuple[Index, ...]:
    given = dict(zip(dims, indices, strict=True))
    return tuple(given.get(axis, slice(None)) for axis in range(max(dims) + 1))


def _index_put_reference(self: Array, indices: Index, dims: Dims, values: Array, accumulate: bool = False) -> Array:
    return placed(self, _index_reference(indices, dims), values, add=accumulate)


operator(
    "index(Tensor self, Tensor[] indices, int[] dims)",
    _index,
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, indices, dims, self_shape, F: F.index_backward(g, indices, dims, self_shape),
    },
    doc="Take the elements that index tensors and masks at the dimensions `dims` choose.",
    samples=_index_samples,
    reference=lambda self, indices, dims: self[_index_reference(indices, dims)],
)
operator(
    "index_backward(Tensor self, Tensor[] indices, int[] dims, int[] size)",
    _index_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, indices, dims, F: F.index(g, indices, dims)},
    doc="The adjoint of index: zeros, to which each element is added where it came from.",
    samples=lambda make: [
        ((x := make(3, 3), _longs(x, [0, 2, 2]), (0,), (4, 3)), {}),
        ((x := make(2), _longs(x, [[True, False], [False, True]]), (0,), (2, 2)), {}),
        ((x := make(2, 3), _longs(x, [0, 1], [1, 1]), (0, 2), (2, 3, 2)), {}),
    ],
    reference=lambda self, indices, dims, size: adjoint(lambda x: x[_index_reference(indices, dims)], size, self),
)


def _index_put(xp: Namespace, self: Array, indices: Index, dims: Dims, values: Array, accumulate: bool = False) -> None:
    check_masks(self.shape, indices, dims)
    if self.dtype != values.dtype:
        if not values.ndim and not accumulate and len(indices) == 1 and indices[0].dtype.kind == "b":
            self[key_of(indices, dims)] = values  # a mask is filled, as by masked_fill_()
            return
        names = [scalar_type(a.dtype) for a in (self, values)]
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {names[0]} for the destination and "
            f"{names[1]} for the source.\nConvert the source with .to()."
        )
    inplace_and_out.check_overlap(self, values, allowed="none")
    if values.ndim > _rank_of_index(self, indices):
        raise _shape_mismatch(xp, self, indices, dims, values)
    key = key_of(indices, dims)
    try:
        if accumulate:
            add_at(xp, self, indices, dims, values)
        else:
            self[key] = values
    except IndexError as error:
        raise index_error(self.shape, indices, error) from None
    except (ValueError, TypeError):
        raise _shape_mismatch(xp, self, indices, dims, values) from None


def _rank_of_index(self: Array, indices: Index) -> int:
    """Return the number of dimensions of what `indices` choose: NumPy writes values of more, if their size is 1."""
    chosen = max(1 if index.dtype.kind == "b" else index.ndim for index in indices)
    return int(self.ndim - sum(width_of(index) for index in indices) + chosen)


def _shape_mismatch(xp: Namespace, self: Array, indices: Index, dims: Dims, values: Array) -> RuntimeError:
    found = _index(xp, self, indices, dims).shape
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
        f"shape {list(found)}"
    )


def _index_clear(xp: Namespace, self: Array, indices: Index, dims: Dims) -> Array:
    result = writable_copy(xp, self)
    result[key_of(indices, dims)] = 0
    return result


operator(
    "index_put(Tensor self, Tensor[] indices, int[] dims, Tensor values, bool accumulate=False)",
    write=_index_put,
    inplace=True,
    expanded="deprecated",
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, indices, dims, accumulate, F: g if accumulate else F.index_clear(g, indices, dims),
        "values": lambda g, indices, dims, F: F.index(g, indices, dims),
    },
    doc="Return `self` with `values` written (or added) where index tensors and masks at `dims` choose.",
    samples=lambda make: [
        ((x := make(4, 3), _longs(x, [0, 2]), (0,), make(2, 3)), {}),
        ((x := make(4, 3), _longs(x, [0, 2, 2]), (0,), make(3), True), {}),
        ((x := make(2, 2), _longs(x, [[True, False], [False, True]]), (0,), make()), {}),
        ((x := make(2, 3, 2), _longs(x, [0, 1], [1, 1]), (0, 2), make(2, 3)), {"accumulate": True}),
    ],
    reference=_index_put_reference,
)
operator(
    "index_clear(Tensor self, Tensor[] indices, int[] dims)",
    _index_clear,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, indices, dims, F: F.index_clear(g, indices, dims)},
    doc="Return `self` with zeros where index tensors and masks at `dims` choose.",
    samples=lambda make: [((x := make(4, 3), _longs(x, [0, 2]), (0,)), {})],
    reference=lambda self, indices, dims: placed(self, _index_reference(indices, dims), 0),
)
operator(
    "alias(Tensor self)",
    lambda xp, self: self.view(),
    view="always",
    method=False,
    public_name=False,
    derivatives={"self": lambda g: g},
    doc="View all elements.",
    samples=lambda make: [((make(2, 3),), {}), ((make(),), {})],
    reference="numpy.array",
)

_select = slice_and_cat.select.function
_slice = slice_and_cat.slice_.function
_unsqueeze = OPERATORS["unsqueeze"].function
_alias = OPERATORS["alias"].function
_take = OPERATORS["index"].function
_fill = OPERATORS["fill.Tensor"]

# --- reading an index -------------------------------------------------------------------------------------------------


def _items_of(self: Array, index: Index) -> tuple[Index, ...]:
    """Return what stands between the brackets as a tuple."""
    if isinstance(index, tuple):
        return index
    if not _nested(index):
        return (index,)
    warn("Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of x[seq].")
    return tuple(index)


def _nested(index: Index) -> bool:
    """Whether PyTorch reads a short list as a tuple: where it holds a slice, a tensor, None or a list."""
    if not isinstance(index, (list, range)) or len(index) >= 32:
        return False
    return any(
        item is None or item is Ellipsis or isinstance(item, (slice, list, tuple)) or hasattr(item, "_array")
        for item in index
    )


def _as_index(self: Array, item: Index) -> Tensor:
    """Return an item that is no view as an index tensor on the device of `self`."""
    if hasattr(item, "_array"):
        tensor = item
    elif isinstance(item, (list, tuple, range, str, numpy.ndarray)) or devices.is_array(item):
        array = to_array(list(item) if isinstance(item, range) else item)
        if not devices.is_array(item) and array.dtype.kind not in "bu":
            array = array.astype(dtypes.int64.numpy)
        tensor = self.__class__._wrap(array)
    else:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(item).__name__})\nConvert it to an integer or an integer tensor."
        )
    array = tensor._array
    kind = array.dtype.kind
    if kind not in "biu" or (kind == "i" and array.dtype.itemsize < 4):
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors\n"
            f"This one is {tensor.dtype}; convert it with .long()."
        )
    if kind == "u":
        warn("indexing with dtype uint8 is now deprecated, please use a dtype bool instead.")
        tensor = tensor.bool()
    return tensor if type(array) is type(self._array) else tensor.to(device=self.device)


def _dims_taken(item: Index) -> int:
    """Return how many dimensions an item of an index tuple takes."""
    kind = type(item)
    if kind is int or kind is slice:
        return 1
    if item is None or item is Ellipsis or isinstance(item, (bool, numpy.bool_)):
        return 0
    array: Array = getattr(item, "_array", item)
    if devices.is_array(array) and array.dtype.kind in "bu":
        return array.ndim
    return 1


def _number(item: Index) -> int | None:
    """Return an integer item, also from NumPy and 0-d tensors; None for others."""
    if type(item) is int:
        return item
    if isinstance(item, (bool, numpy.bool_)):
        return None
    if isinstance(item, (int, numpy.integer)):
        return int(item)
    array: Array = getattr(item, "_array", item)
    if devices.is_array(array) and array.ndim == 0 and array.dtype.kind == "i":
        return int(devices.to_host(array))
    return None


def _pick(self: Array, dim: int, index: int, position: int) -> Tensor:
    shape = self._shape
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number"
        )
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"index {index} is out of bounds for dimension {position} with size {shape[dim]}")
    return _select(self, dim, index)


def _range(self: Array, dim: int, item: slice) -> Tensor:
    if self._array.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.\nUse tensor[None] to add a dimension.")
    return _cut(self, dim, item)


def _cut(self: Array, dim: int, item: slice) -> Tensor:
    start, stop, step = item.start, item.stop, item.step
    if step is None:
        step = 1
    bounds = (start is None or type(start) is int) and (stop is None or type(stop) is int)
    if not bounds or type(step) is not int or step <= 0:
        start, stop, step = _converted(start, stop, step)
    return _slice(self, dim, start, stop, step)


def _converted(start: Index, stop: Index, step: Index) -> tuple[int | None, int | None, int]:
    """Return bounds of a slice that are not all integers as such, or raise what Python says of them."""
    if operators.index(step) <= 0:
        raise ValueError("step must be greater than zero\nUse flip() to reverse a dimension.")
    if type(start) not in (int, type(None)) or type(stop) not in (int, type(None)):
        # operator.index() says what slices say of a wrong bound.
        if not all(bound is None or hasattr(bound, "__index__") for bound in (start, stop)):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        start, stop = (None if bound is None else operators.index(bound) for bound in (start, stop))
    return start, stop, operators.index(step)


def _is_whole(item: slice, size: int) -> bool:
    start, stop, step = item.start, item.stop, item.step
    if start is None and stop is None:
        return step is None or bool(step == 1)
    return (
        (start is None or start == 0)
        and (stop is None or (isinstance(stop, int) and stop >= size))
        and (step is None or step == 1)
    )


def _too_many(ndim: int, taken: int) -> IndexError:
    return IndexError(f"too many indices for tensor of dimension {ndim}\nThere are {taken} of them.")


def _views(self: Array, items: tuple[Index, ...]) -> tuple[Tensor, list[Tensor], list[int]]:
    """Apply the views among `items`; return the view, the index tensors left, and the dimensions they stand at."""
    ndim = len(self._shape)
    taken = 0
    for item in items:
        kind = type(item)
        if kind is slice or kind is int:
            taken += 1
        elif item is not None and item is not Ellipsis:
            taken += _dims_taken(item)
    if taken > ndim:
        raise _too_many(ndim, taken)
    result, dim = self, 0
    tensors: list[Tensor] = []
    dims: list[int] = []
    for position, item in enumerate(items):
        kind = type(item)
        if kind is slice:
            if not _is_whole(item, result._shape[dim]):
                result = _cut(result, dim, item)
            dim += 1
            continue
        if item is None:
            result = _unsqueeze(result, dim)
            dim += 1
            continue
        if item is Ellipsis:
            dim += ndim - taken
            continue
        number = item if kind is int else _number(item)
        if number is not None:
            result = _pick(result, dim, number, position)
            continue
        if _is_flag(item):
            result = _unsqueeze(result, dim)
            tensors.append(_flag_index(self, item))
        else:
            tensors.append(_as_index(self, item))
        dims.append(dim)
        dim += width_of(tensors[-1]._array)
    return result, tensors, dims


def _is_flag(item: Index) -> bool:
    if isinstance(item, (bool, numpy.bool_)):
        return True
    array: Array = getattr(item, "_array", item)
    return devices.is_array(array) and array.ndim == 0 and array.dtype.kind in "bu"


def _flag_index(self: Array, item: Index) -> Tensor:
    """Return [0] for True and [] for False: whether the dimension just added is kept."""
    array = devices.array_module(self._array).zeros(1 if bool(item) else 0, dtype=dtypes.int64.numpy)
    return self.__class__._wrap(array)


@public(method="__getitem__", function_too=False)
def getitem(self: Tensor, index: Index) -> Tensor:
    """Return ``self[index]``: a view for integers, slices, None and Ellipsis, else a copy."""
    kind = type(index)
    if kind is int:
        return _pick(self, 0, index, 0)
    if kind is slice:
        return _range(self, 0, index)
    if kind is not tuple and hasattr(index, "_array") and index._array.ndim and self._array.ndim:
        if width_of(index._array) > self._array.ndim:
            raise _too_many(self._array.ndim, width_of(index._array))
        return _take(self, [_as_index(self, index)], (0,))
    result, tensors, dims = _views(self, index if kind is tuple else _items_of(self, index))
    if tensors:
        return _take(result, tensors, tuple(dims))
    return _alias(self) if result is self else result


# --- writing to one ---------------------------------------------------------------------------------------------------


def _as_value(self: Array, value: Operand) -> Array:
    """Return an assigned value as a tensor; a number takes the dtype of `self`."""
    if hasattr(value, "_array"):
        return value
    if not isinstance(value, dtypes.NUMBERS):
        raise TypeError(
            f"can't assign a {type(value).__name__} to a gradscope.{self.dtype.legacy_name}\n"
            "Wrap it: gradscope.tensor(...)."
        )
    array = self._array
    return self.__class__._wrap(
        devices.array_module(array).full((), as_element(value, array, wide=True), dtype=array.dtype)
    )


def _write(target: Array, value: Operand) -> None:
    """Copy `value` into `target`, which it may be broadcast to; leading dimensions of size 1 are dropped."""
    have, want = value._array.shape, target._array.shape
    if have == want:
        METHODS["copy_"](target, value)
        return
    recorded = general.wants_grad([target, value]) or (state.special and tangents.active())
    if not have and not (recorded and target._dtype.kind in dtypes.INEXACT):
        target._check_inplace(False)
        inplace_and_out.commit_inplace(_fill, target, value._array, None, [target, value])
        return
    if not have:
        OPERATORS["fill.Tensor"].inplace_function(target, value)  # type: ignore[misc]
        return
    value = _trimmed(value, always=True)
    METHODS["copy_"](target, value if value._array.shape == want else OPERATORS["expand.size"].function(value, want))


def _trimmed(value: Operand, always: bool = False) -> Array:
    shape = value._array.shape
    leading = 0
    while leading < len(shape) and shape[leading] == 1:
        leading += 1
    return OPERATORS["view.size"].function(value, shape[leading:]) if leading or always else value


_BIGGEST_SINGLE = float(numpy.finfo(numpy.float32).max)


def _is_view_key(index: Index) -> bool:
    """Whether a key is of integers, slices, None and Ellipsis alone, of which NumPy makes the same view."""
    kind = type(index)
    if kind is int:
        return True
    for item in index if kind is tuple else (index,):
        if type(item) is slice:
            if item.step is not None and not (type(item.step) is int and item.step > 0):
                return False
        elif type(item) is not int and item is not None and item is not Ellipsis:
            return False
    return True


def _holds(array: Array, number: Number) -> bool:
    """Whether NumPy writes a Python number into an array as it is, or complains."""
    char, kind = array.dtype.char, type(number)
    if kind is float:
        return char == "d" or (char == "f" and -_BIGGEST_SINGLE <= number <= _BIGGEST_SINGLE)
    if kind is int:
        return char in "dlqihb" or (char == "f" and -_BIGGEST_SINGLE <= number <= _BIGGEST_SINGLE)
    return kind is bool and char == "?"


def _requires_grad(value: Operand) -> bool:
    return type(value) is Tensor and value.requires_grad


def _assigned(self: Array, index: Index, value: Operand) -> bool:
    """Let NumPy assign what is neither recorded nor converted, and tell whether it has.

    Anything rarer, and what NumPy complains of, is left to the views and writes that raise PyTorch's errors.
    """
    array = self._memory
    if type(array) is not devices.ndarray or not _is_view_key(index):
        return False
    flags, given = self._flags, value
    if type(value) is Tensor:
        given = value._memory
        flags |= value._flags
        if value._dtype is not self._dtype or type(given) is not devices.ndarray:
            return False
        if given is array or (
            (given.base is not None or array.base is not None) and memory_of(given) is memory_of(array)
        ):
            return False
    elif not _holds(array, value):
        return False
    if flags and flags >= state.INERT:
        return False
    if flags and state.local._records and (self.requires_grad or _requires_grad(value)):
        return _copied(self, index, value)
    if not array.flags.forc and overlaps_itself(array):
        return False
    try:
        if given is not value and given.ndim and array[index].shape != given.shape:
            return False
        array[index] = given
    except (IndexError, OverflowError, TypeError, ValueError):
        return False
    self._bump("setitem")
    return True


def _copied(self: Array, index: Index, value: Operand) -> bool:
    """Let NumPy assign a tensor of the part's shape and dtype, and record it as copy_() of the part would be."""
    array = self._memory
    if type(value) is not Tensor or self._view is not None or state.local.before_write is not None:
        return False
    if self.requires_grad and self._known_edge() is None:  # a leaf, which is refused
        return False
    if self._dtype.kind not in dtypes.INEXACT or (not array.flags.forc and overlaps_itself(array)):
        return False
    try:
        part = array[_as_view_key(index)]
    except IndexError:
        return False
    if part.shape != value._shape or part.shape == self._shape or not part.size:  # a write to the whole makes no part
        return False
    node: GraphNode = OPERATORS["copy"].node_class()  # type: ignore[misc]
    node.edges = (None, edge_of(value))  # what was there gets no gradient
    node.seq, node.extra = state.next_sequence(), None
    node.shape, node.dtype, node.kind = part.shape, part.dtype, type(part)
    history = CopySlices(self, Tensor._wrap(part), node)
    part[...] = value._memory
    self._bump("copy_")
    self._set_edge(history)
    return True


def _as_view_key(index: Index) -> Index:
    """Return a key of integers and slices with which NumPy gives an array, and no number, of one element too."""
    items = index if type(index) is tuple else (index,)
    return items if Ellipsis in items else (*items, Ellipsis)


@public(method="__setitem__", function_too=False)
def setitem(self: Tensor, index: Index, value: Operand) -> None:
    """Write `value`, a number or a tensor, to ``self[index]``."""
    if not state.special:
        if not _assigned(self, index, value):
            _assign(self, index, value)
        return
    _assign(self, index, value)
    if events.wanted(events.ItemAssigned) and any(
        size > 1 and not stride for size, stride in zip(self._array.shape, self._array.strides)
    ):
        events.emit(events.ItemAssigned(self, index, events.call_site_if_wanted()))


def _assign(self: Tensor, index: Index, value: Operand) -> None:
    value = _as_value(self, value)
    if type(index) is slice and not _is_whole(index, self._array.shape[0] if self._array.ndim else 0):
        _write(_range(self, 0, index), value)
        return
    if index is False:
        return
    if index is True:
        _write(_unsqueeze(self, 0), value)
        return
    target, tensors, dims = _views(self, _items_of(self, index))
    if not tensors:
        _write(target, value)
        return
    OPERATORS["index_put"].inplace_function(target, tensors, tuple(dims), _trimmed(value), False)  # type: ignore[misc]


def _put_arguments(self: Array, indices: Index, values: Array, accumulate: bool) -> tuple[Argument, ...]:
    if hasattr(indices, "_array") or not all(hasattr(item, "_array") for item in indices):
        found = "Tensor" if hasattr(indices, "_array") else "other items"
        raise TypeError(
            f"index_put(): argument 'indices' must be tuple of Tensors, not {found}\nWrite index_put((index,), values)."
        )
    tensors = [_as_index(self, item) for item in indices]
    dims, dim = [], 0
    for tensor in tensors:
        dims.append(dim)
        dim += width_of(tensor._array)
    if dim > self._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._array.ndim} (got {dim})")
    return self, tensors, tuple(dims), _as_value(self, values), accumulate


@public
def index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with `values` written (added, if `accumulate`) to ``self[indices]``.

    Parameters
    ----------
    indices : tuple of Tensor
        Integer tensors or masks, one for each leading dimension.
    values : Tensor
        Of the dtype of `self`; broadcast.
    accumulate : bool
        Add, once for each time an element is chosen.

    Raises
    ------
    IndexError
        If an index is out of range, or the indices do not broadcast.
    RuntimeError
        If the shape or the dtype of `values` does not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.index_put(gs.zeros(3), (gs.tensor([0, 2]),), gs.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return OPERATORS["index_put"].function(*_put_arguments(self, indices, values, accumulate))


@public
def index_put_(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place form of :func:`index_put`."""
    return OPERATORS["index_put"].inplace_function(*_put_arguments(self, indices, values, accumulate))  # type: ignore[misc]
