"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """Return all elements of the parameters in one dimension, recorded.

    See Also
    --------
    vector_to_parameters

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.parameters_to_vector([gs.ones(2), gs.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return PUBLIC["cat"]([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Make the parts of `vec` the parameters' data.

    Raises
    ------
    TypeError
        If `vec` is no tensor.

    See Also
    --------
    parameters_to_vector

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.zeros(2))
    >>> gs.nn.utils.vector_to_parameters(gs.tensor([1.0, 2.0]), [w])
    >>> w.detach()
    tensor([1., 2.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected gradscope.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        part: Any = vec.narrow(0, start, count)
        parameter.data = part.view_as(parameter).data
        start += count
