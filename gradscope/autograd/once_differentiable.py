"""``once_differentiable``: a backward that cannot be differentiated itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ..runtime import state
from ..runtime.graph.graph_node import Node
from ..runtime.tensor.tensor import Tensor

__all__ = ["delay_error", "once_differentiable"]

C = TypeVar("C", bound=Callable[..., Any])

modes = state.local


class DelayedError(Node):
    """A node that raises when a gradient arrives."""

    __slots__ = ("message",)

    node_name = "DelayedError"
    message: str

    def apply(self, grad: Any) -> NoReturn:
        raise RuntimeError(self.message)

    apply_graph = apply


def once_differentiable(backward: C) -> C:
    """Decorate a ``backward`` that cannot itself be differentiated: doing so then raises instead of being wrong."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        recording = modes.grad_enabled
        modes.grad_enabled = False
        try:
            outputs = backward(ctx, *grads)
        finally:
            modes.grad_enabled = recording
        if not recording or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return outputs
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        return delay_error(message, outputs)

    return wrapper  # type: ignore[return-value]


def delay_error(message: str, outputs: Any) -> tuple[Any, ...]:
    """Return aliases of gradients whose own differentiation raises `message`."""
    results = []
    for output in outputs if isinstance(outputs, tuple) else (outputs,):
        if isinstance(output, Tensor):
            output = output.detach()
            array = output._array
            node = DelayedError()
            node.edges, node.seq, node.extra = (), state.next_sequence(), None
            node.shape, node.dtype, node.kind = array.shape, array.dtype, type(array)
            node.message = message
            output._set_edge(node)
        results.append(output)
    return tuple(results)
