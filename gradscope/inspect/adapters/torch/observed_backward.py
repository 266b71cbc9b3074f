"""One backward of PyTorch under observation: hooks on every node it can reach, put there before and taken off after.

The engine is C++: it calls the hooks, on the thread that called backward() or on a device's own. Hooks are bound
methods of the task and close over no node, so nothing is kept alive when they are gone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from operator import is_not
from threading import get_ident
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import get_gradient_edge

from ....runtime.call_sites import CallSite
from ..guarded_observer import adapter_failed
from ..protocol import Observer, hears
from .graph_freeing import cut_rows
from .node_hooks import HungHooks, hang
from .saved_tensors import RELEASED, raw_names, saved_of, tell_checkpoint_violation, tell_violation, versions_in
from .transforms.dispatch_modes import modes_aside
from .transforms.functorch import is_wrapped
from .transforms.torch_compile import CompiledRun, is_compiled, leave_uncompiled, see_compiled

__all__ = ["TorchCall", "TorchTask", "edge_of", "reached"]

_ACCUMULATE_GRAD = torch._C._functions.AccumulateGrad
_current_node = torch._C._current_autograd_node
_current_id = torch._C._current_graph_task_id

_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class TorchCall:
    """A node about to run, or just run.

    Attributes
    ----------
    given, made : tuple of Tensor or None, or list
        The same to look at: the engine's own tuples, until somebody asks for a list.
    skip : bool
        Set before it runs, it leaves the node out: it is given no gradients, and what it produces is dropped.
    told : bool
        Whether observers know that it runs.
    """

    __slots__ = ("task", "node", "given", "made", "skip", "told")

    def __init__(self, task: TorchTask, node: Any, given: Sequence[Any], made: Sequence[Any]) -> None:
        self.task = task
        self.node = node
        self.given = given
        self.made = made
        self.skip = False
        self.told = True

    @property
    def grad_outputs(self) -> list[Any]:
        """The gradients that the node is given; to assign an entry replaces a gradient."""
        if type(self.given) is not list:
            self.given = list(self.given)
        return self.given

    @property
    def grad_inputs(self) -> list[Any]:
        """The gradients that the node has produced; an entry may be assigned. AccumulateGrad produces none."""
        if type(self.made) is not list:
            self.made = list(self.made)
        return self.made


class TorchTask:
    """A backward() or grad().

    Parameters
    ----------
    inputs : sequence of Tensor or GradientEdge
        What gradients are wanted of; empty for all leaves.
    site : CallSite
        Where it was called.
    grads : sequence of Tensor or None
        The gradients that enter.
    passes_by : callable
        Tells whether all of some observers are told of nodes in passing.
    accumulates : callable, optional
        Called with each leaf to whose gradient the engine is about to add, and `site`.

    Attributes
    ----------
    roots : list of (node, int)
        Where the backward starts: nodes, and which of their outputs.
    nodes : list of node
        All that it can reach.
    keep_graph : bool
        May be set until the first node runs.
    sent : (weakref to Tensor, (int, int), object) or None
        For :func:`.numpy_conversion.small_of`, of the node that has run last: a gradient it has made, its version and
        address, and how it is read.
    """

    def __init__(
        self,
        observers: Sequence[Observer],
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        *,
        keep_graph: bool,
        create_graph: bool,
        accumulate: bool,
        site: CallSite,
        grads: Sequence[Any] = (),
        passes_by: Callable[[Sequence[Observer]], bool] = lambda observers: False,
        accumulates: Callable[[torch.Tensor, CallSite], None] | None = None,
    ) -> None:
        self.roots = [edge for edge in map(edge_of, outputs) if edge is not None]
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.site = site
        self.grads = grads
        self.started = False
        self.nodes = reached([node for node, _ in self.roots])
        self._observers = observers
        # Of a doctor's forty observers few hear of each node.
        self._entering = [observer for observer in observers if hears(observer, "node_entered")]
        self._exiting = [observer for observer in observers if hears(observer, "node_exited")]
        self._exiting_always = [observer for observer in self._exiting if not observer.exits_of_forks_alone]
        self._exits_forks_alone = bool(self._exiting) and not self._exiting_always
        self._passes_by = passes_by
        # With create_graph the engine makes a new gradient.
        self._accumulates = None if create_graph else accumulates
        self._accumulate = accumulate
        self._inputs = [node for node in (self._node_of(value) for value in inputs) if node is not None]
        self._needed: set[Any] | None = None
        self._thread = get_ident()
        self._id: int | None = None
        self._running: dict[int, TorchCall] = {}
        self._hung: HungHooks | None = None
        self._announced: set[Any] = set()  # the nodes that are told of before they run, in passing too
        self._look_away: Callable[[], None] | None = None
        self._kept: list[Any] | None = None
        self.sent: tuple[Callable[[], Any], tuple[int, int], Any] | None = None

    def _node_of(self, value: Any) -> Any:
        """Return the node of a tensor that a gradient is wanted of, None where it has none."""
        if isinstance(value, torch.Tensor) and value.is_leaf and is_wrapped(value):
            # Of a transform that has been left, as in the function that vjp() returns, the graph alone knows the leaf.
            return next((node for node in self.nodes if getattr(node, "variable", None) is value), None)
        edge = edge_of(value)
        return None if edge is None else edge[0]

    # --- around the engine ---

    def start(self) -> None:
        """Tell that it begins, and hook every node."""
        for observer in self._observers:
            observer.task_started(self)
        self.started = True
        self._hook()
        if any(hears(observer, "compiled_ran") for observer in self._observers):
            self._look_away = see_compiled(self.nodes, self._compiled_runs)
        _live.append(self)

    def _hook(self) -> None:
        # The collector is held off: it would walk the growing heap again and again while nothing is garbage.
        enabled = gc.isenabled()
        gc.disable()
        try:
            if self._passes_by(self._observers):
                self._find_announced()
                self._hung = hang(self.nodes, self._passed, self._reached, list(self._announced))
            elif self._entering:
                self._hung = hang(self.nodes, self._exited, self._entered, ran_at=self._told_after())
            elif self._exiting or self._kept is not None:
                self._hung = hang(self.nodes, self._ran)
        finally:
            if enabled:
                gc.enable()

    def _told_after(self) -> list[Any] | None:
        """Return the nodes that are told of when they have run; None for all."""
        if not self._exits_forks_alone or self._kept is not None:
            return None
        return [node for node in self.nodes if _is_fork(node.next_functions)]

    def _find_announced(self) -> None:
        self._announced = set(_announced(self.nodes))

    def finish(self) -> None:
        """Tell that it has ended."""
        for observer in self._observers:
            observer.task_finished(self)

    def fail(self, error: BaseException) -> None:
        """Tell that it has ended by `error`, and of a refused saved tensor which it is."""
        for call in self._running.values():
            self._tell_reached(call)
        versions = versions_in(error)
        if versions is not None and not hasattr(error, "saved_name"):
            running = [call.node for call in self._running.values()]
            told = tell_violation(error, versions, running or self.nodes) is not None
            told = told or (bool(running) and tell_checkpoint_violation(error, versions, running[-1]))
            if not told and self._exits_forks_alone:  # they may have run
                told = tell_violation(error, versions, self.nodes) is not None
            if told:
                for observer in self._observers:
                    observer.violation(error)
        for observer in self._observers:
            observer.task_failed(self, error)

    def close(self) -> None:
        """Take the hooks off."""
        if self in _live:
            _live.remove(self)
        if self._hung is not None:
            self._hung.take_off()
            self._hung = None
        if self._look_away is not None:
            self._look_away()
            self._look_away = None
        self._running.clear()

    # --- what will run ---

    @property
    def edges(self) -> list[Any]:
        """Of each node ``next_functions``."""
        return [node.next_functions for node in self.nodes]

    def runs(self, node: Any) -> bool:
        """Whether it will run `node`."""
        if not self._inputs:
            return True
        if self._needed is None:
            self._needed = self._find_needed()
        return node in self._needed

    def _find_needed(self) -> set[Any]:
        """Return the nodes on a way to an input; backward(inputs=...) runs the inputs' nodes too, grad() does not."""
        parents: dict[Any, list[Any]] = {}
        for node, edges in zip(self.nodes, self.edges):
            for child, _ in edges:
                if child is not None:
                    parents.setdefault(child, []).append(node)
        needed: set[Any] = set()
        stack = [parent for node in self._inputs for parent in parents.get(node, ())]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += parents.get(node, ())
        return needed.union(self._inputs) if self._accumulate else needed

    # --- the hooks ---

    def _entered(self, grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        try:
            if _current_id() != self._id and not self._mine():
                return None
            node = _current_node()
            self._running[get_ident()] = call = TorchCall(self, node, grads, ())
            for observer in self._entering:
                observer.node_entered(call)
            if call.skip:
                return (None,) * len(grads)
            given = call.given
            if type(node) is _ACCUMULATE_GRAD:
                self._tell_accumulation(node, given)
                call.given = ()  # a gradient that somebody holds is copied where it would become the leaf's own
            elif self._exits_forks_alone:
                call.given = ()  # else it is held until another node runs
            return None if given is grads else _replaced(given, grads)
        except Exception as error:
            adapter_failed(self._observers, error)
            return None

    def _exited(self, produced: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        try:
            if _current_id() != self._id:
                return None
            call = self._running.pop(get_ident(), None)
            if call is None:  # the node got its hook while it ran
                return None
            call.made = [None] * len(produced) if call.skip else produced
            call.given = call.given or grads
            told = self._tell_exit(call, produced)
            if self._passes_by(self._observers):
                self._attend()
            return told
        except Exception as error:
            adapter_failed(self._observers, error)
            return None

    def _ran(self, produced: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Tell of a node that has run, where no observer wants to hear of it before."""
        try:
            if _current_id() != self._id and not self._mine():
                return None
            call = TorchCall(self, _current_node(), grads, produced)
            if self._kept is not None:
                self._kept.append(call.node)
            for observer in self._exiting if _hands_on_several(produced) else self._exiting_always:
                observer.node_exited(call)
            return None if call.made is produced else _replaced(call.made, produced)
        except Exception as error:
            adapter_failed(self._observers, error)
            return None

    def _reached(self, grads: tuple[Any, ...]) -> None:
        """Note that a node is about to run, and tell in passing of one that is announced."""
        try:
            if _current_id() != self._id and not self._mine():
                return
            node = _current_node()
            self._running[get_ident()] = call = TorchCall(self, node, grads, ())
            call.told = False
            if node in self._announced:
                self._tell_reached(call)
            if type(node) is _ACCUMULATE_GRAD:
                self._tell_accumulation(node, grads)
                call.given = ()  # as above
        except Exception as error:
            adapter_failed(self._observers, error)

    def _tell_accumulation(self, node: Any, given: Sequence[Any]) -> None:
        if self._accumulates is not None and given[0] is not None:
            self._accumulates(node.variable, self.site)

    def _tell_reached(self, call: TorchCall) -> None:
        """Tell in passing of a node that is about to run, or has failed, where that has not been told yet."""
        if not call.told:
            call.told = True
            for observer in self._observers:
                observer.node_reached(call)

    def _passed(self, produced: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Tell in passing of a node that has run."""
        try:
            if _current_id() != self._id and not self._mine():
                return None
            reached = self._running.pop(get_ident(), None) if self._running else None
            if reached is not None and reached.skip:  # it was left out while nodes were told of as usual
                reached.made = [None] * len(produced)
                return self._tell_exit(reached, produced)
            if not produced and (reached is None or not reached.told):
                for observer in self._observers:
                    observer.leaf_filled(self, _current_node())
            if self._kept is not None:
                self._kept.append(_current_node())
            closer: list[Observer] | None = None
            for observer in self._observers:
                if observer.node_passed(self, grads, produced):
                    closer = [*(closer or ()), observer]
            if closer is None:
                return None
            self._attend()
            call = TorchCall(self, _current_node(), grads, produced)
            for observer in closer:
                observer.node_exited(call)
            return None if call.made is produced else _replaced(call.made, produced)
        except Exception as error:
            adapter_failed(self._observers, error)
            return None

    def _attend(self) -> None:
        """Tell of nodes as is wanted now, from the next one on."""
        passes = self._passes_by(self._observers)
        ran, entered = (self._passed, self._reached) if passes else (self._exited, self._entered)
        if self._hung is None or not self._hung.exchange(ran, entered):
            if self._hung is not None:
                self._hung.take_off()
            self._hook()
        elif passes:
            self._find_announced()

    def _tell_exit(self, call: TorchCall, produced: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self._kept is not None:
            self._kept.append(call.node)
        for observer in self._exiting if _hands_on_several(produced) else self._exiting_always:
            observer.node_exited(call)
        return None if call.made is produced else _replaced(call.made, produced)

    def _compiled_runs(self, node: Any) -> tuple[TorchTask, Callable[[CompiledRun], None]] | None:
        """Return this task and how to tell of a compiled node, if the engine runs that for it."""
        return (self, self._compiled_ran) if self._mine() else None

    def _compiled_ran(self, run: CompiledRun) -> None:
        try:
            for observer in self._observers:
                observer.compiled_ran(run)
        except Exception as error:
            adapter_failed(self._observers, error)

    def _mine(self) -> bool:
        """Whether the engine runs this task now: nodes can be shared with others, nested in it or on other threads."""
        current = _current_id()
        if self._id is not None:
            return current == self._id
        if any(task._id == current for task in _live):
            return False
        here = get_ident()
        if here != self._thread and any(task._thread == here for task in _live):
            return False
        if here == self._thread and next(t for t in reversed(_live) if t._thread == here) is not self:
            return False  # a nested backward has begun
        self._id = current
        return True

    # --- keeping saved tensors ---

    def keep(self) -> Callable[[], None] | None:
        """Keep what the nodes have saved; return what lets go of it as far as that can be done.

        The engine must know before it starts, so afterwards nothing can be kept. Python cannot make a C++ node release
        what it saved: it counts as released, a second backward raises PyTorch's usual error, and the memory goes with
        the graph.
        """
        if self.keep_graph or self.started or any(map(is_compiled, self.nodes)):
            return None
        self.keep_graph, self._kept = True, []
        return self._release

    def _release(self) -> None:
        kept, self._kept = self._kept, None
        saving = [node for node in kept or () if raw_names(type(node)) and RELEASED not in node.metadata]
        for node in saving:
            node.metadata[RELEASED] = True
        hang(saving, None, _refuse)


def _is_fork(edges: tuple[tuple[Any, int], ...]) -> bool:
    """Whether gradients leave a node along two edges at least."""
    return len(edges) > 1 and sum([child is not None for child, _ in edges]) > 1


def _hands_on_several(produced: tuple[Any, ...]) -> bool:
    """Whether a node has made two gradients at least."""
    return len(produced) > 1 and sum([grad is not None for grad in produced]) > 1


def _announced(nodes: Sequence[Any]) -> list[Any]:
    """Return the nodes that are told of before they run, in passing too.

    Those are nodes of custom Functions, whose code may fail, and is looked into when it does, and leaves of which it
    matters what they were before: they have a gradient, or hooks that are called when they have been given one.
    """
    custom = {kind for kind in set(map(type, nodes)) if issubclass(kind, BackwardCFunction)}  # few kinds, many nodes
    with torch._C.DisableTorchFunction():
        return [
            node
            for node in nodes
            if (_matters_before(node.variable) if (kind := type(node)) is _ACCUMULATE_GRAD else kind in custom)
        ]


def _matters_before(leaf: torch.Tensor) -> bool:
    """Whether it matters what a leaf was before it is given a gradient."""
    if not leaf.is_leaf:
        return True
    return leaf.grad is not None or bool(leaf._post_accumulate_grad_hooks)


def _replaced(grads: Sequence[Any], before: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return what a hook returns of gradients that observers have seen: None where they have replaced none."""
    return tuple(grads) if grads is not before and any(map(is_not, grads, before)) else None


def _refuse(grads: tuple[Any, ...]) -> None:
    """Refuse to run a node that counts as released; one that has saved nothing runs any number of times."""
    if saved_of(_current_node()):
        raise RuntimeError(_FREED)


leave_uncompiled(
    TorchTask.__init__,
    TorchTask.start,
    TorchTask.finish,
    TorchTask.fail,
    TorchTask.close,
    TorchTask._entered,
    TorchTask._exited,
    TorchTask._ran,
    TorchTask._reached,
    TorchTask._passed,
    TorchTask._compiled_runs,
    TorchTask._compiled_ran,
)

# The tasks whose hooks are in place, in the order in which they began.
_live: list[TorchTask] = []


def edge_of(value: Any) -> tuple[Any, int] | None:
    """Return (node, input number) where a gradient of a tensor (or at a GradientEdge) enters; None if it has none."""
    if not isinstance(value, torch.Tensor):
        return value.node, value.output_nr
    if not value.requires_grad:
        return None
    with torch._C.DisableTorchFunction(), modes_aside(value):  # the node of a leaf is asked of a view of it
        if _leads_nowhere(value):
            return None
        edge = get_gradient_edge(value)
    return edge.node, edge.output_nr


def _leads_nowhere(tensor: torch.Tensor) -> bool:
    """Whether it is a view that a custom Function's forward has made of a leaf: it requires grad, and has no node."""
    if not tensor._is_view() or tensor.grad_fn is not None:
        return False
    with torch.enable_grad():
        node = tensor.view_as(tensor).grad_fn
    return node is None or node.next_functions[0][0] is None


def reached(roots: Iterable[Any]) -> list[Any]:
    """Return each node that gradients from `roots` can reach once, in an order that depends on the graph alone."""
    # Python's objects for nodes are made anew when nobody holds them: these are held, so each node has one. Their edges
    # are not: of a large graph there would be so many tuples that the garbage collector looked at all there is.
    found = list(dict.fromkeys(roots))
    seen = {None, *found}
    for node in found:
        for child, _ in node.next_functions:
            if child not in seen:
                seen.add(child)
                found.append(child)
    cut_rows(found)
    return found
