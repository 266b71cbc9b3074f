"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """Return all elements of the parameters in one dimension, recorded."""
    return PUBLIC["cat"]([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Make the parts of `vec` the parameters' data.

    Raises
    ------
    TypeError
        If `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected gradscope.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        part: Any = vec.narrow(0, start, count)
        parameter.data = part.view_as(parameter).data
        start += count
