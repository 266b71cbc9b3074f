"""Differences of neighbours, and integrals by the trapezoidal rule."""

from __future__ import annotations

from collections.abc import Sequence

from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Dims, Number, Operand
from ..declaration.registry import METHODS, public
from ..execution import inplace_and_out
from ..shape.reshape import axis_of
from ..shape.slice_and_cat import cat, slice_

_cat = cat.function
_slice = slice_.function


@public
def diff(
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along a dimension, `n` times over.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.diff(gs.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if out is not None:
        return inplace_and_out.into(out, "diff", [self], lambda: diff(self, n, dim, prepend, append))
    if self._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = axis_of(dim, self._array.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}\nOf order 0 it is the tensor itself.")
    if not n:
        return METHODS["clone"](self)
    parts = [part for part in (prepend, self, append) if part is not None]
    result = _cat(parts, axis) if len(parts) > 1 else self
    minus = METHODS["logical_xor" if result._dtype.kind == "b" else "sub"]
    for _ in range(min(n, result._array.shape[axis])):
        size = result._array.shape[axis]
        result = minus(_slice(result, axis, 1, size, 1), _slice(result, axis, 0, max(size - 1, 0), 1))
    return result


# --- slopes -----------------------------------------------------------------------------------------------------------


def _at(x: Array, axis: int, start: int, stop: int) -> Array:
    size = x._array.shape[axis]
    return _slice(x, axis, start % (size + 1), stop % (size + 1), 1)


def _slope(x: Array, axis: int, h: Number, edge_order: int) -> Array:
    """Return central differences at points of one distance, and one-sided ones at the ends."""
    size = x._array.shape[axis]
    first, last = (_at(x, axis, i, i + 1) for i in (0, size - 1))
    second, before = (_at(x, axis, i, i + 1) for i in (1, size - 2))
    middle = (_at(x, axis, 2, size) - _at(x, axis, 0, size - 2)) / (2 * h)
    if edge_order == 1:
        return _cat([(second - first) / h, middle, (last - before) / h], axis)
    third, earlier = (_at(x, axis, i, i + 1) for i in (2, size - 3))
    low = (4 * second - 3 * first - third) / (2 * h)
    high = (3 * last - 4 * before + earlier) / (2 * h)
    return _cat([low, middle, high], axis)


def _uneven_slope(x: Array, axis: int, places: Tensor, edge_order: int) -> Array:
    """Return the slopes of parabolas through three neighbours, at points `places` (B. Fornberg 1988, of order 2)."""
    size = x._array.shape[axis]
    h = METHODS["reshape"](diff(places), *(-1 if d == axis else 1 for d in range(x._array.ndim)))
    steps = diff(x, dim=axis) / h  # the slopes between neighbours
    left, right = _at(h, axis, 0, size - 2), _at(h, axis, 1, size - 1)
    before, after = _at(steps, axis, 0, size - 2), _at(steps, axis, 1, size - 1)
    middle = (before * right + after * left) / (left + right)
    low, high = _at(steps, axis, 0, 1), _at(steps, axis, size - 2, size - 1)
    if edge_order == 2:
        low = 2 * low - _at(middle, axis, 0, 1)
        high = 2 * high - _at(middle, axis, size - 3, size - 2)
    return _cat([low, middle, high], axis)


def _spacings(self: Array, spacing: Operand | Sequence[Operand], dims: list[int], given: bool) -> list[Operand]:
    """Return the distance, or the places, of the points along each dimension."""
    if spacing is None or not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing] * len(dims)
    if len(spacing) != len(dims):
        start = "gradscope.gradient expected spacing to be unspecified, a scalar"
        if given:
            raise RuntimeError(
                f"{start} or it's spacing and dim arguments to have the same length, but got a spacing argument of "
                f"length {len(spacing)} and a dim argument of length {len(dims)}."
            )
        raise RuntimeError(
            f"{start}, or a list of length equal to 'self.dim() = {self._array.ndim}', since dim argument was not "
            f"given, but got a list of length {len(spacing)}"
        )
    for places in spacing:
        if hasattr(places, "_array") and places._array.ndim != 1:
            raise RuntimeError(
                "gradscope.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{places._array.ndim} dimensions!"
            )
    return list(spacing)


@public(method=False)
def gradient(
    self: Tensor, *, spacing: Operand | Sequence[Operand] = None, dim: Dims = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Return the slopes of a function along dimensions, estimated from its values by central differences.

    Parameters
    ----------
    self : Tensor
        The values.
    spacing : number, or list of numbers or of vectors, optional
        The distance of the points, for all dimensions or for each; or, for each, the places of its points. 1 unless
        given.
    dim : int or tuple of int, optional
        The dimensions; all unless given.
    edge_order : {1, 2}
        Whether the slopes at the ends are those of lines or of parabolas.

    Returns
    -------
    tuple of Tensor
        For each dimension, slopes of the shape of `self`.

    Raises
    ------
    RuntimeError
        If a dimension is given twice or has too few points, or `spacing` does not fit.
    IndexError
        If there is no such dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.gradient(gs.tensor([0.0, 1.0, 4.0, 9.0]))
    (tensor([1., 2., 4., 5.]),)
    >>> gs.gradient(gs.tensor([0.0, 1.0, 9.0]), spacing=[gs.tensor([0.0, 1.0, 3.0])], edge_order=2)
    (tensor([0., 2., 6.]),)
    """
    ndim = self._array.ndim
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradscope.gradient only supports edge_order=1 and edge_order=2.\nIt is {edge_order}.")
    wanted = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [axis_of(d, ndim) for d in wanted]
    for place, axis in enumerate(dims):
        if axis in dims[:place]:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims\nName each once.")
    spacings = _spacings(self, spacing, dims, dim is not None)
    found = []
    for axis, given in zip(dims, spacings, strict=True):
        if self._array.shape[axis] <= edge_order:
            raise RuntimeError(
                "gradscope.gradient expected each dimension size to be at least edge_order+1\n"
                f"Dimension {axis} has {self._array.shape[axis]} points."
            )
        slope = _uneven_slope if hasattr(given, "_array") else _slope
        found.append(slope(self, axis, given, edge_order))
    return tuple(found)


# --- integrals --------------------------------------------------------------------------------------------------------


def _panels(name: str, y: Array, x: Array, dx: Number, dim: int) -> tuple[Array, Number, int]:
    """Return the areas between neighbours along a dimension but for a factor, that factor, and the dimension.

    The factor is for the sum, that in half precision no area be rounded by it, nor become too small.
    """
    ndim = y._array.ndim
    if not ndim:
        raise IndexError(f"{name}(): the tensor has no dimension to integrate along\nGive it one: y.reshape(1).")
    axis = axis_of(dim, ndim)
    size = y._array.shape[axis]
    sums = _slice(y, axis, 1, size, 1) + _slice(y, axis, 0, max(size - 1, 0), 1)
    return (sums, dx / 2, axis) if x is None else (sums * _widths(name, y, x, axis), 0.5, axis)


def _widths(name: str, y: Array, x: Array, axis: int) -> Array:
    """Return the distances of neighbouring places `x`, a vector along the dimension or of the shape of `y`."""
    ndim, given = y._array.ndim, x._array
    if given.ndim == 1:
        if given.shape[0] != y._array.shape[axis]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point\n"
                f"There are {given.shape[0]} for {y._array.shape[axis]} points along dimension {axis}."
            )
        x = METHODS["reshape"](x, *(-1 if d == axis else 1 for d in range(ndim)))
    elif given.ndim < ndim:
        x = METHODS["reshape"](x, *(1,) * (ndim - given.ndim), *given.shape)
    along = axis if x._array.ndim == ndim else axis - ndim
    return diff(x, dim=along)


@public(method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """Return the integral of `y` along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Values at the sample points.
    x : Tensor, optional
        The sample points; `dx` apart unless given.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.trapezoid(gs.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    areas, factor, axis = _panels("trapezoid", y, x, dx, dim)
    return METHODS["sum"](areas, axis) * factor


@public(method=False)
def trapz(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """Another name of :func:`trapezoid`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.trapz(gs.tensor([0.0, 1.0, 2.0]))
    tensor(2.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@public(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """Return the running integrals of `y` along a dimension; the parameters are those of :func:`trapezoid`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.cumulative_trapezoid(gs.tensor([0.0, 1.0, 2.0]))
    tensor([0.5000, 2.0000])
    """
    areas, factor, axis = _panels("cumulative_trapezoid", y, x, dx, dim)
    return METHODS["cumsum"](areas, axis) * factor
