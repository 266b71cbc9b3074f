"""Why a parameter has no gradient, or one that is zero: where the way from it to the loss was lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ...adapters import Adapter
from ...records.execution_order import walk
from ...records.module_tracking import module_of_parameter
from ...records.naming import named_tensors, names_for, parameters_below
from ...records.records import operator_name
from ...records.tensor_statistics import norm_of
from ...source.call_sites import user_frames
from ...source.variable_names import name_of
from ..explanation import adapter_of, at
from ..flow.backward_replay import freed_nodes
from ..flow.zero_gradients import ZeroCause, zero_causes
from .dataflow import DataflowObserver, ran_in
from .dataflow_entries import LedgerEntry
from .dataflow_ledger import Ledger, recorder_for
from .forward_functions import places_of
from .lost_history import Answer, loss_of_gradient, lost_on_the_way
from .no_grad_reasons import GradientReport, NoGradient, Reason, Suspect
from .source_suspects import SourceInReach, freezers, switches
from .unused_results import unread
from .withheld_gradients import functions_before, given_none

__all__ = ["LossDiagnosis", "why_no_grad"]


def why_no_grad(
    subject: Any,
    loss: Any = None,
    *,
    params: Any = None,
    ledger: Ledger | None = None,
    adapter: Adapter | None = None,
) -> Any:
    """Say why a parameter has no gradient from a loss, or one that is zero.

    Parameters
    ----------
    subject : Tensor or Module
        A parameter, any other tensor, or a module: all its parameters.
    loss : Tensor, optional
        The loss. Without it, only what can be seen from the tensor itself is said.
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        Gives names.
    ledger : Ledger, optional
        What was written down while the loss was computed; by default the ledger that is open or was open last. Without
        one, the line where the way was lost is not known: the source in reach is read for suspects.

    Returns
    -------
    NoGradient or GradientReport
        For a tensor, or for a module.

    Raises
    ------
    TypeError
        If `subject` is neither a tensor nor a module, or `loss` no tensor.

    See Also
    --------
    ledger : Writes down what is needed to name the line.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w, b = gs.ones(3, requires_grad=True), gs.zeros(3, requires_grad=True)
    >>> with gi.ledger():
    ...     loss = (w * 2).sum()
    >>> loss.backward()
    >>> print(gi.why_no_grad(b, loss))
    `b`: not reached: no operator has used it
      Use it in the forward pass, or leave it out of the model.
    """
    adapter = adapter_of(subject, adapter)
    if loss is not None and not adapter.is_tensor(loss):
        raise TypeError(f"loss must be a tensor, got {type(loss).__name__}\nPass the loss itself, not loss.item().")
    recorder = recorder_for(ledger)
    root = None if loss is None else adapter.root(loss)
    end = None if loss is None or recorder is None or not recorder.known(loss) else recorder.origin_of(loss)
    frames = list(user_frames(sys._getframe(1)))
    diagnosis = LossDiagnosis(
        adapter, recorder, subject if params is None else params, root=root, end=end, loss=loss, frames=frames
    )
    if not adapter.is_tensor(subject):
        named = named_tensors(adapter, subject)
        return GradientReport(tuple(diagnosis.explain(tensor, name) for name, tensor in named))
    name = diagnosis.names.get(id(subject)) or name_of(subject, frames[0] if frames else None)
    return diagnosis.explain(subject, name)


# The reasons for which the line that has lost the gradient was not seen.
_UNSEEN = (Reason.NOT_REACHED, Reason.NO_GRAPH, Reason.FROZEN, Reason.NOT_IN_LOSS, Reason.COMPILED)


class LossDiagnosis:
    """One loss, and what is known of it; asked about one tensor after the other.

    Parameters
    ----------
    params : object
        What gives names; a module also its modules. For a tensor, the living module that owns it does.
    root : (node, int) or None
        Where the gradient of the loss enters.
    end : LedgerEntry or None
        What the recorder knows of the loss.
    loss : Tensor, optional
        Where it is at hand.
    frames : sequence of frame
        The user's, innermost first: what is on the stack may be read for suspects.
    """

    def __init__(
        self,
        adapter: Adapter,
        recorder: DataflowObserver | None,
        params: Any,
        *,
        root: Any,
        end: LedgerEntry | None,
        loss: Any = None,
        frames: Sequence[FrameType] = (),
    ) -> None:
        self.adapter = adapter
        self.loss = loss
        self.recorder = recorder
        self.end = end
        alone = adapter.is_tensor(params)
        leaves = [params] if alone and adapter.is_parameter(params) else []
        names = names_for(adapter, leaves, None if alone else params, tracker=recorder, frame=next(iter(frames), None))
        self.names = names.paths
        self.links = {} if root is None else walk(adapter, [root[0]])
        self.leaves = {id(v): v for v in (adapter.variable(w.node) for w in self.links.values()) if v is not None}
        # The outermost module that a parameter is in, and its path there.
        self._places = {id(p): (root, path) for root in names.roots.values() for path, p in parameters_below(root, "")}
        self._frames = frames
        self._source: SourceInReach | None = None
        self._zeros: dict[int, tuple[ZeroCause, ...]] | None = None

    def explain(self, tensor: Any, name: str) -> NoGradient:
        """Return why `tensor` has no gradient."""
        answer = self._answer(tensor)
        kept = tuple(dict.fromkeys(place for place in answer.locations if place is not None))
        suspects = self._suspects(tensor, answer.reason)
        if answer.reason is Reason.NO_GRAD and answer.help.startswith("Turn recording on"):
            # No block is around the line: what turned recording off stands elsewhere.
            suspects = switches(self._frames)
        return NoGradient(name, tuple(tensor.shape), answer.reason, answer.message, kept, answer.help, suspects)

    def _suspects(self, tensor: Any, reason: Reason) -> tuple[Suspect, ...]:
        """Return what the source in reach tells, where the line that lost the gradient has not been seen."""
        if reason not in _UNSEEN:
            return ()
        if self._source is None:
            self._source = SourceInReach(self._frames, self.loss)
        if reason is not Reason.FROZEN:
            root, path = self._places.get(id(tensor), (None, ""))
            # No ledger has seen the operators of what is compiled.
            watched = self.recorder is not None and reason is not Reason.COMPILED
            return self._source.suspects(tensor, root, path, watched=watched)
        return freezers(self._frames) if self.adapter.is_parameter(tensor) else self._source.origins(tensor)

    def _answer(self, tensor: Any) -> Answer:
        if not tensor.requires_grad:
            return self._frozen(tensor)
        if not self.adapter.is_leaf(tensor):
            return self._non_leaf(tensor)
        if id(tensor) in self.leaves:
            return self._reached(tensor)
        if self._asked_without_loss() and self.adapter.leaf_grad(tensor) is not None:
            return _gradient(self.adapter, tensor)
        if self._asked_without_loss():
            return Answer(
                Reason.NOT_RUN,
                "it requires grad and is a leaf, and no backward pass has left a gradient in it",
                (),
                "Pass the loss too, to be told whether and why it is not reached.",
            )
        return self._not_reached(tensor)

    def _asked_without_loss(self) -> bool:
        return self.loss is None and self.end is None and not self.links

    # --- what the tensor itself shows ---

    def _frozen(self, tensor: Any) -> Answer:
        # A parameter that was written, as the average of another model's, is no result of that one.
        recorder = None if self.adapter.is_parameter(tensor) else self.recorder
        entry = None if recorder is None else recorder.entry_of(tensor)
        if entry is not None and entry.name and recorder is not None:
            sources = [e for e in entry.ancestors() if e.leaf]
            lost = lost_on_the_way(entry, set(sources)) if sources else []
            if lost:
                return loss_of_gradient(lost[0])
        return Answer(
            Reason.FROZEN,
            "frozen: its requires_grad is False",
            (),
            "Call requires_grad_(True) on it before the forward pass, if it is to be trained.",
        )

    def _non_leaf(self, tensor: Any) -> Answer:
        adapter = self.adapter
        if getattr(tensor, "retains_grad", False) and adapter.leaf_grad(tensor) is not None:
            return _gradient(adapter, tensor)
        root = adapter.root(tensor)
        assert root is not None
        node = root[0]
        location = adapter.location(node)
        made = f"it is the result of {adapter.node_name(node)}{at(location)}"
        leaves = [v for v in (adapter.variable(w.node) for w in walk(adapter, [node]).values()) if v is not None]
        alone = len(leaves) == 1 and tuple(leaves[0].shape) == tuple(tensor.shape)
        if alone and operator_name(adapter.node_name(node)) in _REBINDING:
            return Answer(
                Reason.REBOUND,
                f"replaced: {made}, no longer the leaf that it was computed from; gradients go to that leaf",
                (location,),
                "Change the leaf in place under no_grad(), or make the new value a leaf, "
                "`w = (...).detach().requires_grad_()`, and give that to the optimizer. "
                "If it is meant to be a result, call retain_grad() on it.",
            )
        return Answer(
            Reason.NON_LEAF,
            f"not a leaf: {made}; backward() leaves gradients in leaves only",
            (location,),
            "Call retain_grad() on it before backward().",
        )

    # --- reached by the loss ---

    def _reached(self, tensor: Any) -> Answer:
        grad = self.adapter.leaf_grad(tensor)
        if grad is not None:
            answer = _gradient(self.adapter, tensor)
            return self._zero(tensor) if answer.reason is Reason.ZERO else answer
        run = None if self.recorder is None else self.recorder.accumulated(tensor)
        if run is not None:
            return Answer(
                Reason.CLEARED,
                f"cleared: the backward{at(run.location)} gave it a gradient, which was set to None since",
                (run.location,),
                "Look for zero_grad() (which sets gradients to None) or `.grad = None` after that line.",
            )
        withheld = given_none(self.adapter, self.links, tensor)
        if withheld is not None:
            return withheld
        nodes = [w.node for w in self.links.values()]
        runs = [r for r in (ran_in(self.adapter, node) for node in nodes) if r is not None]
        if runs:
            return Answer(
                Reason.AUTOGRAD_GRAD,
                f"reached, but not filled: autograd.grad(){at(runs[-1].location)} returns gradients "
                "and leaves .grad alone",
                (runs[-1].location,),
                "Use what grad() returned, or call backward().",
            )
        if freed_nodes(self.adapter, self.links):
            return self._ran_unseen(tensor)
        return Answer(Reason.NOT_RUN, "reached, but backward() has not been called yet", (), "Call loss.backward().")

    def _ran_unseen(self, tensor: Any) -> Answer:
        """Say what may have become of a gradient in a backward that was not observed."""
        names = functions_before(self.adapter, self.links, tensor)
        functions = " and ".join(f"`{name}`" for name in names)
        way_out = "Run the backward, too, under `with gradscope.inspect.ledger():` to be told which it was."
        ran = "reached, and a backward pass has run through this graph: its gradient was cleared since"
        if not names:
            text, look = f"{ran}, or taken by autograd.grad()", "Look for zero_grad() after backward()."
        else:
            text = f"{ran}, taken by autograd.grad(), or None from the backward of {functions}"
            look = f"Look for zero_grad() after backward(), and at what the backward of {functions} returns."
        return Answer(Reason.CLEARED, text, (), f"{look} {way_out}")

    def _zero(self, tensor: Any) -> Answer:
        if self.loss is None or freed_nodes(self.adapter, self.links):
            return Answer(
                Reason.ZERO,
                "its gradient is zero everywhere",
                (),
                "Ask before backward(), or after backward(retain_graph=True), to be told which operator made it zero.",
            )
        if self._zeros is None:
            self._zeros = zero_causes(self.adapter, self.loss)
        causes = self._zeros.get(id(tensor), ())
        if not causes:
            return Answer(Reason.ZERO, "its gradient is zero everywhere; contributions to it cancel")
        texts = list(dict.fromkeys(f"{cause.text}{at(cause.location)}" for cause in causes))
        way_out = causes[0].help if len(texts) == 1 else ""
        places = tuple(cause.location for cause in causes)
        return Answer(Reason.ZERO, f"its gradient is zero: {'; '.join(texts)}", places, way_out)

    # --- not reached ---

    def _not_reached(self, tensor: Any) -> Answer:
        recorder = self.recorder
        if recorder is not None and self.end is not None:
            answer = self._from_dataflow(tensor, recorder, self.end)
            if answer is not None:
                return answer
            replaced = self._replaced(tensor, recorder)
            if replaced is not None:
                return replaced
            module = self._unused_module(tensor, recorder)
            if module is not None:
                return module
            return self._unused(tensor, recorder)
        way_out = (
            "`gradscope doctor SCRIPT`, or the forward pass under `with gradscope.inspect.ledger():`, "
            "tells for certain which line lost it."
        )
        if not self.links:
            return Answer(Reason.NO_GRAPH, "the loss has no graph: it does not require grad", (), way_out)
        return Answer(Reason.NOT_REACHED, "not reached: no path leads from the loss to it", (), way_out)

    def _from_dataflow(self, tensor: Any, recorder: DataflowObserver, end: LedgerEntry) -> Answer | None:
        """Return where the way from the parameter to the loss was lost, if there was one."""
        source = recorder.entry_of(tensor)
        recorder.aliases(tensor, end.ancestors())
        lost = lost_on_the_way(end, {source})
        if not lost:
            return None
        first = loss_of_gradient(lost[0])
        return first._replace(locations=(*first.locations, *(entry.location for entry in lost[1:])))

    def _replaced(self, tensor: Any, recorder: DataflowObserver) -> Answer | None:
        """Return whether the loss was computed with another leaf, in whose place this one has come."""
        made = recorder.made_in_memory(tensor)
        if made is None or not made.name:
            return None
        ancestors = made.ancestors()
        for leaf in self.leaves.values():
            if recorder.has_leaf(ancestors, leaf):
                return Answer(
                    Reason.REBOUND,
                    f"replaced: it was made from another leaf{at(made.location)}, and the loss was computed with that",
                    (made.location,),
                    "Compute the loss again, or change the parameter in place under no_grad().",
                )
        return None

    def _unused_module(self, tensor: Any, recorder: DataflowObserver) -> Answer | None:
        root, inside = self._places.get(id(tensor), (None, ""))
        if root is None:
            return None
        module, path = places_of(root, inside)[-1].module, module_of_parameter(inside)
        if recorder.ran(module) or recorder.descendants([recorder.entry_of(tensor)]):
            return None
        what = f"its module `{path}`" if path else "its module"
        kind = type(module).__name__
        return Answer(
            Reason.UNUSED_MODULE,
            f"not reached: {what} ({kind}) was never called",
            (),
            "Call it in forward(), or take it out of the model.",
        )

    def _unused(self, tensor: Any, recorder: DataflowObserver) -> Answer:
        uses = recorder.descendants([recorder.entry_of(tensor)])
        if not uses:
            return Answer(
                Reason.UNUSED,
                "not reached: no operator has used it",
                (),
                "Use it in the forward pass, or leave it out of the model.",
            )
        last = uses[-1]
        return unread(last.name, last.location) or Answer(
            Reason.NOT_IN_LOSS,
            f"not reached: it is used, last by {last.name}{at(last.location)}, and nothing of that is in the loss",
            (last.location,),
            "A value taken out by item(), tolist(), numpy() or tensor() starts without history: "
            "carry the tensor itself.",
        )


# Operators in lines that rebind a parameter instead of changing it: `w = w * 2`, `w = w.cuda()`, `w = w / w.norm()`.
_REBINDING = {
    "Add", "Clamp", "Clone", "Div", "Mul", "Neg", "Sub", "ToCopy", "View", "Where", "MaskedFill", "Pow", "T",
    "CopySlices", "Copy",
}  # fmt: skip


def _gradient(adapter: Adapter, tensor: Any) -> Answer:
    norm = norm_of(adapter.to_host(adapter.leaf_grad(tensor)))
    if norm == 0.0:
        return Answer(Reason.ZERO, "its gradient is zero everywhere")
    return Answer(Reason.HAS_GRADIENT, f"it has a gradient, of norm {norm:.4g}")
