"""``Variable(data, requires_grad, volatile)``: what a tensor that takes part in a graph was.

A volatile tensor is an input of which nobody will want a gradient: whatever is computed from one is volatile too and
has no ``grad_fn``, whatever else takes part. :class:`gradscope.no_grad` replaced it.
"""

from __future__ import annotations

from typing import Any

from ...runtime import state
from ...runtime.engine.backward import queue_callback
from ...runtime.tensor.tensor import Tensor
from .sampling import STOCHASTIC

__all__ = ["Variable"]


class ExecutionEngine:
    """The class of ``Variable._execution_engine``: callbacks at the end of the backward that runs."""

    queue_callback = staticmethod(queue_callback)


class VariableMeta(type):
    """Makes every Tensor an instance of :class:`Variable`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool = False, name: str | None = None
    ) -> Tensor:
        if requires_grad and volatile:
            raise RuntimeError(
                "Variable can't be volatile and require_grad at the same time!\n"
                "Nothing computed from a volatile Variable has a gradient: choose one of them."
            )
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type(data).__name__}\nWrap it: gradscope.tensor(...)."
            )
        result = Tensor() if data is None else data.detach()
        result._flags &= ~state.INERT
        if requires_grad:
            result.requires_grad_()
        if volatile:
            result._flags |= state.INERT
        meta = result._extras()
        meta.name, meta.sampler = name, STOCHASTIC
        return result


class Variable(metaclass=VariableMeta):
    """``Variable(data, requires_grad=False, volatile=False)`` returns a tensor that shares memory with `data`.

    See Also
    --------
    Tensor, Function

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import Variable
    >>> x = Variable(gs.ones(2), volatile=True)
    >>> w = Variable(gs.ones(2), requires_grad=True)
    >>> y = x * w
    >>> y.volatile, y.requires_grad, isinstance(y, Variable)
    (True, False, True)
    """

    _execution_engine = ExecutionEngine()
