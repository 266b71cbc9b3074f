"""Padding."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.registry import OPERATORS
from ...runtime.tensor import Tensor

__all__ = [
    "pad",
]


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions, last one first, with a number (0).

    Raises
    ------
    NotImplementedError
        For another mode than ``"constant"``.
    """
    if mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}\nOnly 'constant' is there.")
    return OPERATORS["constant_pad_nd"].function(input, tuple(pad), 0 if value is None else value)
