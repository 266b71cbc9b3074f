"""``gi.debug(loss)``: a debugger for one backward, from a notebook or a test."""

from __future__ import annotations

from typing import Any

from .adapters import Adapter, NativeAdapter
from .debugger import Debugger
from .statistics import format_shape

__all__ = ["debug"]


def debug(loss: Any, *, adapter: Adapter | None = None, **options: Any) -> Debugger:
    """Run the backward of a loss (or a whole function) under a debugger, and stop at its first node.

    Parameters
    ----------
    loss : Tensor or callable
        A tensor whose ``backward()`` to debug, or a function without arguments that calls backward().
    adapter : Adapter, optional
    **options
        For ``backward()``: ``gradient``, ``retain_graph``, ``create_graph``, ``inputs``.

    Returns
    -------
    Debugger
        Paused before the first node, or ended if there was none.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.tensor(3.0, requires_grad=True)
    >>> session = gi.debug(x * x)
    >>> session.state.value, session.nodes[0].name
    ('paused before', 'MulBackward0')
    >>> session.cont()
    >>> session.wait().value, x.grad
    ('finished', tensor(6.))
    """
    adapter = adapter or NativeAdapter()
    if adapter.is_tensor(loss):
        if not loss.requires_grad:
            raise RuntimeError(
                f"a tensor of shape {format_shape(tuple(loss.shape))} does not require grad, "
                "so it has no backward to debug"
            )
        function = adapter.backward(loss, **options)
    elif callable(loss) and not options:
        function = loss
    else:
        raise TypeError(f"debug() takes a tensor, or a function without options, got {type(loss).__name__}")
    session = Debugger.for_call(function, adapter=adapter)
    session.start()
    session.wait()
    return session
