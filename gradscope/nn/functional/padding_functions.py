"""Padding."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.vision.padding import circular_pad
from ...runtime.tensor.tensor import Tensor

__all__ = ["pad"]

_KINDS = {"reflect": "reflection", "replicate": "replication"}


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions.

    Parameters
    ----------
    pad : sequence of int
        How much before and after the last dimension, then the last but one, ...; negative numbers cut.
    mode : {"constant", "reflect", "replicate", "circular"}
        With `value`; with what stands at the same distance inside the border; with the border; with what stands at
        the other end. All but the first pad the last 1, 2 or 3 dimensions of a batch, or of one example.
    value : float, optional
        0 unless given.

    Raises
    ------
    NotImplementedError
        For another mode, or a number of dimensions that a mode does not take.

    See Also
    --------
    nn.ConstantPad2d, nn.ReflectionPad2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.pad(gs.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    pads, ndim = tuple(pad), input.ndim
    if len(pads) % 2:
        raise RuntimeError("Padding length must be divisible by 2\nGive a pair of numbers for each dimension.")
    if len(pads) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pads)} and input of dimension {ndim}"
        )
    if mode == "constant":
        return OPERATORS["constant_pad_nd"].function(input, pads, 0 if value is None else value)
    if mode != "circular" and mode not in _KINDS:
        raise NotImplementedError(f"Unrecognised padding mode {mode}\nUse constant, reflect, replicate or circular.")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    count = len(pads) // 2
    if count not in (1, 2, 3) or ndim - count not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pads)} is not supported for {ndim}D input tensor.\nA pair of numbers pads the last of "
            "2 or 3 dimensions, two pairs the last two of 3 or 4, three pairs the last three of 4 or 5."
        )
    if mode == "circular":
        return circular_pad(input, pads)
    return OPERATORS[f"{_KINDS[mode]}_pad{count}d"].function(input, pads)
