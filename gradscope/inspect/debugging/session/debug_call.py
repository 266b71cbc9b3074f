"""``gi.debug(loss)``: a debugger for one backward, from a notebook or a test."""

from __future__ import annotations

import warnings
from typing import Any

from ...adapters import Adapter, AnyAdapter
from ...debuggee.program import CallProgram
from ...output.number_format import format_shape
from ...records.execution_order import walk
from ...records.naming import Names, name_graph
from ...records.records import SessionState
from ..stops.breakpoints import Breakpoint
from ..stops.run_targets import RunCommand
from .debugger import Debugger, SessionError

__all__ = ["debug"]

_TIMEOUT = 10

# The attribute that a breakpoint of each kind looks at, and what a message calls it.
_NAMED = {"mod": ("module", "modules"), "param": ("parameter", "parameters"), "line": ("location", "lines")}
# A look at more nodes than that would be too slow for the sake of a warning.
_MOST_LOOKED_AT = 20_000

_WAY_OUT = {
    "module": "Without parameters to tell by (relu, dropout), the module of a node is known only of what ran inside "
    "`with gi.track():`.",
    "parameter": "Names are those of params=, else of the living modules that own the leaves.",
    "location": "Lines are known only of what ran inside `with gi.track():`.",
}


class _BlockingDebugger(Debugger):
    """A session whose verbs return when the program has stopped again."""

    runs_once = False

    def _go(self, command: RunCommand) -> None:
        super()._go(command)
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
            If modules, parameters or lines are asked for, and none of the nodes of this backward is known to be there.
        """
        added = super().add_breakpoint(spec, **options)
        attribute, words = _NAMED.get(added.spec.partition(":")[0], ("", ""))
        nodes = self.nodes
        if not words or not nodes or len(nodes) > _MOST_LOOKED_AT or any(map(added.matches, nodes)):
            return added
        known = any(getattr(node, attribute) for node in nodes)
        what = f"{added.spec} names no node of this backward" + ("" if known else f": none of its {words} is known")
        warnings.warn(f"{what}\n{_WAY_OUT[attribute]}", stacklevel=2)
        return added

    breakpoint = add_breakpoint

    def call_by(self, names: Names) -> None:
        """Call leaves and nodes by names, though the session has not seen their modules run."""
        self._session.tracker.add_leaves(names.tensors)
        self._session.tracker.add_users(names.modules)

    def restart(self) -> None:
        """Start the program again; see :meth:`Debugger.restart`.

        Raises
        ------
        SessionError
            If it is the backward of a loss, which frees its graph.
        """
        if self.runs_once:
            raise SessionError(
                "the backward of a loss frees its graph, so it cannot be started again\n"
                "Pass debug() a function that computes the loss and calls backward(), or retain_graph=True."
            )
        super().restart()

    def abort(self) -> None:
        """End the program; see :meth:`Debugger.abort`."""
        super().abort()
        self.wait(_TIMEOUT)


def debug(loss: Any, *, params: Any = None, adapter: Adapter | None = None, **options: Any) -> Debugger:
    """Run the backward of a loss (or a whole function) under a debugger, and stop at its first node.

    The verbs of this session return when the program has stopped again, so that one can type line after line; Ctrl-C
    pauses it.

    Parameters
    ----------
    loss : Tensor or callable
        A tensor whose ``backward()`` to debug, or a function without arguments that calls backward().
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        Gives names (a Module, for a function). By default the modules that :func:`track` saw, else the living modules
        that own the leaves. Nodes that use their parameters belong to them; the modules of other nodes, and lines, are
        known only of what ran inside ``with gi.track():``.
    **options
        For ``backward()``: ``gradient``, ``retain_graph``, ``create_graph``, ``inputs``.

    Returns
    -------
    Debugger
        Paused before the first node, or ended if there was none.

    See Also
    --------
    set_trace : Stop at a line of the program, forward or backward.
    post_mortem : Look at a backward that has failed.

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
    >>> dbg.node.module, dbg.grad_in
    ('0', [array([[1.]], dtype=float32)])
    >>> dbg.set_grad(0, 10.0)
    >>> dbg.back()
    >>> dbg.state.value, dbg.node.name
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
    session = _BlockingDebugger(CallProgram(function), adapter)
    if function is not loss:
        session.runs_once = not (options.get("retain_graph") or options.get("create_graph"))
        session.call_by(_names(adapter.of(loss), loss, params))
    elif params is not None:
        session.add_module(params)
    session.start()
    return session


def _names(adapter: Adapter, loss: Any, params: Any) -> Names:
    root = adapter.root(loss)
    return name_graph(adapter, walk(adapter, [] if root is None else [root[0]]), params)
