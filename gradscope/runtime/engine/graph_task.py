"""The backward engine: dependencies, a ready queue, and one resumable step.

A :class:`GraphTask` is one backward() or grad(). It counts how many gradients every node waits for, keeps the ready
nodes in a heap (highest sequence number first; ready leaves, AccumulateGrad, come before all), and
:meth:`GraphTask.step` runs one node: hooks, derivative, hooks, and the results into the buffers of the next nodes.
backward() is that step in a loop; a debugger pauses the same loop. Gradients travel as bare arrays, or as tensors under
``create_graph``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any

from .. import events, state
from ..graph.accumulate_grad import AccumulateGrad
from ..graph.edges import Edge, ends_of
from ..graph.graph_node import Node
from ..kernels.elementwise import add_to
from .gradient_validation import (
    announce_unpacked,
    check_anomaly,
    check_count,
    check_hook_result,
    name_node,
    refuse_reshaped,
    release_announced,
    replaced,
    retain,
    validate_array,
    validate_tensor,
    wrap,
)

__all__ = ["GraphTask", "run_node_alone"]

_entered_lock = threading.Lock()

_task_ids = itertools.count(1).__next__
_new = object.__new__

_NO_CAPTURES: dict[Node, list[tuple[int, int]]] = {}  # nobody writes it

# How many tasks have come to code that may ask for the task it runs in. While it is 0 a backward is not a nested one.
entered = 0


class GraphTask:
    """One run of the engine.

    Parameters
    ----------
    roots : sequence of Edge
        Where the gradients enter.
    grads : sequence
        The gradients that enter, one per root: bare arrays, or tensors under `create_graph`.
    records : bool
        False under `create_graph` if the tensors travel for the sake of their tangents only (see tangents.py).
    captures : sequence of Edge, optional
        Take the gradients that arrive here instead of accumulating.
    only : set of Node, optional
        Run these nodes, and of the others only what leads to them.

    Attributes
    ----------
    thread_id : int or None
        The thread it runs on, once code that may ask has been reached.
    kept : list of Node or None
        Set to a list, it takes the nodes whose saved tensors `keep_graph` has kept from being released, for
        :meth:`release_kept`.
    captured : list
        Gradients taken, one per capture.
    running : Node or None
        Where somebody listens, the node that it runs, from when that has been told of until hooks of the next one run.
    """

    __slots__ = (
        "__weakref__", "_buffers", "_captures", "_dependencies", "_following", "_id", "_leaves", "_needed", "_outside",
        "_owned", "_roots", "_wanted", "callbacks", "captured", "create_graph", "depth", "keep_graph", "kept",
        "nodes_run", "ready", "records", "running", "thread_id",
    )  # fmt: skip

    def __init__(
        self,
        roots: Sequence[Edge],
        grads: Sequence[Any],
        keep_graph: bool = False,
        create_graph: bool = False,
        records: bool = True,
        captures: Sequence[Edge] | None = None,
        only: set[Node] | None = None,
    ) -> None:
        self._begin(roots, keep_graph, create_graph, records)
        self._dependencies: dict[Node, int] = {ends_of(root)[0]: 0 for root in roots}
        self._buffers: dict[Node, Any] = {}
        for edge, grad in zip(roots, grads):
            self._receive(edge, grad)
        self._count_dependencies()
        if captures is not None or only is not None:
            self._restrict(captures or (), only or set())
        self._make_roots_ready()

    @classmethod
    def of_loss(
        cls,
        root: Node,
        grad: Any,
        keep_graph: bool,
        create_graph: bool,
        records: bool,
        captures: Sequence[Edge] | None = None,
    ) -> GraphTask:
        """Return what ``GraphTask((root,), (grad,), ...)`` does, in half the time."""
        task: GraphTask = _new(cls)
        task._begin((root,), keep_graph, create_graph, records)
        task._dependencies = {root: 0}
        task._buffers = {root: grad}
        task._count_dependencies()
        if captures is None and not state.special and type(root) is not AccumulateGrad:
            task._following = root
            return task
        if captures is not None:
            task._restrict(captures, set())
        task._make_roots_ready()
        return task

    def _begin(self, roots: Sequence[Edge], keep_graph: bool, create_graph: bool, records: bool) -> None:
        """Set what does not depend on the graph; slots are read in half the time of what is on the class."""
        self._roots = roots
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.records = create_graph and records and not state.local.inference
        self.nodes_run = self.depth = 0
        self.captured: list[Any] = []
        self.callbacks: Sequence[Callable[[], None]] = ()
        self._captures: dict[Node, list[tuple[int, int]]] = _NO_CAPTURES
        # The nodes that are to run; these and the nodes whose gradients are captured; None where all run.
        self._needed: set[Node] | None = None
        self._wanted: set[Node] | None = None
        # Nodes whose waiting gradient is a sum that the task has made, so that more can be added in place.
        self._owned: set[Node] | None = None
        # This thread's modes as they were before the task; None until it comes to code that may ask.
        self._outside: tuple[Any, ...] | None = None
        # The node that became ready last: as a rule the next to run, which spares the heap a push and a pop.
        self._following: Node | None = None
        self.kept: list[Node] | None = None
        self.running: Node | None = None
        self.thread_id: int | None = None
        self.ready: list[tuple[int, Node]] = []
        self._leaves: list[Node] = []

    def _make_roots_ready(self) -> None:
        wanted = self._wanted
        for node in self._buffers:
            if not self._dependencies[node] and (wanted is None or node in wanted or self._has_hooks_alone(node)):
                self._make_ready(node)

    def _has_hooks_alone(self, node: Node) -> bool:
        """Whether the tensor hooks run at a root that leads to nothing asked for: at the only one, as in PyTorch."""
        return len(self._roots) == 1 and (node.extra is not None or (type(node) is AccumulateGrad and hooked(node)))

    @property
    def roots(self) -> list[tuple[Node, int]]:
        """Where the gradients enter: nodes, and at which of their outputs."""
        return [ends_of(root) for root in self._roots]

    @property
    def id(self) -> int:
        """Counts up in the process, over the tasks that somebody asked for it."""
        try:
            return self._id
        except AttributeError:
            self._id: int = _task_ids()
            return self._id

    @property
    def is_restricted(self) -> bool:
        """Whether only some nodes run, as for ``grad()`` and ``backward(inputs=...)``."""
        return self._needed is not None

    @property
    def nodes(self) -> list[Node]:
        """All nodes that a gradient can reach, in an order that depends on the graph alone."""
        return list(self._dependencies)

    @property
    def waiting(self) -> list[Any]:
        """The gradients that wait for their nodes, as bare arrays: before the first step those that enter."""
        several = (grads if type(grads) is list else [grads] for grads in self._buffers.values())
        found = [grad for grads in several for grad in grads if grad is not None]
        return list(map(bare_of, found)) if self.create_graph else found

    @property
    def total(self) -> int:
        """How many nodes will have run in the end."""
        planned = self._dependencies.keys()
        return len(planned) if self._needed is None else len(self._needed & planned)

    # --- planning ---

    def _count_dependencies(self) -> None:
        counts = self._dependencies
        stack = [*counts]
        pop, push = stack.pop, stack.append
        while stack:
            for edge in pop().edges:
                if edge is not None:
                    child: Any = edge[0] if type(edge) is tuple else edge
                    if child in counts:
                        counts[child] += 1
                    else:
                        counts[child] = 1
                        if child.edges:
                            push(child)

    def _restrict(self, captures: Sequence[Edge], only: set[Node]) -> None:
        """Plan to run only what leads to the captures and to the nodes in `only`."""
        self.captured = [None] * len(captures)
        self._captures = {}
        for index, edge in enumerate(captures):
            node, nr = ends_of(edge)
            self._captures.setdefault(node, []).append((nr, index))
        self._needed = self._nodes_leading_to(only.union(self._captures)) | only
        self._wanted = self._needed.union(self._captures)

    def _nodes_leading_to(self, targets: set[Node]) -> set[Node]:
        """Return the nodes that must run for a gradient to arrive at a target."""
        parents: dict[Node, list[Node]] = {}
        for node in self._dependencies:
            for edge in node.edges:
                if edge is not None:
                    child: Any = edge[0] if type(edge) is tuple else edge
                    if child in parents:
                        parents[child].append(node)
                    else:
                        parents[child] = [node]
        needed: set[Node] = set()
        stack = list(targets)
        while stack:
            for parent in parents.get(stack.pop(), ()):
                if parent not in needed:
                    needed.add(parent)
                    stack.append(parent)
        return needed

    def runs(self, node: Node) -> bool:
        """Whether `node` is to run (and not only to be captured, or passed over)."""
        return self._needed is None or node in self._needed

    # --- gradients on their way ---

    def _make_ready(self, node: Node) -> None:
        if type(node) is AccumulateGrad:
            self._leaves.append(node)
        else:
            heappush(self.ready, (-node.seq, node))
        if events.closely and events.wanted(events.NodeReady):
            events.emit(events.NodeReady(self, node))

    def _receive(self, edge: Edge, grad: Any) -> None:
        """Add a gradient to what waits at the end of `edge`."""
        buffers = self._buffers
        if type(edge) is tuple:
            node, nr = edge
            gradients = buffers.get(node)
            if gradients is None:
                gradients = buffers[node] = [None] * len(node.output_specs())
            gradients[nr] = grad if gradients[nr] is None else gradients[nr] + grad
            return
        waiting = buffers.get(edge)  # type: ignore[arg-type]
        if waiting is None:
            buffers[edge] = grad  # type: ignore[index]
        elif self._owned is not None and edge in self._owned and waiting.dtype == grad.dtype:
            add_to(waiting, grad)
        else:
            buffers[edge] = waiting + grad  # type: ignore[index]
            if not self.create_graph and waiting.ndim:
                if self._owned is None:
                    self._owned = set()
                self._owned.add(edge)  # type: ignore[arg-type]

    def will_reach(self, node: Node) -> bool:
        """Whether a gradient arrives at `node` in this run."""
        return node in self._dependencies and (self._wanted is None or node in self._wanted)

    def release_kept(self) -> None:
        """Let go of the saved tensors of the nodes in :attr:`kept`."""
        for node in self.kept or ():
            if events.closely:
                release_announced(node)
            else:
                node.release()
        self.kept = None

    # --- running ---

    def step(self) -> Node | None:
        """Run the next ready node; return it, or None when there is nothing left to run."""
        try:
            return self._advance(1)
        finally:
            self._leave()

    def run(self) -> None:
        """Run to the end; on failure drop what was on its way and leave the runtime usable."""
        try:
            if events.unheard:
                for told in events.unheard:
                    told()
            if state.special:
                self._enter()
                events.emit(events.GraphTaskStarted(self))
            self._advance(-1)
            self.running = None
            while self.callbacks:
                callback, *self.callbacks = self.callbacks
                callback()
            if state.special:
                events.emit(events.GraphTaskFinished(self))
        except BaseException as error:
            self.ready.clear()
            self._leaves.clear()
            self._buffers.clear()
            if state.special:
                events.emit(events.GraphTaskFailed(self, error))
            raise
        finally:
            if self._outside is not None:
                self._leave()

    def _advance(self, count: int) -> Node | None:
        """Run `count` nodes, or all that are left if it is negative; return the last.

        This is the engine: everything else here prepares it or is called from it. What it does is said in ten lines by
        :func:`.specification.run`; it is one flat loop over local names because a node of a small graph costs about as
        much as a few calls do.
        """
        ready, leaves, buffers, dependencies = self.ready, self._leaves, self._buffers, self._dependencies
        keep_graph, graph = self.keep_graph, self.create_graph
        wanted, captures = self._wanted, self._captures
        plain = wanted is None and not graph
        node: Node | None = None
        following, self._following = self._following, None
        carried: Any = None  # the gradient of `following`, where it is not in a buffer
        planned = self.nodes_run + count  # less `count`, it is how many nodes have run
        while count:
            if leaves and type(following) is not AccumulateGrad:  # a leaf that follows was ready before the others
                node = leaves.pop(0)
                grad = buffers.pop(node, None)
            elif following is not None:
                node, grad = following, carried
                following = carried = None
                if ready and ready[0][0] < -node.seq:
                    if grad is not None:
                        buffers[node], grad = grad, None
                    node = heapreplace(ready, (-node.seq, node))[1]
                if grad is None:
                    grad = buffers.pop(node, None)
            elif ready:
                node = heappop(ready)[1]
                grad = buffers.pop(node, None)
            else:
                break
            count -= 1
            try:
                if node.extra is not None or state.special:
                    self.nodes_run = planned - count
                    heard_only = node.extra is None and not state.modes_on and not events.closely
                    if heard_only and plain and (type(node) is not AccumulateGrad or not hooked(node)):
                        if following is not None and events.NodeEntered in events.heard:
                            # Whoever is told before a node runs may ask what is ready.
                            self._put_off(following, carried)
                            following = carried = None
                        results = self._run_heard(node, grad)
                    else:
                        if following is not None:
                            self._put_off(following, carried)
                            following = carried = None
                        results = self._run_attended(node, grad)
                elif type(node) is AccumulateGrad:
                    if node.leaf_meta.hooks or node.leaf_meta.post_accumulate:
                        self._run_attended(node, grad)
                    elif plain or (not graph and node not in captures):
                        if grad is not None:
                            node.accumulate(grad)
                    elif node in captures:
                        self._capture(node, self._as_tensors([grad]))
                    else:
                        self._run_recorded(node, grad)
                    continue
                elif plain or (not graph and node not in captures):
                    results = node.apply(grad) if keep_graph else node.spend(grad)
                elif node in captures:
                    results = self._run_attended(node, grad)
                else:
                    results = self._run_recorded(node, grad)
            except Exception as error:
                name_node(error, node)
                refuse_reshaped(error, node)
                raise
            index = -1
            for edge in node.edges:
                index += 1
                if edge is None:
                    continue
                grad = results[index]
                if type(edge) is tuple:
                    child = edge[0]
                    if grad is not None and (wanted is None or child in wanted):
                        self._receive(edge, self._validate(node, index, grad, *child.output_specs()[edge[1]]))
                    waiting = dependencies[child]
                else:
                    child = edge  # type: ignore[assignment]
                    waiting = dependencies[child]
                    if grad is not None and (wanted is None or child in wanted):
                        if (
                            grad._dtype is not child.dtype or grad._shape != child.shape
                            if graph
                            else grad.dtype is not child.dtype or grad.shape != child.shape
                        ):
                            grad = self._validate(node, index, grad, child.shape, child.dtype)
                        if child in buffers:
                            self._receive(child, grad)
                        elif waiting == 1 and following is None and not leaves and not events.closely:
                            following, carried = child, grad  # in a chain the next node is known
                            continue
                        else:
                            buffers[child] = grad
                if waiting > 1:
                    dependencies[child] = waiting - 1
                elif wanted is not None and child not in wanted:
                    dependencies[child] = 0
                elif events.closely:
                    self._make_ready(child)
                elif type(child) is AccumulateGrad:
                    leaves.append(child)
                elif following is None:
                    following = child
                else:
                    heappush(ready, (-child.seq, child))
            # A gradient may be taken over by its leaf only when nobody else, these names either, refers to it.
            results = grad = None
        if following is not None:
            self._put_off(following, carried)
        self.nodes_run = planned - count
        return node

    def _put_off(self, node: Node, grad: Any) -> None:
        """Queue a node that was to run next, with the gradient that was to be handed to it."""
        if grad is not None:
            self._buffers[node] = grad
        if type(node) is AccumulateGrad:
            self._leaves.insert(0, node)
        else:
            heappush(self.ready, (-node.seq, node))

    def _validate(self, node: Node, index: int, grad: Any, shape: tuple[int, ...], kind: Any) -> Any:
        check = validate_tensor if self.create_graph else validate_array
        return check(node, index, grad, shape, kind)

    def _enter(self) -> None:
        """Set this thread's modes for code that may ask: hooks, listeners, user's functions."""
        modes = state.local
        outer = modes.current_task
        if outer is self:
            return
        global entered
        with _entered_lock:
            entered += 1
        self._outside = (modes.grad_enabled, outer)
        self.thread_id = threading.get_ident()
        if outer is not None:
            self.depth = outer.depth + 1
        modes.grad_enabled, modes.current_task = self.records, self
        modes.overrides_off += 1  # tensor subclasses have no say in derivatives

    def _leave(self) -> None:
        if self._outside is not None:
            modes = state.local
            modes.grad_enabled, modes.current_task = self._outside
            modes.overrides_off -= 1
            self._outside = None
            global entered
            with _entered_lock:
                entered -= 1

    # --- one node with listeners ---

    def _run_heard(self, node: Node, grad: Any) -> Any:
        """Run a node as a plain one is run, and tell listeners of it; it has no hooks, and no mode is on."""
        if self._outside is None:
            self._enter()
        self.running = node
        heard = events.heard  # who listens may change meanwhile: of one node all is told to the same listeners
        listeners = heard.get(events.NodeEntered)
        if listeners is not None:
            # The event's __init__() and emit(), without the calls.
            entry = _new(events.NodeEntered)
            entry.task, entry.node, entry._grads, entry.skip = self, node, None, False
            entry._arrays = (() if grad is None else grad) if node.multi else (grad,)
            for listener, thread in listeners:
                if thread is None or thread == threading.get_ident():
                    listener(entry)
            if entry._grads is not None or entry.skip or node.extra is not None or state.modes_on or events.closely:
                return self._run_seen(node, entry)
            del entry  # a gradient that nobody else holds may be written by who receives it
        passing, listeners = heard.get(events.InPassing), events.listening_to_exit(node)
        if type(node) is AccumulateGrad:
            results: Any = ()
            if grad is not None:
                if events.LeafReached in heard:
                    events.emit(events.LeafReached(self, node))
                node.accumulate(grad)
        elif passing is None and listeners is None:
            results = node.apply(grad) if self.keep_graph else node.spend(grad)
            if self.kept is not None:
                self.kept.append(node)
            return results
        else:
            results = node.apply(grad)  # who hears of it may look at what it has saved
        index = -1
        edge: Any
        for edge in node.edges:
            index += 1
            made = results[index]
            if edge is None or made is None:
                continue
            if type(edge) is tuple or made.dtype is not edge.dtype or made.shape != edge.shape:
                results = self._validated(node, results)
                break
        given = grad if node.multi else (grad,)
        if passing is not None:
            if self._pass(passing, given, results):
                listeners = events.listening_to_exit(node)
            if listeners is None:
                self._let_go(node)
                return results
        # The event's __init__() and emit(), without the calls: this is what recording a node waits for.
        event = _new(events.NodeExited)
        event.task, event.node, event._grads = self, node, None
        event.arrays = given, results
        for listener, thread in listeners or ():
            if thread is None or thread == threading.get_ident():
                listener(event)
        if self.keep_graph or events.closely:
            self._let_go(node)
        else:
            node.release()
        return results if event._grads is None else [None if g is None else bare_of(g) for g in event.grad_inputs]

    def _pass(self, listeners: Any, given: Sequence[Any], made: Sequence[Any]) -> bool:
        """Tell of a node in passing; return whether somebody wants to look closer."""
        closer = False
        for listener, thread in listeners:
            if (thread is None or thread == threading.get_ident()) and listener(self, given, made):
                closer = True
        return closer

    def _run_seen(self, node: Node, entry: events.NodeEntered) -> Any:
        """Run a node before which a listener has had the gradients, or has made it more than a plain one."""
        outer = state.local.current_node
        state.local.current_node = node
        try:
            return self._execute(node, entry.grad_outputs, entry.skip)
        finally:
            state.local.current_node = outer

    def _run_recorded(self, node: Node, grad: Any) -> Any:
        """Run a node on tensors, which may record it in turn; it has no hooks and no listeners."""
        if self._outside is None:
            self._enter()
        if type(node) is AccumulateGrad:
            return () if grad is None else self._accumulate(node, grad)
        results = node.apply_graph(grad)
        if not self.keep_graph:
            node.release()
        return results

    # --- one node with hooks, captures or listeners ---

    def _run_attended(self, node: Node, grad: Any) -> Any:
        """Run a node with its hooks, telling listeners; return its results, one per edge."""
        if self._outside is None:
            self._enter()
        outer = state.local.current_node
        state.local.current_node, self.running = node, None
        try:
            if self._has_posthooks_alone(node):
                return self._run_posthooked(node, grad)
            grads = self._as_tensors(grad if node.multi else [grad])
            if self._needed is None:
                grads = self._tensor_hooks(node, grads)
            elif node in self._needed:
                # What is captured on the way to another node is captured before the tensor's hooks, as in PyTorch.
                self._capture(node, grads)
                grads = self._tensor_hooks(node, grads)
            else:
                self._capture(node, self._tensor_hooks(node, grads))
                return (None,) * len(node.edges)
            grads, skip = self._announce_entry(node, self._prehooks(node, grads))
            return self._execute(node, grads, skip)
        finally:
            state.local.current_node = outer

    def _has_posthooks_alone(self, node: Node) -> bool:
        """Whether a node has post-hooks alone, and no listener or capture."""
        extra = node.extra
        if extra is None or not extra.posthooks or extra.prehooks or extra.tensor_hooks or extra.retain:
            return False
        plain = not (state.special or self.create_graph or type(node) is AccumulateGrad)
        return plain and self._needed is None and self.kept is None

    def _run_posthooked(self, node: Node, grad: Any) -> Any:
        """Run such a node: what it has made is shown to its hooks."""
        arrays = grad if node.multi else [grad]
        grads = self._as_tensors(arrays)
        results = node.apply(grad) if self.keep_graph else node.spend(grad)
        if len(results) != len(node.edges):
            results = check_count(node, results)
        results = self._validated(node, results)
        # What a node passes on as it is, as at the edges of a module, is one tensor.
        passed = len(grads) == 1 == len(results) and results[0] is arrays[0]
        tensors = grads if passed else self._as_tensors(results)
        seen = self._posthooks(node, tensors, grads)
        return results if seen is tensors else [None if g is None else bare_of(g) for g in seen]

    def _as_tensors(self, grads: list[Any]) -> list[Any]:
        if grads is None:
            return []
        return grads if self.create_graph else [None if g is None else wrap(g) for g in grads]

    def _as_carried(self, node: Node, grads: Sequence[Any]) -> Any:
        carried = [g if g is None or self.create_graph else bare_of(g) for g in grads]
        return carried if node.multi else (carried[0] if carried else None)

    def _execute(self, node: Node, grads: list[Any], skip: bool) -> Any:
        if type(node) is AccumulateGrad:
            if grads and grads[0] is not None and not skip:
                if state.special and events.wanted(events.LeafReached):
                    events.emit(events.LeafReached(self, node))
                carried = self._as_carried(node, grads)
                listening = state.special or (node.extra is not None and node.extra.posthooks)
                if not listening:
                    grads.clear()
                self._accumulate(node, carried)
            self._posthooks(node, (), grads)
            self._announce_exit(node, grads, [])
            return ()
        carried = self._as_carried(node, grads)
        if skip:
            results: Any = (None,) * len(node.edges)
        else:
            if state.special and events.wanted(events.TensorUnpacked):
                announce_unpacked(node)
            results = node.apply_graph(carried) if self.create_graph else node.apply(carried)
        heard = state.special and _is_exit_heard(node)
        if not heard:
            self._let_go(node)
        try:
            if len(results) != len(node.edges):
                results = check_count(node, results)
            if state.anomaly:
                check_anomaly(node, results)
            return self._results_seen(node, results, grads)
        finally:
            if heard:
                self._let_go(node)

    def _let_go(self, node: Node) -> None:
        """Release what a node that has run saved, unless the graph is kept."""
        if not self.keep_graph:
            if events.closely:
                release_announced(node)
            else:
                node.release()
        elif self.kept is not None:
            self.kept.append(node)

    def _results_seen(self, node: Node, results: Any, grads: list[Any]) -> Any:
        """Show the produced gradients to post-hooks and listeners; return them as they carry on."""
        hooked = node.extra is not None and node.extra.posthooks
        heard = state.special and _is_exit_heard(node)
        if not hooked and not heard:
            return results
        tensors = list(self._posthooks(node, self._as_tensors(self._validated(node, results)), grads))
        tensors = self._announce_exit(node, grads, tensors)
        return [g if g is None or self.create_graph else bare_of(g) for g in tensors]

    def _validated(self, node: Node, results: Any) -> list[Any]:
        """Return the results as their receivers expect them; None for a receiver that this backward does not run."""
        checked = list(results)
        for index, edge in enumerate(node.edges):
            grad = checked[index]
            if edge is None or grad is None:
                continue
            child, nr = ends_of(edge)
            if self._wanted is not None and child not in self._wanted:
                checked[index] = None
            else:
                checked[index] = self._validate(node, index, grad, *child.output_specs()[nr])
        return checked

    def _tensor_hooks(self, node: Node, grads: list[Any]) -> list[Any]:
        extra = node.extra
        if type(node) is AccumulateGrad:
            for hook in list((node.leaf_meta.hooks or {}).values()):
                grads = grads or [None]
                grads[0] = self._call_tensor_hook(node, hook, grads[0])
        if extra is None or not (extra.tensor_hooks or extra.retain):
            return grads
        grads = grads or [None] * len(node.output_specs())
        for nr, table in (extra.tensor_hooks or {}).items():
            for hook in list(table.values()):
                grads[nr] = self._call_tensor_hook(node, hook, grads[nr])
        for nr, reference in (extra.retain or {}).items():
            retain(reference(), grads[nr])
        return grads

    def _call_tensor_hook(self, node: Node, hook: Callable[..., Any], grad: Any) -> Any:
        result = hook(grad)
        if state.special and events.wanted(events.HookCalled):
            events.emit(events.HookCalled(self, node, "tensor", hook))
        if result is None:
            return grad
        check_hook_result(hook, result, grad)
        return result

    def _capture(self, node: Node, grads: list[Any]) -> None:
        for nr, index in self._captures.get(node, ()):
            grad = grads[nr] if grads else None
            self.captured[index] = grad
            if state.special and events.wanted(events.GradientCaptured):
                events.emit(events.GradientCaptured(self, node, index, grad))

    def _prehooks(self, node: Node, grads: list[Any]) -> list[Any]:
        if node.extra is None or not node.extra.prehooks:
            return grads
        for hook in list(node.extra.prehooks.values()):
            result = hook(tuple(grads))
            if state.special and events.wanted(events.HookCalled):
                events.emit(events.HookCalled(self, node, "pre", hook))
            if result is not None:
                grads = replaced(hook, result, grads)
        return grads

    def _posthooks(self, node: Node, results: Sequence[Any], grads: list[Any]) -> Sequence[Any]:
        if node.extra is None or not node.extra.posthooks:
            return results
        for hook in list(node.extra.posthooks.values()):
            result = hook(tuple(results), tuple(grads))
            if state.special and events.wanted(events.HookCalled):
                events.emit(events.HookCalled(self, node, "post", hook))
            if result is not None and results:
                results = replaced(hook, result, results)
        return results

    def _announce_entry(self, node: Node, grads: list[Any]) -> tuple[list[Any], bool]:
        if not (state.special and events.wanted(events.NodeEntered)):
            return grads, False
        self.running = node
        event = events.NodeEntered(self, node, list(grads))
        events.emit(event)
        return event.grad_outputs, event.skip

    def _announce_exit(self, node: Node, grads: list[Any], results: list[Any]) -> list[Any]:
        if not state.special:
            return results
        passing, listeners = events.heard.get(events.InPassing), events.listening_to_exit(node)
        if passing is not None:
            # A hook may have written what another node has made and told of: it is shown as an array of its own.
            given = [None if g is None else bare_of(g)[...] for g in grads]
            made = [None if g is None else bare_of(g) for g in results]
            if self._pass(passing, given, made):
                listeners = events.listening_to_exit(node)
        if listeners is None:
            return results
        event = events.NodeExited(self, node, (list(grads), results))
        for listener, thread in listeners:
            if thread is None or thread == threading.get_ident():
                listener(event)
        return event.grad_inputs

    def _accumulate(self, node: AccumulateGrad, grad: Any) -> None:
        shown = None
        if state.special and events.wanted(events.GradientAccumulated):
            shown = grad if self.create_graph else wrap(grad)
        inference = state.local.inference
        fresh = inference and node.leaf_meta.grad is None
        if self.records or (self.create_graph and inference):
            node.accumulate_graph(grad)
        else:
            node.accumulate(grad._array if self.create_graph else grad)
        if fresh:
            node.leaf_meta.grad._mark_inference()
        if shown is not None:
            events.emit(events.GradientAccumulated(self, node.variable, shown))
        for hook in list((node.leaf_meta.post_accumulate or {}).values()):
            hook(node.variable)
            if state.special and events.wanted(events.HookCalled):
                events.emit(events.HookCalled(self, node, "post_accumulate", hook))


def _is_exit_heard(node: Node) -> bool:
    """Whether somebody hears that a node has run."""
    return events.listening_to_exit(node) is not None or events.wanted(events.InPassing)


def hooked(node: AccumulateGrad) -> bool:
    """Whether a leaf has hooks."""
    return bool(node.leaf_meta.hooks or node.leaf_meta.post_accumulate)


def bare_of(tensor: Any) -> Any:
    """Return the array of a gradient."""
    return tensor._array


def run_node_alone(node: Node, grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run one node on the given gradients, keeping what it saved."""
    create_graph = state.local.grad_enabled and any(g is not None and g.requires_grad for g in grad_outputs)
    grads = list(grad_outputs) if node.multi else grad_outputs[0]
    if create_graph:
        return tuple(node.apply_graph(grads))
    bare = [None if g is None else g._array for g in grad_outputs]
    results = node.apply(bare if node.multi else bare[0])
    return tuple(None if r is None else wrap(r) for r in results)
