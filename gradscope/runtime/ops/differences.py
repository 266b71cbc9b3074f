"""Differences of neighbours, and integrals by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from . import writes
from .parts import cat, slice_
from .registry import METHODS, public
from .shapes import axis_of

_cat = cat.function
_slice = slice_.function


@public
def diff(self: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None) -> Any:
    """Return the differences of neighbours along a dimension, `n` times over."""
    if out is not None:
        return writes.into(out, "diff", [self], lambda: diff(self, n, dim, prepend, append))
    if self._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = axis_of(dim, self._array.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if not n:
        return METHODS["clone"](self)
    parts = [part for part in (prepend, self, append) if part is not None]
    result = _cat(parts, axis) if len(parts) > 1 else self
    minus = METHODS["logical_xor" if result._dtype.kind == "b" else "sub"]
    for _ in range(min(n, result._array.shape[axis])):
        size = result._array.shape[axis]
        result = minus(_slice(result, axis, 1, size, 1), _slice(result, axis, 0, max(size - 1, 0), 1))
    return result


# --- integrals --------------------------------------------------------------------------------------------------------


def _panels(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, Any, int]:
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


def _widths(name: str, y: Any, x: Any, axis: int) -> Any:
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
def trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """Return the integral of `y` along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Values at the sample points.
    x : Tensor, optional
        The sample points; `dx` apart unless given.
    dx : number
    dim : int

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.trapezoid(gs.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    areas, factor, axis = _panels("trapezoid", y, x, dx, dim)
    return METHODS["sum"](areas, axis) * factor


@public(method=False)
def trapz(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """Another name of :func:`trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public(method=False)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """Return the running integrals of `y` along a dimension; the parameters are those of :func:`trapezoid`."""
    areas, factor, axis = _panels("cumulative_trapezoid", y, x, dx, dim)
    return METHODS["cumsum"](areas, axis) * factor
