"""Why a parameter has no gradient, or one that is zero: where the way from it to the loss was lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..adapters import Adapter
from ..order import walk
from ..records import Location, operator_name
from ..statistics import format_shape, norm_of
from .base import Explanation, adapter_of, at, count, describe, named_tensors
from .dataflow import Entry, Ledger, Recorder, ran_in, recorder_for
from .lines import name_of, place, user_frame
from .replay import freed_nodes
from .zeros import ZeroCause, zero_causes

__all__ = ["Case", "GradientReport", "NoGradient", "Reason", "why_no_grad"]


class Reason(StrEnum):
    """Why there is no gradient; the value is the word to show."""

    HAS_GRADIENT = "has a gradient"
    ZERO = "zero"
    NOT_RUN = "backward not called"
    CLEARED = "cleared"
    AUTOGRAD_GRAD = "autograd.grad"
    NON_LEAF = "not a leaf"
    REBOUND = "replaced"
    FROZEN = "frozen"
    NO_GRAPH = "loss without a graph"
    DETACHED = "detached"
    NO_GRAD = "no_grad"
    NOT_DIFFERENTIABLE = "not differentiable"
    OUTSIDE = "left the graph"
    UNUSED_MODULE = "unused module"
    UNUSED = "unused"
    NOT_IN_LOSS = "not in the loss"
    NOT_REACHED = "not reached"


@dataclass(frozen=True)
class NoGradient(Explanation):
    """Why one tensor has no gradient.

    Attributes
    ----------
    name : str
        Path of the parameter, or the variable; empty when not known.
    shape : tuple of int
    reason : Reason
    message : str
        One sentence.
    locations : tuple of Location
        The lines to look at, the one to change first.
    help : str
        What to do; empty where nothing is wrong.
    """

    name: str
    shape: tuple[int, ...]
    reason: Reason
    message: str
    locations: tuple[Location, ...] = ()
    help: str = ""

    @property
    def location(self) -> Location | None:
        """The line to change."""
        return self.locations[0] if self.locations else None

    def __str__(self) -> str:
        text = f"{describe(self.name, self.shape)}: {self.message}"
        return f"{text}\n  {self.help}" if self.help else text

    def _title(self) -> str:
        return "Why no gradient"

    def _columns(self) -> Sequence[str]:
        return ("parameter", "shape", "reason", "line", "what happened")

    def _rows(self) -> Iterable[Sequence[str]]:
        yield (self.name or "-", format_shape(self.shape), self.reason.value, place(self.location), self.message)


@dataclass(frozen=True)
class GradientReport(Explanation):
    """Why parameters have no gradient.

    Attributes
    ----------
    parameters : tuple of NoGradient
        Those that were asked about, also such as have one.
    total : int
        How many parameters there are; 0 stands for as many as were asked about.
    """

    parameters: tuple[NoGradient, ...]
    total: int = 0

    @property
    def missing(self) -> tuple[NoGradient, ...]:
        """Those without a gradient, or with one that is zero."""
        return tuple(p for p in self.parameters if p.reason is not Reason.HAS_GRADIENT)

    def __str__(self) -> str:
        if not self.parameters:
            return "There are no parameters."
        if not self.missing:
            return f"All {count(len(self.parameters), 'parameter')} have a gradient."
        groups: dict[tuple[str, str], list[NoGradient]] = {}
        for entry in self.missing:
            groups.setdefault((entry.message, entry.help), []).append(entry)
        total = count(self.total or len(self.parameters), "parameter")
        lines = [f"{len(self.missing)} of {total} without a gradient:"]
        for (message, help_text), entries in groups.items():
            lines.append(f"  {_names(entries)}: {message}")
            if help_text:
                lines.append(f"    {help_text}")
        return "\n".join(lines)

    def _title(self) -> str:
        return "Why no gradient"

    def _columns(self) -> Sequence[str]:
        return ("parameter", "shape", "reason", "line", "what happened")

    def _rows(self) -> Iterable[Sequence[str]]:
        for entry in self.missing:
            yield from entry._rows()


_SHOWN_NAMES = 4


def _names(entries: Sequence[NoGradient]) -> str:
    shown = [f"`{e.name}`" if e.name else format_shape(e.shape) for e in entries[:_SHOWN_NAMES]]
    more = len(entries) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


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
        one the line where the way was lost cannot be named.
    adapter : Adapter, optional

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
    end = None if loss is None or recorder is None or not recorder.known(loss) else recorder.entry_of(loss)
    case = Case(adapter, recorder, params if params is not None else subject, root=root, end=end)
    case.loss = loss
    if not adapter.is_tensor(subject):
        return GradientReport(
            tuple(case.explain(tensor, name) for name, tensor in named_tensors(adapter, subject)),
        )
    name = case.names.get(id(subject)) or name_of(subject, user_frame())
    return case.explain(subject, name)


class Case:
    """One loss, and what is known of it; asked about one tensor after the other.

    Parameters
    ----------
    adapter : Adapter
    recorder : Recorder or None
    params : object
        What gives names; a module also its modules.
    root : (node, int) or None
        Where the gradient of the loss enters.
    end : Entry or None
        What the recorder knows of the loss.

    Attributes
    ----------
    loss : Tensor or None
        Where it is at hand.
    """

    def __init__(
        self, adapter: Adapter, recorder: Recorder | None, params: Any, *, root: Any, end: Entry | None
    ) -> None:
        self.adapter = adapter
        self.loss: Any = None
        self.recorder = recorder
        self.end = end
        self.model = params if hasattr(params, "named_modules") else None
        self.names = {} if recorder is None else recorder.parameter_paths()
        if not adapter.is_tensor(params):
            self.names.update({id(t): name for name, t in named_tensors(adapter, params)})
        self.wires = {} if root is None else walk(adapter, [root[0]])
        self.leaves = {id(v): v for v in (adapter.variable(w.node) for w in self.wires.values()) if v is not None}
        self._zeros: dict[int, tuple[ZeroCause, ...]] | None = None

    def explain(self, tensor: Any, name: str) -> NoGradient:
        """Return why `tensor` has no gradient."""
        reason, message, locations, help_text = self._reason(tensor, name)
        kept = tuple(dict.fromkeys(place for place in locations if place is not None))
        return NoGradient(name, tuple(tensor.shape), reason, message, kept, help_text)

    def _reason(self, tensor: Any, name: str) -> _Answer:
        if not tensor.requires_grad:
            return self._frozen(tensor)
        if not tensor.is_leaf:
            return self._non_leaf(tensor)
        if id(tensor) in self.leaves:
            return self._reached(tensor)
        if self._asked_without_loss() and self.adapter.leaf_grad(tensor) is not None:
            return _gradient(self.adapter, tensor)
        if self._asked_without_loss():
            return (
                Reason.NOT_RUN,
                "it requires grad and is a leaf, and no backward pass has left a gradient in it",
                (),
                "Pass the loss too, to be told whether and why it is not reached.",
            )
        return self._not_reached(tensor, name)

    def _asked_without_loss(self) -> bool:
        return self.loss is None and self.end is None and not self.wires

    # --- what the tensor itself shows ---

    def _frozen(self, tensor: Any) -> _Answer:
        recorder = self.recorder
        entry = None if recorder is None else recorder.entry_of(tensor)
        if entry is not None and entry.name and recorder is not None:
            sources = [e for e in entry.ancestors() if e.leaf]
            lost = _lost(entry, set(sources)) if sources else []
            if lost:
                return _from_entry(lost[0])
        return (
            Reason.FROZEN,
            "frozen: its requires_grad is False",
            (),
            "Call requires_grad_(True) on it before the forward pass, if it is to be trained.",
        )

    def _non_leaf(self, tensor: Any) -> _Answer:
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
            return (
                Reason.REBOUND,
                f"replaced: {made}, no longer the leaf that it was computed from; gradients go to that leaf",
                (location,),
                "Change the leaf in place under no_grad(), or make the new value a leaf, "
                "`w = (...).detach().requires_grad_()`, and give that to the optimizer. "
                "If it is meant to be a result, call retain_grad() on it.",
            )
        return (
            Reason.NON_LEAF,
            f"not a leaf: {made}; backward() leaves gradients in leaves only",
            (location,),
            "Call retain_grad() on it before backward().",
        )

    # --- reached by the loss ---

    def _reached(self, tensor: Any) -> _Answer:
        grad = self.adapter.leaf_grad(tensor)
        if grad is not None:
            answer = _gradient(self.adapter, tensor)
            return self._zero(tensor) if answer[0] is Reason.ZERO else answer
        run = None if self.recorder is None else self.recorder.accumulated(tensor)
        if run is not None:
            return (
                Reason.CLEARED,
                f"cleared: the backward{at(run.location)} gave it a gradient, which was set to None since",
                (run.location,),
                "Look for zero_grad() (which sets gradients to None) or `.grad = None` after that line.",
            )
        nodes = [w.node for w in self.wires.values()]
        runs = [r for r in (ran_in(self.adapter, node) for node in nodes) if r is not None]
        if runs:
            return (
                Reason.AUTOGRAD_GRAD,
                f"reached, but not filled: autograd.grad(){at(runs[-1].location)} returns gradients "
                "and leaves .grad alone",
                (runs[-1].location,),
                "Use what grad() returned, or call backward().",
            )
        if freed_nodes(self.adapter, self.wires):
            return (
                Reason.CLEARED,
                "reached, and a backward pass has run through this graph: its gradient was cleared since, or taken by "
                "autograd.grad()",
                (),
                "Look for zero_grad() after backward(). Run it under `with gi.ledger():` to be told which it was.",
            )
        return (Reason.NOT_RUN, "reached, but backward() has not been called yet", (), "Call loss.backward().")

    def _zero(self, tensor: Any) -> _Answer:
        if self.loss is None or freed_nodes(self.adapter, self.wires):
            return (
                Reason.ZERO,
                "its gradient is zero everywhere",
                (),
                "Ask before backward(), or after backward(retain_graph=True), to be told which operator made it zero.",
            )
        if self._zeros is None:
            self._zeros = zero_causes(self.adapter, self.loss)
        causes = self._zeros.get(id(tensor), ())
        if not causes:
            return Reason.ZERO, "its gradient is zero everywhere; contributions to it cancel", (), ""
        texts = list(dict.fromkeys(f"{cause.text}{at(cause.location)}" for cause in causes))
        return Reason.ZERO, f"its gradient is zero: {'; '.join(texts)}", tuple(c.location for c in causes), ""

    # --- not reached ---

    def _not_reached(self, tensor: Any, name: str) -> _Answer:
        recorder = self.recorder
        if recorder is not None and self.end is not None:
            answer = self._from_dataflow(tensor, recorder, self.end)
            if answer is not None:
                return answer
            replaced = self._replaced(tensor, recorder)
            if replaced is not None:
                return replaced
            module = self._unused_module(tensor, name, recorder)
            if module is not None:
                return module
            return self._unused(tensor, recorder)
        if not self.wires:
            return (
                Reason.NO_GRAPH,
                "the loss has no graph: it does not require grad",
                (),
                "Run the forward pass under `with gi.ledger():` to be told which line lost it.",
            )
        return (
            Reason.NOT_REACHED,
            "not reached: no path leads from the loss to it",
            (),
            "Run the forward pass under `with gi.ledger():` to be told which line lost it.",
        )

    def _from_dataflow(self, tensor: Any, recorder: Recorder, end: Entry) -> _Answer | None:
        """Return where the way from the parameter to the loss was lost, if there was one."""
        source = recorder.entry_of(tensor)
        recorder.aliases(tensor, end.ancestors())
        lost = _lost(end, {source})
        if not lost:
            return None
        first = _from_entry(lost[0])
        more = tuple(e.location for e in lost[1:])
        return first[0], first[1], (*first[2], *more), first[3]

    def _replaced(self, tensor: Any, recorder: Recorder) -> _Answer | None:
        """Return whether the loss was computed with another leaf, in whose place this one has come."""
        made = recorder.made_in_memory(tensor)
        if made is None or not made.name:
            return None
        ancestors = made.ancestors()
        for leaf in self.leaves.values():
            if recorder.has_leaf(ancestors, leaf):
                return (
                    Reason.REBOUND,
                    f"replaced: it was made from another leaf{at(made.location)}, and the loss was computed with that",
                    (made.location,),
                    "Compute the loss again, or change the parameter in place under no_grad().",
                )
        return None

    def _unused_module(self, tensor: Any, name: str, recorder: Recorder) -> _Answer | None:
        path = name.rpartition(".")[0]
        if self.model is None or not name:
            return None
        module = dict(self.adapter.named_modules(self.model)).get(path)
        if module is None or recorder.ran(module) or recorder.descendants([recorder.entry_of(tensor)]):
            return None
        what = f"its module `{path}`" if path else "its module"
        kind = type(module).__name__
        return (
            Reason.UNUSED_MODULE,
            f"not reached: {what} ({kind}) was never called",
            (),
            "Call it in forward(), or take it out of the model.",
        )

    def _unused(self, tensor: Any, recorder: Recorder) -> _Answer:
        uses = recorder.descendants([recorder.entry_of(tensor)])
        if not uses:
            return (
                Reason.UNUSED,
                "not reached: no operator has used it",
                (),
                "Use it in the forward pass, or leave it out of the model.",
            )
        last = uses[-1]
        return (
            Reason.NOT_IN_LOSS,
            f"not reached: it is used, last by {last.name}{at(last.location)}, and nothing of that is in the loss",
            (last.location,),
            "A value taken out by item(), tolist(), numpy() or tensor() starts without history: "
            "carry the tensor itself.",
        )


_Answer = tuple[Reason, str, tuple[Location | None, ...], str]

# What people write over a parameter, meaning to change it: `w = w * 2`, `w = w.cuda()`, `w = w / w.norm()`.
_REBINDING = {
    "Add", "Clamp", "Clone", "Div", "Mul", "Neg", "Sub", "ToCopy", "View", "Where", "MaskedFill", "Pow", "T",
    "CopySlices", "Copy",
}  # fmt: skip

_DETACHING = {"detach", "detach_copy"}


def _gradient(adapter: Adapter, tensor: Any) -> _Answer:
    norm = norm_of(adapter.to_host(adapter.leaf_grad(tensor)))
    if norm == 0.0:
        return Reason.ZERO, "its gradient is zero everywhere", (), ""
    return Reason.HAS_GRADIENT, f"it has a gradient, of norm {norm:.4g}", (), ""


def _lost(loss: Entry, sources: set[Entry]) -> list[Entry]:
    """Return the operators on the way from `sources` to the loss that let no gradient through, nearest first."""
    on_the_way = sorted(loss.ancestors(), key=lambda entry: entry.number)
    carries, alive = set(sources), set(sources)
    lost = []
    for entry in on_the_way:
        if entry in sources or not any(i in carries for i in entry.inputs):
            continue
        carries.add(entry)
        if entry.recorded:
            alive.add(entry)
        elif any(i in alive for i in entry.inputs):
            lost.append(entry)
    return lost if loss in carries else []


def _from_entry(entry: Entry) -> _Answer:
    """Return what an operator that let no gradient through did."""
    where = at(entry.location)
    if entry.name == "alias":
        return (
            Reason.OUTSIDE,
            f"not reached: its values are used through `.data` or NumPy, outside the graph{where}",
            (entry.location,),
            "Use the tensor itself; for NumPy code write an autograd.Function.",
        )
    if entry.name in _DETACHING:
        return Reason.DETACHED, f"not reached: detached{where}", (entry.location,), "Remove the detach()."
    if not entry.grad_enabled:
        return (
            Reason.NO_GRAD,
            f"not reached: {entry.name} ran under no_grad{where}",
            (entry.location,),
            "Move it out of the no_grad() block.",
        )
    if not entry.differentiable:
        return (
            Reason.NOT_DIFFERENTIABLE,
            f"not reached: {entry.name} gives integers or booleans, which have no gradient{where}",
            (entry.location,),
            _SOFT.get(entry.name, "Work with its values by where(), a product with a mask, or gather()."),
        )
    return (
        Reason.NOT_DIFFERENTIABLE,
        f"not reached: {entry.name} was not recorded{where}",
        (entry.location,),
        "Either it has no derivative, or the tensor did not require grad at that time.",
    )


_SOFT = {
    "argmax": "argmax has no derivative: use softmax(), max().values, or a straight-through estimator.",
    "argmin": "argmin has no derivative: use softmax(-x), min().values, or a straight-through estimator.",
    "to": "Rounding to integers has no derivative: keep the floating-point values for the loss.",
}
