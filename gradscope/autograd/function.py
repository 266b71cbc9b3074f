"""User-defined functions: ``Function`` with its own forward and backward.

``Function.apply`` makes the node first and hands it to the user as ``ctx``: what the user stores on ``ctx`` lives as
long as the node, and ``output.grad_fn is ctx``. What its instances do is in :mod:`.v01.instance_function`.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from ..runtime import events, state
from ..runtime.tensor import tangents
from .function_calls import begin, finish, push_tangents
from .function_context import FunctionCtx, FunctionNode
from .once_differentiable import once_differentiable
from .v01.instance_function import InstanceStyle

__all__ = ["Function", "FunctionCtx", "FunctionNode", "InplaceFunction", "once_differentiable"]

modes = state.local
_new = object.__new__


class FunctionMeta(type):
    """Makes, with each Function, the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            name + "Backward",
            (FunctionNode,),
            {"_forward_cls": cls, "node_name": name + "Backward", "__module__": cls.__module__, "__doc__": None},
        )
        cls._forward_cls = cls


class Function(InstanceStyle, FunctionNode, metaclass=FunctionMeta):
    """Base of functions with a derivative of their own: write `forward` and `backward`, call :meth:`apply`.

    See Also
    --------
    gradcheck, autograd.graph.saved_tensors_hooks

    Examples
    --------
    >>> import gradscope as gs
    >>> class Exp(gs.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         result = x.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (result,) = ctx.saved_tensors
    ...         return grad_output * result
    >>> x = gs.tensor([0.0, 1.0], requires_grad=True)
    >>> y = Exp.apply(x)
    >>> y.grad_fn.name()
    'ExpBackward'
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.0000, 2.7183])
    """

    _backward_cls: type[FunctionNode]

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or ``forward(*args)`` beside a :meth:`setup_context`.

        Nothing it does is recorded. Arguments may be anything; only tensors have gradients.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, when forward takes no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient (or None) of each argument of forward, given those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of each output (None for one without derivative), given those of the arguments.

        An argument that is no tensor has None, a tensor without tangent zeros (None after
        ``ctx.set_materialize_grads(False)``). ``ctx.saved_tensors`` are those of ``ctx.save_for_forward``. Where
        forward writes an argument in place, write its tangent in place; where it returns a view, return a view of the
        tangent.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on `args` and record it as one node."""
        separate = cls.setup_context is not _NO_SETUP
        if kwargs or separate:
            args, kwargs = _bound(cls, args, kwargs, separate)
        inputs = (*args, *kwargs.values()) if kwargs else args
        if state.special and events.wanted(events.FunctionApplied):
            events.emit(events.FunctionApplied(cls, inputs))
        node: FunctionNode = _new(cls._backward_cls)
        recorded = begin(node, inputs)
        before = modes.grad_enabled
        modes.grad_enabled = False
        dual = state.special and tangents.active()
        if dual:
            modes.forward_grad = False
        try:
            if separate:
                raw = cls.forward(*args)
                cls.setup_context(node, args, raw)
            else:
                raw = cls.forward(node, *args, **kwargs)
            marks = (node.dirty_tensors, node.non_differentiable) if dual else ()
            outputs = finish(node, inputs, raw, recorded)
        finally:
            modes.grad_enabled = before
            if dual:
                modes.forward_grad = True
        if dual:
            push_tangents(node, inputs, raw, outputs, *marks)
        if node.saved_for_forward is not None:
            node.saved_for_forward = None
        return outputs


_NO_SETUP = Function.setup_context
FunctionNode._missing_backward = staticmethod(Function.backward)


_UNEVALUATED: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    # Annotations are evaluated when they are asked for, and some name what only a type checker imports.
    from annotationlib import Format

    _UNEVALUATED = {"annotation_format": Format.FORWARDREF}


def _bound(cls: type[Function], args: Any, kwargs: dict[str, Any], separate: bool) -> tuple[Any, dict[str, Any]]:
    """Return arguments with forward's defaults filled in, as PyTorch does beside a setup_context."""
    if not separate:
        return args, kwargs
    bound = inspect.signature(cls.forward, **_UNEVALUATED).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


class InplaceFunction(Function):
    """A Function whose instances say whether they write their input (``inplace=True``)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
