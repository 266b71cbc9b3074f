"""Gradient clipping: in place, outside the graph, counted as writes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...runtime.memory import device as devices
from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.execution.bare_functions import is_half, single
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Any) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in tensors if p.grad is not None]


def _norm(xp: Any, array: Any, norm_type: float) -> Any:
    if is_half(array):
        return _norm(xp, single(array), norm_type).astype(array.dtype)
    if norm_type == 2:
        flat = (xp.absolute(array) if array.dtype.kind == "c" else array).reshape(-1)
        return xp.sqrt(xp.dot(flat, flat))
    return OPERATORS["linalg_vector_norm"].run_forward(xp, array, norm_type)


def get_total_norm(
    tensors: Iterable[Tensor] | Tensor,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of the norms of the tensors.

    Raises
    ------
    RuntimeError
        If it is not finite and `error_if_nonfinite`.

    See Also
    --------
    clip_grads_with_norm_, clip_grad_norm_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.get_total_norm([gs.tensor([3.0]), gs.tensor([4.0])])
    tensor(5.)
    """
    arrays = [t._array for t in ([tensors] if isinstance(tensors, Tensor) else list(tensors))]
    if not arrays:
        return Tensor._wrap(devices.numpy.zeros((), dtype=devices.numpy.float32))
    xp = devices.array_module(arrays[0])
    norm_type = float(norm_type)
    total = _norm(xp, xp.stack([xp.asarray(_norm(xp, a, norm_type)) for a in arrays]), norm_type)
    result = Tensor._wrap(xp.asarray(total))
    if error_if_nonfinite and not math.isfinite(result.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return result


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients so that a total norm of `total_norm` becomes at most `max_norm`.

    See Also
    --------
    clip_grad_norm_, get_total_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.zeros(2))
    >>> w.grad = gs.tensor([3.0, 4.0])
    >>> gs.nn.utils.clip_grads_with_norm_([w], 1.0, gs.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    for grad in _gradients(parameters):
        xp = devices.array_module(grad._memory)
        # Gradients are multiplied by 1 too: to look at the factor would be to wait for a GPU.
        factor = xp.minimum(float(max_norm) / (total_norm._array + 1e-6), 1.0)
        xp.multiply(grad._memory, factor.astype(grad._dtype), out=grad._memory)
        grad._bump("clip_grad_norm_")


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters` so that their norm, as of one vector, is at most `max_norm`.

    Parameters
    ----------
    error_if_nonfinite : bool
        Raise when the norm is NaN or infinite.
    foreach : bool, optional
        Taken for PyTorch's sake, as in the other functions here: there is one way.

    Returns
    -------
    Tensor
        The norm before.

    See Also
    --------
    clip_grad_value_, get_total_norm

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([3.0, 4.0]))
    >>> w.grad = gs.tensor([3.0, 4.0])
    >>> gs.nn.utils.clip_grad_norm_([w], max_norm=1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(tensors), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(tensors, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Do what :func:`clip_grad_norm_` does, with a FutureWarning.

    See Also
    --------
    clip_grad_norm_ : describes the arguments, and does not warn.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([3.0, 4.0]))
    >>> w.grad = gs.tensor([3.0, 4.0])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gs.nn.utils.clip_grad_norm([w], max_norm=1.0)
    tensor(5.)
    """
    warn(
        "`gradscope.nn.utils.clip_grad_norm` is now deprecated in favor of `gradscope.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value].

    See Also
    --------
    clip_grad_norm_

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.zeros(2))
    >>> w.grad = gs.tensor([3.0, -0.5])
    >>> gs.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    limit = float(clip_value)
    for grad in _gradients(parameters):
        if grad.is_complex():
            raise NotImplementedError("clamp is not supported for complex types\nUse clip_grad_norm_().")
        xp = devices.array_module(grad._memory)
        xp.minimum(xp.maximum(grad._memory, -limit), limit, out=grad._memory)
        grad._bump("clip_grad_value_")
