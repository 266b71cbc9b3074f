"""Gathering and scattering along one dimension: gather, scatter, index_select, index_add and their kin."""

from __future__ import annotations

import numpy

from ...kernels.copies import taken
from ...memory import dtype as dtypes
from ...memory.elements import as_element
from ...tensor import creation
from ...tensor.tensor import Tensor
from ...user_warnings import warn
from ..declaration.annotations import Array, Index, Namespace, Number, Operand, Shape, Sizes
from ..declaration.references import gathered_at, placed, slices_at
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.bare_functions import in_rows
from ..shape.reshape import axis_of
from . import places
from .accumulate_at import accumulate_at
from .indexing import add_at, check_bounds

# --- gather and scatter -----------------------------------------------------------------------------------------------


def kind_of(array: Array) -> str:
    """Return the name of the dtype of an array."""
    return dtypes.BY_NUMPY[array.dtype].name


def is_integer(index: Array) -> bool:
    """Whether an array has a dtype that indices may have."""
    return index.dtype.kind == "i" and index.dtype.itemsize >= 4


def _need_integers(name: str, index: Array) -> None:
    if not is_integer(index):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index, but got {kind_of(index)}\nConvert it with .long()."
        )


def check_scatter(name: str, self: Array, dim: int, index: Array, src: Array = None) -> int:
    """Return the dimension counted from the front, after the checks that gather and scatter share."""
    axis = axis_of(dim, self.ndim)
    if index.size:
        _need_integers(name, index)
    ndim = max(self.ndim, 1)
    if max(index.ndim, 1) != ndim or (src is not None and max(src.ndim, 1) != ndim):
        other = "src" if src is not None and max(index.ndim, 1) == ndim else "input"
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {other} tensor\n"
            f"Here self has shape {list(self.shape)}, index {list(index.shape)}"
            + ("." if src is None else f", src {list(src.shape)}.")
        )
    if self.ndim == 0 or index.ndim == 0 or not index.size:
        return axis
    given = None if src is None else src.shape or (1,)
    apart = any(i > s for d, (i, s) in enumerate(zip(index.shape, self.shape, strict=True)) if d != axis)
    if given is not None and (apart or any(i > s for i, s in zip(index.shape, given, strict=True))):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension "
            f"{axis} and to be no larger size than src {list(src.shape)}"
        )
    if apart:
        raise RuntimeError(
            f"Size does not match at dimension {axis} expected index {list(index.shape)} to be no larger than self "
            f"{list(self.shape)} apart from dimension {axis}"
        )
    try:
        check_bounds(index, self.shape[axis], "")
    except IndexError:
        wrong = index[(index < 0) | (index >= self.shape[axis])].reshape(-1)[0]
        raise RuntimeError(
            f"index {wrong} is out of bounds for dimension {axis} with size {self.shape[axis]}\nIn {name}()."
        ) from None
    return axis


def along(xp: Namespace, index: Array, axis: int) -> tuple[Array, ...]:
    """Return the key whose element at every place is `index` in dimension `axis` and the place itself elsewhere."""
    ndim = index.ndim
    return tuple(
        index if d == axis else xp.reshape(xp.arange(size), (1,) * d + (-1,) + (1,) * (ndim - d - 1))
        for d, size in enumerate(index.shape)
    )


def _gather(xp: Namespace, self: Array, dim: int, index: Array) -> Array:
    if not index.size:
        axis_of(dim, self.ndim)
        return xp.zeros(index.shape, dtype=self.dtype)
    axis = check_scatter("gather", self, dim, index)
    if self.ndim == 0 or index.ndim == 0:
        return self.reshape(-1)[index.reshape(-1)].reshape(index.shape)
    if self.size <= 2 * index.size:
        self = in_rows(xp, self)
    if places.are_worth_it(self, index):
        return places.take(self, axis, index)
    return self[along(xp, index, axis)]


def _add_along(xp: Namespace, target: Array, axis: int, index: Array, values: Array) -> None:
    if not index.size:
        return
    if target.ndim == 0 or index.ndim == 0:
        # One element; a 1-d view of it always exists.
        accumulate_at(xp, "add", target.reshape(-1), index.reshape(-1), values.reshape(-1))
    elif places.are_worth_it(target, index) and values.dtype == target.dtype:
        places.combine(numpy.add, target, axis, index, values)
    else:
        add_at(xp, target, along(xp, index, axis), tuple(range(index.ndim)), values)


def _gather_backward(xp: Namespace, self: Array, size: Sizes, dim: int, index: Array) -> Array:
    whole = xp.zeros(size, dtype=self.dtype)
    _add_along(xp, whole, axis_of(dim, whole.ndim), index, self)
    return whole


def longs(like: Array, value: Operand) -> Array:
    """Return `value` as a tensor on the device of `like`, for samples."""
    return creation.tensor(value, device=like.device)


operator(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)",
    lambda xp, self, dim, index, sparse_grad=False: _gather(xp, self, dim, index),
    out="exact",
    derivatives={"self": lambda g, self_shape, dim, index, F: F.gather_backward(g, self_shape, dim, index)},
    doc="Take, at each place, the element whose position along `dim` is given by `index`.",
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [[0, 1, 2, 0], [2, 2, 1, 1]])), {}),
        ((x := make(2, 3), -1, longs(x, [[0, 0, 2, 1]])), {}),
        ((x := make(), 0, longs(x, [0, 0])), {}),
    ],
    reference=lambda self, dim, index: numpy.atleast_1d(self)[gathered_at(index, dim)],
)
operator(
    "gather_backward(Tensor self, int[] size, int dim, Tensor index)",
    _gather_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, index, F: F.gather(g, dim, index)},
    doc="The adjoint of gather: zeros, to which each element is added where it came from.",
    samples=lambda make: [((x := make(2, 2), (3, 4), 0, longs(x, [[0, 1], [2, 1]])), {})],
    reference=lambda self, size, dim, index: placed(
        numpy.zeros(size, self.dtype), gathered_at(index, dim), self, add=True
    ),
)


def need_same_dtype(name: str, self: Array, src: Array) -> None:
    """Raise where what is scattered has another dtype than what it is scattered into."""
    if self.dtype != src.dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype\n"
            f"They are {kind_of(self)} and {kind_of(src)}; convert one with .to()."
        )


def leading_part(src: Array, shape: Shape) -> Array:
    """Return the leading part of `src` that an index of `shape` covers."""
    return src if src.shape == shape or src.ndim == 0 else src[tuple(slice(size) for size in shape)]


def _scatter(xp: Namespace, self: Array, dim: int, index: Array, src: Array) -> None:
    axis = check_scatter("scatter", self, dim, index, src)
    need_same_dtype("scatter", self, src)
    _put_along(xp, self, axis, index, leading_part(src, index.shape))


def _scatter_value(xp: Namespace, self: Array, dim: int, index: Array, value: Number) -> None:
    _put_along(xp, self, check_scatter("scatter", self, dim, index), index, as_element(value, self))


def _put_along(xp: Namespace, target: Array, axis: int, index: Array, values: Array) -> None:
    if target.ndim == 0 or index.ndim == 0:
        if index.size:
            values = values.reshape(-1)[-1] if hasattr(values, "reshape") else values
            target.reshape(-1)[index.reshape(-1)] = values
    elif places.are_worth_it(target, index):
        places.put(target, axis, index, values)
    elif index.size:
        target[along(xp, index, axis)] = values


def _scatter_add(xp: Namespace, self: Array, dim: int, index: Array, src: Array) -> None:
    axis = check_scatter("scatter_add", self, dim, index, src)
    need_same_dtype("scatter", self, src)
    _add_along(xp, self, axis, index, leading_part(src, index.shape))


operator(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src)",
    write=_scatter,
    inplace=True,
    method=False,
    node="ScatterBackward0",
    derivatives={
        "self": lambda g, dim, index, F: F.scatter_zero(g, dim, index),
        "src": lambda g, dim, index, F: F.gather(g, dim, index),
    },
    out=True,
    doc="Return `self` with the elements of `src` at the positions along `dim` given by `index`.",
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [[0, 1, 2, 0], [2, 2, 1, 1]]), make(2, 4)), {}),
        ((x := make(2, 3), -1, longs(x, [[0, 2], [1, 0]]), make(2, 2)), {}),
    ],
    reference=lambda self, dim, index, src: placed(self, gathered_at(index, dim), src[tuple(map(slice, index.shape))]),
)
operator(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value)",
    write=_scatter_value,
    inplace=True,
    method=False,
    node="ScatterBackward1",
    derivatives={"self": lambda g, dim, index, F: F.scatter_zero(g, dim, index)},
    out=True,
    doc="Return `self` with a number at the positions along `dim` given by `index`.",
    samples=lambda make: [((x := make(3, 4), 0, longs(x, [[0, 1, 2, 0]]), 1.5), {})],
    reference=lambda self, dim, index, value: placed(self, gathered_at(index, dim), value),
)


operator(
    "scatter_zero(Tensor self, int dim, Tensor index)",
    lambda xp, self, dim, index: OPERATORS["scatter.value"].run_forward(xp, self, dim, index, 0),
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, index, F: F.scatter_zero(g, dim, index)},
    doc="Return `self` with zeros at the positions along `dim` given by `index`.",
    samples=lambda make: [((x := make(3, 4), 0, longs(x, [[0, 1, 2, 0]])), {})],
    reference=lambda self, dim, index: placed(self, gathered_at(index, dim), 0),
)


def _scatter_choice(src: Operand, value: Number) -> tuple[str, Operand]:
    given = value if src is None else src
    if not hasattr(given, "_array") and not isinstance(given, dtypes.NUMBERS):
        raise TypeError(
            f"scatter(): argument 'src' must be Tensor or Number, not {given.__class__.__name__}\n"
            "Give a tensor as src or a number as value."
        )
    return ("scatter.src" if hasattr(given, "_array") else "scatter.value"), given


def _combined(reduce: str, self: Array, index: Array, given: Operand) -> tuple[str, Tensor]:
    """Return what scatter_reduce() calls a reduction of scatter(), and the source as a tensor."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.\nscatter_reduce() knows more.")
    if hasattr(given, "_array"):
        warn(
            "The reduce argument of gradscope.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use gradscope.scatter_reduce instead for more reduction options.",
        )
    source = given if hasattr(given, "_array") else self.new_full(tuple(index.shape), given)
    return _REDUCTIONS[reduce], source


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@public
def scatter(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Operand = None,
    *,
    value: Number = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy with `src` (a tensor) or `value` (a number) written along a dimension.

    Parameters
    ----------
    index : Tensor
        Integers: the position along `dim` of each element of `src`.
    reduce : {"add", "multiply"}, optional
        Add to, or multiply, what stands there; :func:`scatter_reduce` knows more reductions.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit, or an index is out of range.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.scatter(gs.zeros(3), 0, gs.tensor([2, 0]), gs.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    name, given = _scatter_choice(src, value)
    if reduce is not None:
        reduction, source = _combined(reduce, self, index, given)
        return METHODS["scatter_reduce"](self, dim, index, source, reduction, out=out)
    return OPERATORS[name].function(self, dim, index, given, out=out)


@public
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Operand = None, *, value: Number = None, reduce: str | None = None
) -> Tensor:
    """In-place form of :func:`scatter`."""
    name, given = _scatter_choice(src, value)
    if reduce is not None:
        reduction, source = _combined(reduce, self, index, given)
        return METHODS["scatter_reduce_"](self, dim, index, source, reduction)
    return OPERATORS[name].inplace_function(self, dim, index, given)  # type: ignore[misc]


def _scatter_add_reference(self: Array, dim: int, index: Array, src: Array) -> Array:
    whole = numpy.atleast_1d(self)
    return placed(whole, gathered_at(index, dim), src[tuple(map(slice, index.shape))], add=True).reshape(self.shape)


operator(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src)",
    write=_scatter_add,
    inplace=True,
    derivatives={"self": lambda g: g, "src": lambda g, dim, index, F: F.gather(g, dim, index)},
    out=True,
    doc="Return `self` with the elements of `src` added at the positions along `dim` given by `index`.",
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [[0, 1, 2, 0], [2, 2, 1, 1]]), make(2, 4)), {}),
        ((x := make(2, 3), 1, longs(x, [[0, 0], [1, 1]]), make(2, 2)), {}),
        ((x := make(), 0, longs(x, [0, 0]), make(2)), {}),
    ],
    reference=_scatter_add_reference,
)

# --- whole slices -----------------------------------------------------------------------------------------------------


def _vector(name: str, index: Array) -> Array:
    """Return an index of slices as a vector."""
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector\nIts shape is {list(index.shape)}.")
    if not is_integer(index):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {kind_of(index)}\nUse .long().")
    return index.reshape(-1)


def _slices(axis: int, index: Array) -> tuple[Index, ...]:
    return (*(slice(None),) * axis, index)


def _index_select(xp: Namespace, self: Array, dim: int, index: Array) -> Array:
    axis = axis_of(dim, self.ndim)
    index = _vector("index_select", index)
    source = self.reshape(1) if self.ndim == 0 else self
    check_bounds(
        index, source.shape[axis], "index out of range in self\nIndex {index} along a dimension of size {size}."
    )
    if source.flags.c_contiguous:
        result = taken(source, index, axis)
    else:
        result = in_rows(xp, source[_slices(axis, index)])
    return result.reshape(()) if self.ndim == 0 else result


def _index_select_backward_reference(self: Array, size: Sizes, dim: int, index: Array) -> Array:
    result = numpy.zeros(size, dtype=self.dtype)
    return placed(result, slices_at(result.ndim, dim, index), self, add=True)


def _index_add_reference(self: Array, dim: int, index: Array, source: Array, alpha: Number = 1) -> Array:
    return placed(self, slices_at(self.ndim, dim, index), alpha * source, add=True)


operator(
    "index_select(Tensor self, int dim, Tensor index)",
    _index_select,
    out="exact",
    derivatives={"self": lambda g, self_shape, dim, index, F: F.index_select_backward(g, self_shape, dim, index)},
    doc="Return the slices along `dim` that `index` lists.",
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [2, 0, 2])), {}),
        ((x := make(2, 3), -1, longs(x, 1)), {}),
        ((x := make(2, 3), 1, longs(x, [1, 0])), {}),
    ],
    reference=lambda self, dim, index: numpy.take(self, numpy.atleast_1d(index), dim),
)
operator(
    "index_select_backward(Tensor self, int[] size, int dim, Tensor index)",
    lambda xp, self, size, dim, index: _add_slices(xp, xp.zeros(size, dtype=self.dtype), dim, index, self),
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, index, F: F.index_select(g, dim, index)},
    doc="The adjoint of index_select: zeros, to which each slice is added where it came from.",
    samples=lambda make: [((x := make(3, 2), (4, 2), 0, longs(x, [2, 0, 2])), {})],
    reference=_index_select_backward_reference,
)


def _add_slices(xp: Namespace, target: Array, dim: int, index: Array, source: Array) -> Array:
    axis = axis_of(dim, target.ndim)
    index = index.reshape(-1)
    if target.ndim == 0:
        accumulate_at(xp, "add", target.reshape(1), index, source.reshape(-1))
    else:
        add_at(xp, target, (index,), (axis,), source)
    return target


def _slice_message(axis: int, name: str = "") -> str:
    return f"{name}index {{index}} is out of bounds for dimension {axis} with size {{size}}"


def _index_add(xp: Namespace, self: Array, dim: int, index: Array, source: Array, alpha: Number = 1) -> None:
    axis = axis_of(dim, self.ndim)
    index = _vector("index_add", index)
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"index_add(): self ({kind_of(self)}) and source ({kind_of(source)}) must have the same scalar type\n"
            "Convert one with .to()."
        )
    if axis >= max(source.ndim, 1):
        raise RuntimeError(
            f"index_add_(): Indexing dim {axis} is out of bounds of the source tensor with dim {source.ndim}\n"
            f"The shapes are {list(self.shape)} and {list(source.shape)}."
        )
    length = source.shape[axis] if source.ndim else 1
    if not source.ndim and index.size != 1:
        raise IndexError(
            f"Dimension specified as {dim} but tensor has no dimensions\n"
            f"The source is one number, and there are {index.size} indices."
        )
    if index.size != length:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.size}) should be equal to source.size(dim): ({length}), for "
            f"dim: {axis}"
        )
    want, have = (a.shape[:axis] + a.shape[axis + 1 :] for a in (self, source))
    if want != have or self.ndim > source.ndim or (source.ndim and not self.ndim):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}"
        )
    size = self.shape[axis] if self.ndim else 1
    try:
        check_bounds(index, size, _slice_message(axis))
    except IndexError as error:
        if self.ndim < 2:
            raise IndexError(f"index out of range in self\n{error}.") from None
        raise RuntimeError(f"{error}\nIn index_add() along dimension {axis}.") from None
    _add_slices(xp, self, dim, index, source if alpha == 1 else source * as_element(alpha, source))


operator(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)",
    write=_index_add,
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g: g,
        "source": lambda g, dim, index, alpha, source_shape, F: F.reshape(
            F.index_select(g, dim, index) if alpha == 1 else F.index_select(g, dim, index) * alpha, source_shape
        ),
    },
    doc="Return `self` with ``alpha * source`` added to the slices along `dim` that `index` lists.",
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [2, 0, 2]), make(3, 4)), {}),
        ((x := make(2, 3), 1, longs(x, [1, 1]), make(2, 2)), {"alpha": 2.0}),
    ],
    reference=_index_add_reference,
)


def _index_copy(xp: Namespace, self: Array, dim: int, index: Array, source: Array) -> None:
    axis = axis_of(dim, self.ndim)
    index = _vector("index_copy", index)
    if self.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{kind_of(self)} and (source) {kind_of(source)}"
        )
    if self.ndim and source.ndim and self.ndim != source.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
        )
    length = source.shape[axis] if source.ndim else 1
    if index.size != length:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({length})"
        )
    want, have = (a.shape[:axis] + a.shape[axis + 1 :] for a in (self, source))
    if want != have:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{list(want)} at dimension {axis} and source slice shape: {list(have)} at dimension {axis}."
        )
    check_bounds(index, self.shape[axis] if self.ndim else 1, _slice_message(axis, "index_copy_(): "))
    if self.ndim:
        self[_slices(axis, index)] = source
    elif index.size:
        self[...] = source.reshape(-1)[-1]


operator(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source)",
    write=_index_copy,
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, dim, index, F: F.index_zero(g, dim, index),
        "source": lambda g, dim, index, source_shape, F: F.reshape(F.index_select(g, dim, index), source_shape),
    },
    doc="Return `self` with `source` in the slices along `dim` that `index` lists.",
    samples=lambda make: [
        ((x := make(3, 4), 0, longs(x, [2, 0]), make(2, 4)), {}),
        ((x := make(2, 3), 1, longs(x, [1]), make(2, 1)), {}),
    ],
    reference=lambda self, dim, index, source: placed(self, slices_at(self.ndim, dim, index), source),
)


_MANY = 4  # slices of so many are filled as a mask, which takes a third of the time, but passes over all


def _index_fill(xp: Namespace, self: Array, dim: int, index: Array, value: Number) -> None:
    axis = axis_of(dim, self.ndim)
    if not is_integer(index):
        raise IndexError(f"index_fill_(): Expected dtype int64 for index.\nIt is {kind_of(index)}: use .long().")
    index = _vector("index_fill_", index)
    value = as_element(value, self)
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    size = self.shape[axis] if self.ndim else 1
    check_bounds(index, size, _slice_message(axis), -size)
    if type(self) is numpy.ndarray and axis and size <= _MANY * index.size:
        chosen = numpy.zeros(size, bool)
        chosen[index] = True
        numpy.copyto(self, value, where=chosen.reshape(-1, *(1,) * (self.ndim - 1 - axis)))
    elif self.ndim:
        self[_slices(axis, index)] = value
    elif index.size:
        self[...] = value


operator(
    "index_fill.number(Tensor self, int dim, Tensor index, Scalar value)",
    write=_index_fill,
    inplace=True,
    expanded="deprecated",
    method=False,
    node="IndexFillBackward0",
    derivatives={"self": lambda g, dim, index, F: F.index_zero(g, dim, index)},
    doc="Return `self` with a number in the slices along `dim` that `index` lists.",
    samples=lambda make: [((x := make(3, 4), 0, longs(x, [2, 0]), 1.5), {})],
    reference=lambda self, dim, index, value: placed(self, slices_at(self.ndim, dim, index), value),
)
operator(
    "index_fill.tensor(Tensor self, int dim, Tensor index, Tensor value)",
    write=_index_fill,
    inplace=True,
    expanded="deprecated",
    method=False,
    node="IndexFillBackward1",
    derivatives={
        "self": lambda g, dim, index, F: F.index_zero(g, dim, index),
        "value": lambda g, dim, index, F: F.where(F.index_zero(F.ones_like(g), dim, index) == 0, g, F.zeros_like(g)),
    },
    doc="Return `self` with the element of a 0-d tensor in the slices along `dim` that `index` lists.",
    samples=lambda make: [((x := make(3, 4), 1, longs(x, [2, 0]), make()), {})],
    reference=lambda self, dim, index, value: placed(self, slices_at(self.ndim, dim, index), value),
)


operator(
    "index_zero(Tensor self, int dim, Tensor index)",
    lambda xp, self, dim, index: OPERATORS["index_fill.number"].run_forward(xp, self, dim, index, 0),
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, index, F: F.index_zero(g, dim, index)},
    doc="Return `self` with zeros in the slices along `dim` that `index` lists.",
    samples=lambda make: [((x := make(3, 4), 0, longs(x, [2, 0])), {})],
    reference=lambda self, dim, index: placed(self, slices_at(self.ndim, dim, index), 0),
)


def _fill_choice(value: Operand) -> str:
    return "index_fill.tensor" if hasattr(value, "_array") else "index_fill.number"


@public
def index_fill(self: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """Return a copy with `value`, a number or a 0-d tensor, in the slices along `dim` that `index` lists.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.index_fill(gs.zeros(3), 0, gs.tensor([0, 2]), 5.0)
    tensor([5., 0., 5.])
    """
    return OPERATORS[_fill_choice(value)].function(self, dim, index, value)


@public
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """In-place form of :func:`index_fill`."""
    return OPERATORS[_fill_choice(value)].inplace_function(self, dim, index, value)  # type: ignore[misc]
