"""Shapes: views, joining and splitting. A view shares memory and version with what it views."""

from __future__ import annotations

import math
import operator as operators
from typing import Any

import numpy

from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.bfloat16 import marked
from ...memory.storage import Geometry, element_strides, is_viewable, memory_of, offset_of, strided_view
from ...tensor.tensor import Tensor
from ...user_warnings import warn
from ..declaration.annotations import Argument, Array, Dims, DType, Namespace, Sizes
from ..declaration.registry import METHODS, OPERATORS, Operator, operator, public

# --- helpers ----------------------------------------------------------------------------------------------------------

WHOLE = (slice(None),)
"""The index of one whole dimension; times their number that of the first ones."""


def axis_of(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front.

    Raises
    ------
    IndexError
        If there is no such dimension.
    """
    if type(dim) is not int:
        dim = operators.index(dim)
    if 0 <= dim < ndim:
        return dim
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound


def axes_of(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return one or several dimensions, or all for None, counted from the front."""
    if type(dim) is int:
        axis = axis_of(dim, ndim)
        return (axis,) if ndim else ()
    if dim is None:
        return tuple(range(ndim))
    dims = (dim,) if hasattr(dim, "__index__") and not getattr(dim, "ndim", 0) else tuple(dim)
    axes = tuple(axis_of(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[-1]} appears multiple times in the list of dims {list(dims)}")
    return axes if ndim else ()


def sizes_of(
    size: tuple[Sizes, ...], name: str = "view", argument: str = "size", given: Sizes = None
) -> tuple[int, ...]:
    """Return a shape given as ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))``.

    Raises
    ------
    TypeError
        If something in it is no integer.
    """
    if not size and given is not None:
        size = (given,)
    if len(size) == 1 and type(size[0]) is not int and not hasattr(size[0], "__index__"):
        if not isinstance(size[0], (list, tuple)):
            raise TypeError(
                f"{name}(): argument '{argument}' (position 1) must be tuple of ints, not {size[0].__class__.__name__}"
            )
        size = tuple(size[0])
    for length in size:
        if type(length) is not int:
            break
    else:
        return size
    for position, length in enumerate(size):
        if not hasattr(length, "__index__"):
            raise TypeError(
                f"{name}(): argument '{argument}' (position 1) must be tuple of ints, but found element of type "
                f"{length.__class__.__name__} at pos {position}"
            )
    return tuple(int(length) for length in size)


def full_shape(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return `shape` with -1 replaced by what makes `count` elements."""
    if -1 not in shape:
        if math.prod(shape) != count:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = -math.prod(shape)
    if known == 0 or count % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
    return tuple(count // known if size == -1 else size for size in shape)


# --- reshaping --------------------------------------------------------------------------------------------------------


def _view(xp: Namespace, self: Array, size: Sizes) -> Array:
    if self.flags.c_contiguous and -1 not in size:
        try:
            return self.reshape(size)
        except (TypeError, ValueError):
            pass
    shape = full_shape(tuple(size), self.size)
    if self.flags.c_contiguous:
        return self.reshape(shape)
    if not is_viewable(self, shape):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead. (shape {list(self.shape)}, strides "
            f"{list(element_strides(self))}, wanted {list(shape)})"
        )
    return self.reshape(shape)


def _reshape_alias(xp: Namespace, self: Array, size: Sizes) -> Array:
    """Return a view as :func:`_view` does, where that has been asked before: only a copy is asked about again."""
    try:
        result = self.reshape(size)
    except (TypeError, ValueError):
        return _view(xp, self, size)
    base = self.base
    if result.base is (self if base is None else base) or memory_of(result) is memory_of(self):
        return result
    return _view(xp, self, size)


operator(
    "view.size(Tensor self, int[] size)",
    _view,
    view="always",
    node="ViewBackward0",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="View with another shape.",
    method=False,
    samples=lambda make: [((make(2, 6), (3, 4)), {}), ((make(4), (2, -1)), {}), ((make(0, 3), (3, 0)), {})],
    reference=lambda self, size: numpy.reshape(self, size),
)
operator(
    "reshape_alias(Tensor self, int[] size)",
    _reshape_alias,
    view="always",
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="View with another shape, of a tensor that is not contiguous.",
    samples=lambda make: [((make(2, 3), (3, 2)), {})],
    reference=lambda self, size: numpy.reshape(self, size),
)
operator(
    "unsafe_view(Tensor self, int[] size)",
    lambda xp, self, size: devices.own(self).reshape(size),
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="Give a contiguous tensor that nobody else holds another shape; the result is no view.",
    samples=lambda make: [((make(2, 3), (3, 2)), {}), ((make(0, 2), (2, 0)), {})],
    reference=lambda self, size: numpy.reshape(self, size),
)

_view_size = OPERATORS["view.size"].function
_view_of_strided = OPERATORS["reshape_alias"].function


@public(arrays=lambda xp, self, shape: self.reshape(shape))
def reshape(self: Tensor, *sizes: Sizes, shape: Sizes = None) -> Tensor:
    """Return the elements in another shape: a view where the strides allow, else a copy.

    Parameters
    ----------
    *sizes : int
        One may be -1; also given as one tuple, or as `shape`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.reshape(gs.arange(6), (2, 3))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    wanted = sizes_of(sizes, "reshape", "shape", shape)
    if self._memory.flags.c_contiguous:
        return _view_size(self, wanted)
    wanted = full_shape(wanted, self._memory.size)
    if is_viewable(self._memory, wanted):
        return _view_of_strided(self, wanted)
    return OPERATORS["unsafe_view"].function(self.clone(memory_format="contiguous"), wanted)


@public(function_too=False)
def view(self: Tensor, *shape: Sizes, size: Sizes = None, dtype: DType = None) -> Tensor:
    """Return a view with another shape, or (given a dtype) the same bytes as another dtype.

    Of another dtype the last dimension is as much longer or shorter as its elements are smaller or larger. It shares
    memory and version, but no history.

    Raises
    ------
    RuntimeError
        If the strides do not allow it; :meth:`reshape` copies then.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.arange(6).view(2, 3)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        if self._conjugated or self._negated:
            what, bit = (
                ("conjugate view tensors", "conj") if self._conjugated else ("tensors with negative bit set", "neg")
            )
            raise RuntimeError(
                f"gradscope.Tensor.view is not supported for {what} when converting to a different dtype.\n"
                f"View a resolve_{bit}(), which is a copy."
            )
        result = OPERATORS["view.dtype"].function(self, dtypes.to_dtype(dtype))
        result._vc = self._counter()
        return result
    return _view_size(self, sizes_of(shape, "view", "size", size))


def _view_dtype(xp: Namespace, self: Array, dtype: DType) -> Array:
    shape, strides, offset = self.shape, element_strides(self), offset_of(self)
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return strided_view(self, (shape, strides, offset), dtype.numpy)
    sizes = f"to view {dtypes.BY_NUMPY[self.dtype].name} as {dtype.name} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {sizes}\nGive it a dimension with .reshape(1).")
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {sizes}, but got {strides[-1]}\nCall .contiguous() first.")
    geometry: Geometry
    if old > new:
        ratio = old // new
        geometry = (*shape[:-1], shape[-1] * ratio), (*(s * ratio for s in strides[:-1]), 1), offset * ratio
        return strided_view(self, geometry, dtype.numpy)
    ratio = new // old
    facts = {"size(-1)": shape[-1], "storage_offset()": offset}
    facts.update({f"stride({axis})": step for axis, step in enumerate(strides[:-1])})
    for fact, value in facts.items():
        if value % ratio:
            raise RuntimeError(
                f"self.{fact} must be divisible by {ratio} {sizes}, but got {value}\n"
                "Take a part that begins and ends with whole elements of the new dtype."
            )
    geometry = (*shape[:-1], shape[-1] // ratio), (*(s // ratio for s in strides[:-1]), 1), offset // ratio
    return strided_view(self, geometry, dtype.numpy)


operator(
    "view.dtype(Tensor self, dtype dtype)",
    lambda xp, self, dtype: marked(_view_dtype(xp, self, dtype)),
    method=False,
    doc="View the bytes as another dtype.",
)


@public(function_too=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view with the shape of `other`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.arange(4).view_as(gs.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(self, *other.shape)


@public(function_too=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the elements in the shape of `other`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.arange(4).reshape_as(gs.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(self, *other.shape)


@public
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the dimensions from `start_dim` to `end_dim`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.flatten(gs.zeros(2, 3, 4), 1).shape
    gradscope.Size([2, 12])
    """
    ndim = self._array.ndim
    start, end = axis_of(start_dim, ndim), axis_of(end_dim, ndim)
    if ndim == 0:
        return reshape(self, 1)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = self._array.shape
    joined = 1
    for size in shape[start : end + 1]:
        joined *= size
    return self if start == end else reshape(self, *shape[:start], joined, *shape[end + 1 :])


@public
def ravel(self: Tensor) -> Tensor:
    """Return the elements in one dimension: a view of a contiguous tensor, else a copy.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ravel(gs.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return view(self.contiguous(), -1)


@public
def unflatten(self: Tensor, dim: int, sizes: Sizes) -> Tensor:
    """Split dimension `dim` into `sizes`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.unflatten(gs.zeros(2, 12), 1, (3, 4)).shape
    gradscope.Size([2, 3, 4])
    """
    axis = axis_of(dim, self._array.ndim)
    shape = self._array.shape
    if not shape:
        raise RuntimeError("unflatten(): the tensor has no dimension to split\nGive it one: tensor.reshape(1).")
    return view(self, *shape[:axis], *full_shape(tuple(sizes), shape[axis]), *shape[axis + 1 :])


# --- moving dimensions ------------------------------------------------------------------------------------------------


def _transpose(xp: Namespace, self: Array, dim0: int, dim1: int) -> Array:
    try:
        return self.swapaxes(dim0, dim1)
    except (TypeError, ValueError):
        ndim = self.ndim
        a, b = axis_of(dim0, ndim), axis_of(dim1, ndim)
        return self.swapaxes(a, b) if ndim else self.view()


def _permute(xp: Namespace, self: Array, dims: Dims) -> Array:
    if len(dims) != self.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}".replace(
                "(sparse_coo)", ""
            )
        )
    try:
        return self.transpose(dims)
    except (TypeError, ValueError):
        return self.transpose(axes_of(tuple(dims), self.ndim))


def _inverse(dims: Dims, ndim: int) -> tuple[int, ...]:
    axes = axes_of(tuple(dims), ndim)
    return tuple(sorted(range(ndim), key=axes.__getitem__))


operator(
    "transpose(Tensor self, int dim0, int dim1)",
    _transpose,
    view="always",
    inplace=True,
    inplace_node="TransposeBackward1",
    derivatives={"self": lambda g, dim0, dim1, F: F.transpose(g, dim0, dim1)},
    doc="Swap two dimensions.",
    alias=("swapaxes", "swapdims"),
    samples=lambda make: [((make(2, 3), 0, 1), {}), ((make(2, 3, 4), -1, 0), {}), ((make(), 0, -1), {})],
    reference=lambda self, dim0, dim1: numpy.swapaxes(self, dim0, dim1) if self.ndim else self,
)


def _t(xp: Namespace, self: Array) -> Array:
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D\nUse transpose().")
    return self.transpose()


operator(
    "t(Tensor self)",
    _t,
    view="always",
    inplace=True,
    inplace_node="TBackward1",
    node="TBackward0",
    derivatives={"self": lambda g, F: F.t(g)},
    doc="Transpose a matrix.",
    samples=lambda make: [((make(2, 3),), {}), ((make(3),), {})],
    reference="numpy.transpose",
)
operator(
    "permute.dims(Tensor self, int[] dims)",
    _permute,
    view="always",
    node="PermuteBackward0",
    method=False,
    derivatives={"self": lambda g, dims, F: F.permute(g, _inverse(dims, len(g.shape)))},
    doc="Reorder the dimensions.",
    samples=lambda make: [((make(2, 3, 4), (2, 0, 1)), {}), ((make(2), (0,)), {})],
    reference="numpy.transpose",
)

_permute_dims = OPERATORS["permute.dims"].function


@public(arrays=_permute)
def permute(self: Tensor, *order: Any, dims: Dims = None) -> Tensor:
    """Return a view with the dimensions in another order.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.permute(gs.zeros(2, 3, 4), (2, 0, 1)).shape
    gradscope.Size([4, 2, 3])
    """
    return _permute_dims(self, sizes_of(order, "permute", "dims", dims))


@public
def movedim(self: Tensor, source: Dims, destination: Dims) -> Tensor:
    """Move dimensions from `source` to `destination`; the others keep their order.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.movedim(gs.zeros(2, 3, 4), 0, -1).shape
    gradscope.Size([3, 4, 2])
    """
    ndim = self._array.ndim
    given = [(d,) if isinstance(d, int) else tuple(d) for d in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(given[0])} dims) should contain the same "
            f"number of dims as destination ({list(given[1])} dims)"
        )
    from_axes, to_axes = (tuple(axis_of(d, ndim) for d in dims) for dims in given)
    for word, axes, dims in zip(("source", "destination"), (from_axes, to_axes), given, strict=True):
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"movedim: repeated dim in `{word}` ({list(dims)})")
    if not ndim:
        return permute(self, ())
    order = [axis for axis in range(ndim) if axis not in from_axes]
    for to, origin in sorted(zip(to_axes, from_axes, strict=True)):
        order.insert(to, origin)
    return permute(self, order)


@public
def moveaxis(self: Tensor, source: Dims, destination: Dims) -> Tensor:
    """Another name of :func:`movedim`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.moveaxis(gs.zeros(2, 3, 4), 0, -1).shape
    gradscope.Size([3, 4, 2])
    """
    return movedim(self, source, destination)


def _need_matrices(name: str, self: Array, instead: str = "Consider using x.conj().") -> None:
    """Raise for a vector, and warn of a number, as PyTorch does."""
    ndim = self._memory.ndim
    if ndim == 0:
        shown = name if name.endswith("()") else f"Tensor.{name}"
        warn(f"{shown} is deprecated on 0-D tensors. {instead}")
    elif ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.\n"
            "Give it a second dimension with unsqueeze()."
        )


def _transposed(self: Array, *, conj: bool = False) -> Array:
    """A view with the last two dimensions swapped, and conjugated if that is asked for and it is complex."""
    turned = OPERATORS["transpose"].function(self, -2, -1) if self._memory.ndim else self
    return METHODS["conj"](turned) if conj else turned


@public
def adjoint(self: Tensor) -> Tensor:
    """Return a view with the last two dimensions swapped, conjugated if complex.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.adjoint(gs.tensor([[1 + 2j, 3j]]))
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    _need_matrices("adjoint()", self)
    return _transposed(self, conj=True)


def _matrix_transposed(self: Array) -> Array:
    """A view with the last two dimensions swapped."""
    _need_matrices("mT", self, "This function is the identity in these cases.")
    return _transposed(self)


def _matrix_adjoint(self: Array) -> Array:
    """A view with the last two dimensions swapped, conjugated if complex."""
    _need_matrices("mH", self)
    return _transposed(self, conj=True)


def _reversed(self: Array) -> Array:
    """A view with the dimensions in reverse order."""
    ndim = self._array.ndim
    if ndim == 0:
        warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return OPERATORS["permute.dims"].function(self, tuple(range(ndim - 1, -1, -1)))


def _hermitian(self: Array) -> Array:
    """The adjoint of a matrix, a view."""
    ndim = self._memory.ndim
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor. For batches of "
            "matrices, consider using tensor.mH"
        )
    _need_matrices("H", self)
    return _transposed(self, conj=True)


for _attribute, _getter in (
    ("mT", _matrix_transposed),
    ("mH", _matrix_adjoint),
    ("T", _reversed),
    ("H", _hermitian),
):
    METHODS[_attribute] = property(_getter)  # type: ignore[assignment]
del _attribute, _getter


def _expand_forward(xp: Namespace, self: Array, size: Sizes) -> Array:
    size = tuple(size)
    if size == self.shape:
        return self[...]
    if not self.ndim and type(self) is devices.ndarray and min(size) >= 0:  # the gradient of a sum
        return numpy.ndarray(size, self.dtype, self, 0, (0,) * len(size))
    extra = len(size) - self.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand(Tensor{list(self.shape)}, size={list(size)}): the number of sizes provided ({len(size)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({self.ndim})"
        )
    shape = []
    for position, wanted in enumerate(size):
        have = self.shape[position - extra] if position >= extra else 1
        if wanted == -1 and position >= extra:
            wanted = have
        if have not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at non-singleton "
                f"dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: {list(self.shape)}"
            )
        shape.append(wanted)
    strides = [0] * extra + [
        0 if have == 1 and want != 1 else step
        for have, want, step in zip(self.shape, shape[extra:], self.strides, strict=True)
    ]
    if type(self) is devices.ndarray and self.size and self.flags.c_contiguous:
        return numpy.ndarray(shape, self.dtype, self, 0, strides)  # a fifth of as_strided()'s time
    return xp.lib.stride_tricks.as_strided(self, tuple(shape), tuple(strides))


def _expand_reference(self: Array, size: Sizes) -> Array:
    known = (*[1] * (len(size) - self.ndim), *self.shape)
    return numpy.broadcast_to(self, [have if want == -1 else want for have, want in zip(known, size)])


operator(
    "expand.size(Tensor self, int[] size)",
    _expand_forward,
    view="always",
    node="ExpandBackward0",
    method=False,
    derivatives={"self": lambda g: g},
    doc="Repeat dimensions of size 1 without copying.",
    samples=lambda make: [((make(3, 1), (3, 4)), {}), ((make(3), (2, 3)), {}), ((make(2, 1), (-1, 5)), {})],
    reference=_expand_reference,
)


@public(function_too=False)
def expand(self: Tensor, *sizes: Sizes, size: Sizes = None, implicit: bool = False) -> Tensor:
    """Return a view in which dimensions of size 1 are repeated; -1 keeps a size.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return OPERATORS["expand.size"].function(self, sizes_of(sizes, "expand", given=size))


@public(function_too=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of `other`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([[1], [2]]).expand_as(gs.zeros(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return expand(self, *other.shape)


@public(method=True, arrays=lambda xp, self, size: _expand_forward(xp, self, size))
def broadcast_to(self: Tensor, size: Sizes) -> Tensor:
    """Expand to `size`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.broadcast_to(gs.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    return expand(self, *size)


def _squeeze(xp: Namespace, self: Array, dim: Dims) -> Array:
    shape = self.shape
    if type(dim) is int and 0 <= dim < len(shape):
        if self.flags.c_contiguous:
            return self.reshape(shape[:dim] + shape[dim + 1 :] if shape[dim] == 1 else shape)
        return self.squeeze(dim) if shape[dim] == 1 else self.view()
    axes = tuple(a for a in axes_of(dim, self.ndim) if self.shape[a] == 1)
    return (
        self.reshape(tuple(s for i, s in enumerate(self.shape) if i not in axes))
        if self.flags.c_contiguous
        else self.squeeze(axes)
    )


operator(
    "squeeze.dim(Tensor self, int dim)",
    _squeeze,
    view="always",
    inplace=True,
    inplace_node="SqueezeBackward4",
    method=False,
    node="SqueezeBackward1",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="Drop dimensions of size 1.",
    samples=lambda make: [((make(2, 1, 3), 1), {}), ((make(2, 1), 0), {})],
    reference=lambda self, dim: numpy.squeeze(self, dim) if self.shape[dim] == 1 else self,
)
operator(
    "squeeze.dims(Tensor self, int[] dim)",
    _squeeze,
    view="always",
    inplace=True,
    inplace_node="SqueezeBackward5",
    method=False,
    node="SqueezeBackward2",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="Drop those of several dimensions that have size 1.",
    samples=lambda make: [((make(2, 1, 3, 1), (1, 3)), {}), ((make(2, 1), (0,)), {})],
    reference=lambda self, dim: numpy.squeeze(self, tuple(d for d in dim if self.shape[d] == 1)),
)
operator(
    "squeeze.all(Tensor self)",
    lambda xp, self: _squeeze(xp, self, None),
    view="always",
    inplace=True,
    inplace_node="SqueezeBackward3",
    method=False,
    node="SqueezeBackward0",
    doc="Drop all dimensions of size 1.",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    samples=lambda make: [((make(2, 1, 3),), {})],
    reference="numpy.squeeze",
)


_squeeze_dim = OPERATORS["squeeze.dim"].function


def _squeeze_form(dim: Dims) -> tuple[Operator, tuple[Argument, ...]]:
    if dim is None:
        return OPERATORS["squeeze.all"], ()
    one = hasattr(dim, "__index__")
    if not one and not isinstance(dim, (tuple, list)):
        raise TypeError(f"squeeze(): argument 'dim' (position 1) must be tuple of ints, not {dim.__class__.__name__}")
    return OPERATORS["squeeze.dim" if one else "squeeze.dims"], (dim,)


@public(arrays=_squeeze)
def squeeze(self: Tensor, dim: Dims = None) -> Tensor:
    """Drop dimension(s) `dim` where they have size 1, or all such dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.squeeze(gs.zeros(1, 3, 1)).shape
    gradscope.Size([3])
    """
    if type(dim) is int:
        return _squeeze_dim(self, dim)
    op, arguments = _squeeze_form(dim)
    return op.function(self, *arguments)


@public(function_too=False)
def squeeze_(self: Tensor, dim: Dims = None) -> Tensor:
    """In-place form of :func:`squeeze`."""
    op, arguments = _squeeze_form(dim)
    return op.inplace_function(self, *arguments)  # type: ignore[misc]


def _unsqueeze(xp: Namespace, self: Array, dim: int) -> Array:
    return self[WHOLE * axis_of(dim, self.ndim + 1) + (None,)]


operator(
    "unsqueeze(Tensor self, int dim)",
    _unsqueeze,
    view="always",
    inplace=True,
    inplace_node="UnsqueezeBackward1",
    derivatives={"self": lambda g, dim, F: F.squeeze(g, dim)},
    doc="Insert a dimension of size 1.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2), -1), {}), ((make(), 0), {})],
    reference="numpy.expand_dims",
)
