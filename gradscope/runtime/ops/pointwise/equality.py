"""Comparisons of whole tensors, and the distinct elements of one."""

from __future__ import annotations

from ...memory import device as devices
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Namespace, Results
from ..declaration.extremes import elementwise
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import binary

# --- comparisons of whole tensors -------------------------------------------------------------------------------------


def _isclose(
    xp: Namespace, self: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    if self.dtype != other.dtype:
        names = [scalar_type(a.dtype) for a in (self, other)]
        raise RuntimeError(f"{names[0]} did not match {names[1]}\nConvert one of them with .to().")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"rtol and atol must be greater than or equal to zero, but got {rtol} and {atol}")
    close = self == other
    if self.dtype.kind == "b":
        return close
    if self.dtype.kind in "fc":
        near = abs(self - other) <= atol + rtol * abs(other)
        close = close | (near & xp.isfinite(self) & xp.isfinite(other))
        return close | (xp.isnan(self) & xp.isnan(other)) if equal_nan else close
    wide = self.astype("float64"), other.astype("float64")
    return close | (abs(wide[0] - wide[1]) <= atol + rtol * abs(wide[1]))


operator(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)",
    _isclose,
    doc="Say elementwise whether ``|self - other| <= atol + rtol * |other|``.",
    samples=binary(scalar=None),
    reference="numpy.isclose",
    extremes=elementwise(2),
)


@public
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are close, as :func:`isclose` defines it.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.allclose(gs.tensor([1.0, 2.0]), gs.tensor([1.0, 2.0 + 1e-7]))
    True
    """
    close = OPERATORS["isclose"].function(self, other, rtol, atol, equal_nan)
    return bool(devices.to_host(close._array.all()))


@public
def equal(self: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and the same elements.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.equal(gs.tensor([1, 2]), gs.tensor([1, 2]))
    True
    """
    if not hasattr(other, "_array"):
        raise TypeError(
            f"equal(): argument 'other' (position 2) must be Tensor, not {other.__class__.__name__}\n"
            "Compare with a number elementwise: (x == 1).all()."
        )
    if self._array.shape != other._array.shape:
        return False
    return bool(devices.to_host((self._array == other._array).all()))


# --- sets -------------------------------------------------------------------------------------------------------------


@public
def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Results:
    """Return the distinct elements in ascending order, or the distinct slices along `dim`.

    Parameters
    ----------
    sorted : bool
        They are sorted in either case.
    return_inverse : bool
        Return also where in the result each element is.
    return_counts : bool
        Return also how often each occurs.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.unique(gs.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    array = self._array
    found = devices.array_module(array).unique(
        array, return_inverse=return_inverse, return_counts=return_counts, axis=dim
    )
    parts = list(found) if isinstance(found, tuple) else [found]
    if return_inverse:
        parts[1] = parts[1].reshape(array.shape if dim is None else (-1,))
    wrap = self.__class__._wrap
    return tuple(wrap(part) for part in parts) if len(parts) > 1 else wrap(parts[0])


@public
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, 2, ... occurs in a vector of integers, or the sums of their weights.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.bincount(gs.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    array = self._array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs.\nGot {self.dtype} of shape {list(array.shape)}."
        )
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0\nIt is {minlength}.")
    if type(array) is devices.ndarray and array.size and array.min() < 0:
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs.\nOne is {array.min()}.")
    xp = devices.array_module(array)
    given = None if weights is None else weights._array
    found = xp.bincount(array, weights=given, minlength=minlength)
    return self.__class__._wrap(found if given is None or given.dtype.kind != "f" else found.astype(given.dtype))
