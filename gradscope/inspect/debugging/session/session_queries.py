"""Queries about a program that stands still: what its graph keeps, how gradients flow, why it has stopped.

The answers are those of :mod:`gradscope.inspect.diagnosis`, computed on the program's own thread, so that what comes
back is frozen data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...records.module_tracking import join
from ...records.naming import named_tensors
from ...records.records import Location, NodeRecord
from ...records.tensor_statistics import count_bad
from ...source.call_sites import place as place_of
from ..stops.left_out_step import left_out_step
from .pause_context import PauseContext
from .session_lifecycle import DebuggerCore
from .session_records import FrameRecord, VariableRecord

if TYPE_CHECKING:
    from ...diagnosis.flow.gradient_flow import GradientFlow
    from ...diagnosis.memory.graph_memory import MemoryReport

__all__ = ["SessionQueries", "Told", "derivative_of"]

_MOST_NODES = 20_000
"""Nodes of a backward up to which the one is looked for from which a bad value comes."""


class Told(NamedTuple):
    """Who made the NaN or infinity at a stop, and out of what, and the line to look at where that is another one."""

    text: str = ""
    location: Location | None = None


def derivative_of(node_name: str) -> tuple[tuple[str, str], ...]:
    """Return the derivative of the operator that a node belongs to, for reading, of real numbers.

    Returns
    -------
    tuple of (str, str)
        For each argument the expression of its gradient, in which ``g`` is the gradient that arrives; for a longer one
        where it stands. Empty for a node of no operator, such as that of a custom Function.

    Examples
    --------
    >>> derivative_of("MulBackward0")
    (('self', 'g * other'), ('other', 'g * self'))
    """
    # Tools for recordings import this module too, and do not need the operators.
    from ....runtime.ops.plain_derivatives import plain_derivative

    return plain_derivative(node_name)


class SessionQueries(DebuggerCore):
    """What can be asked about the program as a whole, wherever it stands."""

    def parameter_names(self) -> list[str]:
        """Return the paths of the parameters of the modules that have run, from input to output."""
        return list(self._parameters())

    def derivative(self, node_name: str) -> tuple[tuple[str, str], ...]:
        """Return the derivative of the operator that a node belongs to; see :func:`derivative_of`."""
        return derivative_of(node_name)

    def variables(self) -> list[VariableRecord]:
        """Return the variables of the function that is paused: the one that called backward(), or ``set_trace()``.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        """
        return self._at_stop(lambda place: place.variables())

    def frames(self) -> tuple[FrameRecord, ...]:
        """Return the functions of the program that wait, the innermost first, with their variables.

        At a node these are the function that called backward() and its callers; at ``set_trace()`` and in a custom
        backward, the function that stands there.

        Raises
        ------
        NotParkedError
            If the program is not paused.

        Examples
        --------
        >>> import gradscope as gs
        >>> from gradscope.inspect import Debugger
        >>> def train(factor):
        ...     gs.ones(2, requires_grad=True).mul(factor).sum().backward()
        >>> session = Debugger.for_call(lambda: train(3.0))
        >>> session.start()
        >>> state = session.wait()
        >>> frame = session.frames()[0]
        >>> frame.location.function, [(one.name, one.text) for one in frame.variables]
        ('train', [('factor', '3.0')])
        >>> session.cont()
        >>> state = session.wait()
        """
        return self._at_stop(lambda place: place.frame_records())

    def memory(self, loss: str = "") -> MemoryReport:
        """Return what the graph of a loss keeps in memory; see :func:`gradscope.inspect.memory`.

        Parameters
        ----------
        loss : str
            An expression as for :meth:`Debugger.evaluate`; by default the loss of the backward in progress, and outside
            of one the variable ``loss``.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        Exception
            What the expression raised: :class:`NameError` if there is no such variable.
        """

        def ask(place: PauseContext) -> MemoryReport:
            # The diagnosis loads when it is asked for.
            from ...diagnosis.memory.graph_memory import memory, memory_of

            roots = [] if loss else place.roots()
            if roots:
                return memory_of(self._adapter.of(roots[0]), roots, self._parameters(), None)
            return memory(place.value(loss or "loss"), params=self._parameters() or None)

        return self._at_stop(ask)

    def gradient_flow(self, model: str = "") -> GradientFlow:
        """Return how gradients flow through a model so far; see :func:`gradscope.inspect.gradient_flow`.

        A program that has ended is not asked: the answer is of its last backward, by the norms that were kept.

        Parameters
        ----------
        model : str
            An expression; by default all modules that the session has seen run, and the variable ``model`` if it has
            seen none.

        Raises
        ------
        NotParkedError, Exception
            As for :meth:`memory`.
        """

        def ask(place: PauseContext) -> GradientFlow:
            # The diagnosis loads when it is asked for.
            from ...diagnosis.flow.gradient_flow import gradient_flow

            known = {} if model else self._parameters()
            pairs = named_tensors(self._adapter, known or place.value(model or "model"))
            answer = gradient_flow(pairs)
            if answer.verdict != "none":
                return answer
            ahead = place.arrivals(leaf for _, leaf in pairs)
            return replace(answer, findings=(_not_yet(place.roots(), ahead),))

        if self._state.ended and not model:
            from ...diagnosis.flow.gradient_flow import flow_of_nodes  # as above

            lost = [(one.path, one.shape) for one in self._session.parameters() if one.unreached]
            return flow_of_nodes(self._session.nodes, lost)
        return self._at_stop(ask)

    def explain(self) -> str:
        """Return why the program has stopped where it has, if there is more to say of it than :attr:`reason` says.

        Returns
        -------
        str
            After a node that has produced a NaN or an infinity: whether it passes on what has arrived, or made it, and
            out of what; empty elsewhere.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        """
        return self._at_stop(lambda place: self._told_at(place).text)

    # --- inside ---

    def _told_at(self, place: PauseContext) -> Told:
        """Return who made the NaN or infinity that a node has produced, and out of what; nothing elsewhere."""
        # The diagnosis loads when it is asked for.
        from ...diagnosis.nan.nan_stops import bad_value_at, inherited_from

        if not place.has_node:
            return Told()
        node, grads, made, saved = map(place.value, ("node", "grads", "produced", "saved"))
        if not made:
            return Told()
        host = self._adapter.to_host
        given, produced = ([None if grad is None else host(grad) for grad in some] for some in (grads, made))
        values = {name: saved[name] for name in saved}
        known = {name: host(value) for name, value in values.items() if self._adapter.is_tensor(value)}
        text = bad_value_at(node, given, produced, known, self._source_of(node))
        arrived = any(any(count_bad(grad)) for grad in given if grad is not None)
        if not text or arrived:
            return Told(text)
        told = Told(text)
        if inherited_from(node.operator, produced, known):
            told = self._inherited_at(node, text)
        return self._with_left_out_step(node, told)

    def _source_of(self, node: NodeRecord) -> str:
        """Return the node out of which the NaN or infinity came that a node was given, and its line; empty for none."""
        # The diagnosis loads when it is asked for.
        from ...diagnosis.flow.norm_trend import bad_source

        view = self._session.shown[0]
        if view is None or len(view.order) > _MOST_NODES:
            return ""
        source = bad_source(view.nodes[: node.index + 1], node)
        if source is None:
            return ""
        return f"{source.name} (#{source.index})" + (f" at {place_of(source.location)}" if source.location else "")

    def _inherited_at(self, node: NodeRecord, text: str) -> Told:
        """Add since when what a node has saved is not finite."""
        # The diagnosis loads when it is asked for.
        from ..stops.inherited_nan import inherited_nan

        view = self._session.shown[0]
        if view is None or not view.live:
            return Told(text)
        found = inherited_nan(self._adapter, view, node.index, self._session.bad_begin)
        if found is None:
            return Told(text)
        more = "\n".join(f"  {line}" for line in found.text.splitlines())
        return Told(f"{text}\n{more}", found.location)

    def _with_left_out_step(self, node: NodeRecord, told: Told) -> Told:
        """Add that a GradScaler will leave the step out."""
        view = self._session.shown[0]
        if view is None or len(view.order) > _MOST_NODES:
            return told
        more = left_out_step(self._adapter, view.nodes[: node.index + 1], overflow="overflow" in told.text)
        return told._replace(text="\n  ".join([told.text, *more.splitlines()]))

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the modules that have run, by their paths, from input to output."""
        roots = self._session.tracker.roots().items()
        return {join(label, path): p for label, root in roots for path, p in self._adapter.named_parameters(root)}


def _not_yet(roots: Sequence[Any], ahead: Sequence[int]) -> str:
    """Return what to do where no gradient has arrived; `ahead` are the nodes of this backward that bring them."""
    if not roots:
        return "no gradient has arrived yet: go on into a backward (`next-backward`), and ask again there"
    if not ahead:
        return "no gradient has arrived, and this backward brings none: `why NAME` tells why a parameter gets none"
    last = ahead[-1]
    coming = f"it comes at node {last}" if len(ahead) == 1 else f"they come at nodes {ahead[0]} to {last}"
    return f"no gradient has arrived yet: {coming} of this backward, and `run-to {last}` goes there"
