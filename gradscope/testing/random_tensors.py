"""Tensors of random numbers, for tests."""

from __future__ import annotations

import math
from typing import Any

import gradscope as gs
from gradscope.runtime.tensor.tensor import Tensor

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of numbers drawn uniformly from `low` (inclusive) to `high` (exclusive).

    Parameters
    ----------
    low, high : number, optional
        Clamped to what the dtype holds. Without them: 0 and 2 for bools, 0 and 10 for unsigned integers, -9 and 10 for
        signed ones, -9 and 9 for floats and both parts of complex numbers.
    noncontiguous : bool
        Leave gaps between the elements, where there are at least two.
    exclude_zero : bool
        Put 1, of floats the smallest normal number, in the place of zeros.
    memory_format : memory_format, optional
        How the elements are to lie; not together with `noncontiguous`.

    Raises
    ------
    ValueError
        If the limits are NaN or `low` is above `high`, or integers do not lie between them, or `requires_grad` is true
        for a dtype without gradients, or `noncontiguous` and `memory_format` are both given.

    See Also
    --------
    randn, testing.assert_close

    Examples
    --------
    >>> import gradscope as gs
    >>> x = make_tensor(2, 3, dtype=gs.float64, low=0, high=1)
    >>> x.shape, bool(((0 <= x) & (x < 1)).all())
    (gradscope.Size([2, 3]), True)
    """
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}\n"
            "Ask for a floating or complex dtype."
        )
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    low, high = _limits(dtype, low, high)
    gaps = noncontiguous and math.prod(sizes) > 1
    result = _drawn((*sizes[:-1], 2 * sizes[-1]) if gaps else sizes, dtype, device, low, high)
    result = result[..., ::2] if gaps else result
    if exclude_zero:
        least = 1 if not (dtype.is_floating_point or dtype.is_complex) else gs.finfo(_part(dtype)).tiny
        result.masked_fill_(result == 0, least)
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return result.requires_grad_(requires_grad)


def _limits(dtype: Any, low: float | None, high: float | None) -> tuple[Any, Any]:
    """Return the limits of what is drawn, within those of the dtype."""
    whole = dtype in _WHOLE
    info: Any = gs.iinfo(gs.int64 if dtype is gs.bool else dtype) if whole else gs.finfo(_part(dtype))
    least, most = (0, 2) if dtype is gs.bool else (info.min, info.max)
    usual = (0, 2) if dtype is gs.bool else (-9 if dtype.is_signed else 0, 10 if whole else 9)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}\nGive numbers.")
    if low > high or (low == high and whole):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}\nExchange them.")
    if high < least or low > most:
        raise ValueError(
            f"The value interval specified by {low=} and {high=} is outside of what {dtype} holds\n"
            f"Give limits between {least} and {most}."
        )
    low, high = max(low, least), min(high, most)
    if whole:
        low, high = math.ceil(low), math.ceil(high)
    return low, high


_WHOLE = (gs.bool, gs.uint8, gs.int8, gs.int16, gs.int32, gs.int64)


def _part(dtype: Any) -> Any:
    """Return the dtype of the parts of a complex number; a real one itself."""
    return {gs.complex64: gs.float32, gs.complex128: gs.float64}.get(dtype, dtype)


def _drawn(sizes: tuple[int, ...], dtype: Any, device: Any, low: Any, high: Any) -> Tensor:
    if dtype in _WHOLE:
        return gs.randint(low, high, sizes, dtype=dtype, device=device)
    if dtype.is_complex:
        parts = (_drawn(sizes, _part(dtype), device, low, high) for _ in range(2))
        return gs.complex(*parts)
    return gs.empty(sizes, dtype=dtype, device=device).uniform_(low, high)
