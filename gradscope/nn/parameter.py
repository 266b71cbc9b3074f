"""Parameter: a leaf tensor that a module counts among its own."""

from __future__ import annotations

from typing import Any

from ..runtime import state
from ..runtime.creation import empty
from ..runtime.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module it is assigned to.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared.
    requires_grad : bool

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Parameter(gs.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """Return a parameter that shares memory and version with `data`."""
        source = empty(0) if data is None else data
        if not isinstance(source, Tensor):
            raise TypeError(
                f"Creating a Parameter from an instance of type {type(source).__name__} requires that detach() returns "
                "an instance of the same type.\nMake a tensor of it first: gradscope.tensor(...)."
            )
        return cls._sharing(source).requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        # As in PyTorch, without the gradient and the user's own attributes.
        result = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return result


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module it is assigned to.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared.
    persistent : bool
        Whether it is part of the module's ``state_dict``.
    """

    __slots__ = ()

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        """Return a buffer that shares memory and version with `data`."""
        source = empty(0) if data is None else data
        buffer = cls._sharing(source)
        buffer._flags |= source._flags & state.GRAD
        buffer.persistent = persistent
        return buffer
