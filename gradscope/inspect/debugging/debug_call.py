"""``gi.debug(loss)``: a debugger for one backward, from a notebook or a test."""

from __future__ import annotations

import warnings
from typing import Any

from ..adapters import Adapter, AnyAdapter
from ..records import SessionState
from ..statistics import format_shape
from .breakpoints import Breakpoint
from .debugger import Debugger
from .goals import Order

__all__ = ["debug"]

_PATIENCE = 10

# What a breakpoint of each kind looks at, and what that is called.
_NAMED = {"mod": ("module", "modules"), "param": ("parameter", "parameters"), "line": ("location", "lines")}


class _PatientDebugger(Debugger):
    """A session whose verbs return when the program has stopped again."""

    def _go(self, order: Order) -> None:
        super()._go(order)
        try:
            self.wait()
        except KeyboardInterrupt:
            if self.state is SessionState.RUNNING:
                self.pause()
            self.wait()

    def add_breakpoint(self, spec: str, **options: Any) -> Breakpoint:
        """Stop before every node that `spec` names; see :meth:`Debugger.add_breakpoint`.

        Warns
        -----
        UserWarning
            If modules, parameters or lines are asked for, and none is known of this backward.
        """
        added = super().add_breakpoint(spec, **options)
        attribute, words = _NAMED.get(added.spec.partition(":")[0], ("index", ""))
        if words and self.nodes and not any(getattr(node, attribute) for node in self.nodes):
            warnings.warn(
                f"no {words} are known of this backward, so {added.spec} names none of its nodes\n"
                "Pass params=model to debug(), or run the forward pass inside `with gi.track():`.",
                stacklevel=2,
            )
        return added

    breakpoint = add_breakpoint

    def abort(self) -> None:
        """End the program; see :meth:`Debugger.abort`."""
        super().abort()
        self.wait(_PATIENCE)


def debug(loss: Any, *, params: Any = None, adapter: Adapter | None = None, **options: Any) -> Debugger:
    """Run the backward of a loss (or a whole function) under a debugger, and stop at its first node.

    The verbs of this session return when the program has stopped again, so that one can type line after line; Ctrl-C
    pauses it.

    Parameters
    ----------
    loss : Tensor or callable
        A tensor whose ``backward()`` to debug, or a function without arguments that calls backward().
    params : Module, optional
        Whose parameters to call by their paths. Modules of other nodes, and lines, are known of what ran inside
        ``with gi.track():``.
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
    >>> model = gs.nn.Sequential(gs.nn.Linear(2, 1, bias=False), gs.nn.Tanh())
    >>> with gi.track():
    ...     loss = model(gs.zeros(1, 2)).sum()
    >>> dbg = gi.debug(loss, params=model)
    >>> print(dbg.breakpoint("mod:0 and norm > 0.5"))
    mod:0 if norm > 0.5
    >>> dbg.cont()
    >>> dbg.nodes[dbg.current].module, dbg.grad_in
    ('0', [array([[1.]], dtype=float32)])
    >>> dbg.set_grad(0, 10.0)
    >>> dbg.back()
    >>> dbg.state.value, dbg.nodes[dbg.current].name
    ('replaying', 'TanhBackward0')
    >>> dbg.step()
    >>> dbg.state.value, dbg.grad_in
    ('paused before', [array([[10.]], dtype=float32)])
    >>> dbg.abort()
    """
    adapter = adapter or AnyAdapter()
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
    session = _PatientDebugger.for_call(function, adapter=adapter)
    if params is not None:
        session.add_module(params)
    session.start()
    return session
