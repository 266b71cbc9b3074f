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
import warnings
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from threading import get_ident
from typing import Any

from . import device, events, graph, state
from .dtype import BY_NUMPY
from .graph import AccumulateGrad, Edge, GradientEdge, Node
from .hooks import hook_name
from .ops.arrays import expandable, sum_to
from .views import edge_of

__all__ = ["GraphTask", "backward", "grad", "queue_callback"]

_task_ids = itertools.count(1).__next__

# Nested backwards beyond this depth continue on a fresh thread, which has a fresh stack.
MAX_DEPTH = 40


class GraphTask:
    """One run of the engine.

    Parameters
    ----------
    roots : sequence of (Node, int)
        Where the gradients enter.
    grads : sequence
        The gradients that enter, one per root: bare arrays, or tensors under `create_graph`.
    keep_graph, create_graph : bool
    captures : sequence of (Node, int), optional
        Take the gradients that arrive here instead of accumulating.
    only : set of Node, optional
        Run these nodes, and of the others only what leads to them.

    Attributes
    ----------
    id : int
        Counts up in the process.
    nodes_run, total : int
    captured : list
        Gradients taken, one per capture.
    """

    # What most tasks do not need is on the class, and set on the instance where it is needed.
    nodes_run = 0
    captured: list[Any] = []  # noqa: RUF012 - never written
    callbacks: Sequence[Callable[[], None]] = ()
    _captures: dict[Node, list[tuple[int, int]]] = {}  # noqa: RUF012 - never written
    _needed: set[Node] | None = None
    _owned: frozenset[Node] | set[Node] = frozenset()
    depth = 0

    def __init__(
        self,
        roots: Sequence[Edge],
        grads: Sequence[Any],
        *,
        keep_graph: bool = False,
        create_graph: bool = False,
        captures: Sequence[Edge] | None = None,
        only: set[Node] | None = None,
    ) -> None:
        self.id = _task_ids()
        self.roots = roots
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.thread_id = get_ident()
        self.ready: list[tuple[int, Node]] = []
        self._leaves: list[Node] = []
        self._buffers: dict[Node, Any] = {}
        self._dependencies = self._count_dependencies()
        if captures is not None or only is not None:
            self._restrict(captures or (), only or set())
        for (node, nr), grad in zip(roots, grads, strict=True):
            self._receive(node, nr, grad)
        for node in self._buffers:
            if not self._dependencies[node]:
                self._make_ready(node)

    @property
    def total(self) -> int:
        """How many nodes will have run in the end."""
        planned = self._dependencies.keys()
        return len(planned) if self._needed is None else len(self._needed & planned)

    # --- planning ---

    def _count_dependencies(self) -> dict[Node, int]:
        counts: dict[Node, int] = {}
        for root in self.roots:
            counts[root[0]] = 0
        stack = list(counts)
        pop, push = stack.pop, stack.append
        while stack:
            for edge in pop().edges:
                if edge is not None:
                    child = edge[0]
                    if child in counts:
                        counts[child] += 1
                    else:
                        counts[child] = 1
                        push(child)
        return counts

    def _restrict(self, captures: Sequence[Edge], only: set[Node]) -> None:
        """Plan to run only what leads to the captures and to the nodes in `only`."""
        self.captured = [None] * len(captures)
        self._captures = {}
        for index, (node, nr) in enumerate(captures):
            self._captures.setdefault(node, []).append((nr, index))
        self._needed = self._nodes_leading_to(set(self._captures) | only) | only

    def _nodes_leading_to(self, targets: set[Node]) -> set[Node]:
        """Return the nodes that must run for a gradient to arrive at a target."""
        parents: dict[Node, list[Node]] = {}
        for node in self._dependencies:
            for edge in node.edges:
                if edge is not None:
                    parents.setdefault(edge[0], []).append(node)
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
        if state.special and events.wanted(events.NodeReady):
            events.emit(events.NodeReady(self, node))

    def _receive(self, node: Node, nr: int, grad: Any) -> None:
        """Add a gradient to what waits at input `nr` of `node`."""
        buffers = self._buffers
        if node.multi:
            waiting = buffers.get(node)
            if waiting is None:
                waiting = buffers[node] = [None] * len(node.output_specs())
            waiting[nr] = grad if waiting[nr] is None else waiting[nr] + grad
            return
        waiting = buffers.get(node)
        if waiting is None:
            buffers[node] = grad
        elif node in self._owned and waiting.dtype == grad.dtype:
            waiting += grad
        else:
            buffers[node] = waiting + grad
            if not self.create_graph and waiting.ndim:
                if not self._owned:
                    self._owned = set()
                self._owned.add(node)  # type: ignore[union-attr]

    def _wanted(self, node: Node) -> bool:
        return self._needed is None or node in self._needed or node in self._captures

    def will_reach(self, node: Node) -> bool:
        """Whether a gradient arrives at `node` in this run."""
        return node in self._dependencies and self._wanted(node)

    def release_saved(self) -> None:
        """Let go of the saved tensors of all nodes planned to run, which `keep_graph` has kept."""
        for node in self._dependencies:
            if node.saved_names and self.runs(node):
                release_announced(node)

    # --- running ---

    def step(self) -> Node | None:
        """Run the next ready node; return it, or None when there is nothing left to run."""
        if state.local.current_task is self:
            return self._advance(1)
        saved = self._enter()
        try:
            return self._advance(1)
        finally:
            self._leave(saved)

    def run(self) -> None:
        """Run to the end; on failure drop what was on its way and leave the runtime usable."""
        saved = self._enter()
        try:
            if state.special:
                events.emit(events.GraphTaskStarted(self))
            self._advance(-1)
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
            self._leave(saved)

    def _advance(self, count: int) -> Node | None:
        """Run `count` nodes, or all that are left if it is negative; return the last.

        This is the engine: everything else here prepares it or is called from it. It is one flat loop over local names
        because a node of a small graph costs about as much as a few calls do.
        """
        ready, leaves, buffers, dependencies = self.ready, self._leaves, self._buffers, self._dependencies
        node: Node | None = None
        while count and (ready or leaves):
            count -= 1
            self.nodes_run += 1
            node = leaves.pop(0) if leaves else heappop(ready)[1]
            grad = buffers.pop(node, None)
            if self._owned:
                self._owned.discard(node)  # type: ignore[union-attr]
            try:
                if node.extra is not None or state.special or self._needed is not None or self.create_graph:
                    results = self._run_attended(node, grad)
                elif type(node) is not AccumulateGrad:
                    results = node.apply(grad)
                    if node.saved_names and not self.keep_graph:
                        node.release()
                elif node.leaf_meta.hooks or node.leaf_meta.post_accumulate:
                    results = self._run_attended(node, grad)
                else:
                    if grad is not None:
                        node.accumulate(grad)
                    continue
            except Exception as error:
                name_node(error, node)
                raise
            edges = node.edges
            if len(results) != len(edges):
                results = check_count(node, results)
            index = -1
            for edge in edges:
                index += 1
                if edge is None:
                    continue
                child, nr = edge
                if self._needed is not None and not self._wanted(child):
                    dependencies[child] -= 1
                    continue
                grad = results[index]
                if grad is not None:
                    shape, kind = (child.shape, child.dtype) if not child.multi else child.output_specs()[nr]
                    if grad.dtype is not kind or grad.shape != shape:
                        grad = self._validate(node, index, grad, shape, kind)
                    if child in buffers or child.multi:
                        self._receive(child, nr, grad)
                    else:
                        buffers[child] = grad
                waiting = dependencies[child]
                if waiting > 1:
                    dependencies[child] = waiting - 1
                else:
                    self._make_ready(child)
            # A gradient may be taken over by its leaf only when nobody else, these names either, refers to it.
            results = grad = None
        return node

    def _validate(self, node: Node, index: int, grad: Any, shape: tuple[int, ...], kind: Any) -> Any:
        check = validate_tensor if self.create_graph else validate_array
        return check(node, index, grad, shape, kind)

    def _enter(self) -> tuple[Any, ...]:
        modes = state.local
        outer = modes.current_task
        saved = (modes.grad_enabled, outer)
        if outer is not None:
            self.depth = outer.depth + 1
        modes.grad_enabled, modes.current_task = self.create_graph, self
        return saved

    def _leave(self, saved: tuple[Any, ...]) -> None:
        modes = state.local
        modes.grad_enabled, modes.current_task = saved

    # --- one node with hooks, captures or listeners ---

    def _run_attended(self, node: Node, grad: Any) -> Any:
        """Run a node with its hooks, telling listeners; return its results, one per edge."""
        outer = state.local.current_node
        state.local.current_node = node
        try:
            grads = self._as_tensors(grad if node.multi else [grad])
            # What is captured on the way to another node is captured before the tensor's hooks, as in PyTorch.
            runs = self.runs(node)
            if runs:
                self._capture(node, grads)
            grads = self._tensor_hooks(node, grads)
            if not runs:
                self._capture(node, grads)
                return (None,) * len(node.edges)
            grads = self._prehooks(node, grads)
            grads, skip = self._announce_entry(node, grads)
            return self._execute(node, grads, skip)
        finally:
            state.local.current_node = outer

    def _as_tensors(self, grads: list[Any]) -> list[Any]:
        if grads is None:
            return []
        return grads if self.create_graph else [None if g is None else _wrap(g) for g in grads]

    def _as_carried(self, node: Node, grads: Sequence[Any]) -> Any:
        carried = [g if g is None or self.create_graph else _bare(g) for g in grads]
        return carried if node.multi else (carried[0] if carried else None)

    def _execute(self, node: Node, grads: list[Any], skip: bool) -> Any:
        if type(node) is AccumulateGrad:
            if grads and grads[0] is not None and not skip:
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
        if not self.keep_graph:
            release_announced(node)
        if len(results) != len(node.edges):
            results = check_count(node, results)
        if state.anomaly:
            check_anomaly(node, results)
        return self._results_seen(node, results, grads)

    def _results_seen(self, node: Node, results: Any, grads: list[Any]) -> Any:
        """Show the produced gradients to post-hooks and listeners; return them as they carry on."""
        hooked = node.extra is not None and node.extra.posthooks
        if not hooked and not (state.special and events.wanted(events.NodeExited)):
            return results
        tensors = list(self._posthooks(node, self._as_tensors(self._validated(node, results)), grads))
        tensors = self._announce_exit(node, grads, tensors)
        return [g if g is None or self.create_graph else _bare(g) for g in tensors]

    def _validated(self, node: Node, results: Any) -> list[Any]:
        """Return the results as their receivers expect them; those nobody sees are validated on their way there."""
        checked = list(results)
        for index, (edge, grad) in enumerate(zip(node.edges, results)):
            if edge is None or grad is None:
                continue
            if self._needed is not None and not self._wanted(edge[0]):
                checked[index] = None
            else:
                checked[index] = self._validate(node, index, grad, *edge[0].output_specs()[edge[1]])
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
            retain(reference(), grads[nr], self.create_graph)
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
        event = events.NodeEntered(self, node, list(grads))
        events.emit(event)
        return event.grad_outputs, event.skip

    def _announce_exit(self, node: Node, grads: list[Any], results: list[Any]) -> list[Any]:
        if not (state.special and events.wanted(events.NodeExited)):
            return results
        event = events.NodeExited(self, node, list(grads), results)
        events.emit(event)
        return event.grad_inputs

    def _accumulate(self, node: AccumulateGrad, grad: Any) -> None:
        shown = None
        if state.special and events.wanted(events.GradientAccumulated):
            shown = grad if self.create_graph else _wrap(grad)
        if self.create_graph:
            node.accumulate_graph(grad)
        else:
            node.accumulate(grad)
        if shown is not None:
            events.emit(events.GradientAccumulated(self, node.variable, shown))
        for hook in list((node.leaf_meta.post_accumulate or {}).values()):
            hook(node.variable)
            if state.special and events.wanted(events.HookCalled):
                events.emit(events.HookCalled(self, node, "post_accumulate", hook))


# --- checks -----------------------------------------------------------------------------------------------------------


def _wrap(array: Any) -> Any:
    return graph.tensor_type._wrap(array if device.is_array(array) else device.numpy.asarray(array))


def _bare(tensor: Any) -> Any:
    return tensor._array


def name_node(error: BaseException, node: Node) -> None:
    """Note on an exception which node it left, once."""
    if getattr(error, "_gradscope_noted", False):
        return
    site = node.call_site
    frame = site.user_frame() if site is not None else None
    where = f", recorded at {frame.filename}:{frame.lineno}" if frame else ""
    error.add_note(f"while running {node.name()} in backward{where}")
    try:
        error._gradscope_noted = True  # type: ignore[attr-defined]
    except AttributeError:
        pass


def check_count(node: Node, results: Any) -> Any:
    """Return `results` cut to the number of edges; only extra Nones may be cut."""
    expected = len(node.edges)
    if len(results) > expected and all(r is None for r in results[expected:]):
        return results[:expected]
    raise RuntimeError(
        f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})\n"
        "backward() must return one gradient (or None) per argument of forward()."
    )


def _invalid(node: Node, index: int, problem: str) -> RuntimeError:
    return RuntimeError(f"Function {node.name()} returned an invalid gradient at index {index} - {problem}")


def validate_array(node: Node, index: int, grad: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """Return a gradient with the shape and dtype its receiver expects; raise if it cannot have them."""
    if grad.shape != shape:
        if not expandable(shape, grad.shape):
            raise _invalid(node, index, f"got {list(grad.shape)} but expected shape compatible with {list(shape)}")
        grad = sum_to(grad, shape)
    if grad.dtype != kind:
        if grad.dtype.kind == "c" and kind.kind != "c":
            grad = grad.real
        grad = grad.astype(kind)
    return grad


def validate_tensor(node: Node, index: int, grad: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """The same for tensors, recorded."""
    from .ops.arrays import TENSOR_OPERATORS

    array = grad._array
    if array.shape != shape:
        if not expandable(shape, array.shape):
            raise _invalid(node, index, f"got {list(array.shape)} but expected shape compatible with {list(shape)}")
        grad = TENSOR_OPERATORS.sum_to_size(grad, shape)
    if array.dtype != kind:
        if array.dtype.kind == "c" and kind.kind != "c":
            grad = TENSOR_OPERATORS.real(grad)
        grad = grad.to(BY_NUMPY[kind])
    return grad


def check_hook_result(hook: Callable[..., Any], result: Any, grad: Any) -> None:
    """Raise when a hook returned something that cannot stand for the gradient it was given."""
    name = hook_name(hook)
    if not hasattr(result, "_array"):
        raise TypeError(
            f"expected Variable, but hook returned '{type(result).__name__}'\n"
            f"It is hook '{name}': return a tensor, or None to leave the gradient as it is."
        )
    if grad is None:
        return
    if result._array.shape != grad._array.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value (was {list(grad.shape)} got {list(result.shape)})"
        )
    if result._array.dtype != grad._array.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {grad.dtype} got {result.dtype})")
    if result.device != grad.device:
        raise RuntimeError(f"hook '{name}' has changed the device of value (was {grad.device} got {result.device})")


def replaced(hook: Callable[..., Any], result: Any, old: Sequence[Any]) -> list[Any]:
    """Return the gradients a node hook put in place of `old`, checked."""
    if not isinstance(result, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(result).__name__}'\n"
            f"It is hook '{hook_name(hook)}' of a node: return a tuple of {len(old)}, or None to leave the gradients "
            "as they are."
        )
    new = list(result)
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(new)}, but expected "
            f"{len(old)})"
        )
    for after, before in zip(new, old, strict=True):
        if after is not None:
            check_hook_result(hook, after, before)
    return new


def retain(tensor: Any, grad: Any, create_graph: bool) -> None:
    """Add `grad` into the ``grad`` of a non-leaf that retains it."""
    if tensor is None or grad is None:
        return
    meta = tensor._extras()
    if meta.grad is None:
        meta.grad = grad if create_graph else grad.clone()
    else:
        meta.grad = meta.grad + grad


def check_anomaly(node: Node, results: Sequence[Any]) -> None:
    """In anomaly mode, raise when a node produced NaN (or, by option, Inf)."""
    for index, result in enumerate(results):
        if result is None:
            continue
        array = getattr(result, "_array", result)
        xp = device.array_module(array)
        found = None
        if state.anomaly_check_nan and xp.isnan(array).any():
            found = "nan"
        elif state.anomaly_check_inf and xp.isinf(array).any():
            found = "inf"
        if found is not None:
            from .modes import report_anomaly

            report_anomaly(node, index, found)


def announce_unpacked(node: Node) -> None:
    """Emit a TensorUnpacked for everything the node is about to unpack."""
    for saved in node.saved_tensors_info():
        if not saved.released:
            events.emit(events.TensorUnpacked(node, saved.name, saved.saved_version))


def release_announced(node: Node) -> None:
    """Release what a node saved, telling listeners."""
    if state.special and events.wanted(events.TensorReleased):
        for saved in node.saved_tensors_info():
            if not saved.released:
                events.emit(events.TensorReleased(node, saved.name))
    node.release()


# --- backward() and grad() --------------------------------------------------------------------------------------------


def backward(
    tensors: Any = None,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
    *,
    retain_variables: bool | None = None,
    variables: Any = None,
) -> None:
    """Compute the gradients of `tensors` with respect to the leaves, and add them to the leaves' ``grad``.

    Parameters
    ----------
    tensors : Tensor, GradientEdge or sequence of them
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The gradients of `tensors`; None stands for 1 where a tensor has one element.
    retain_graph : bool, optional
        Keep what nodes saved; `create_graph` unless given.
    create_graph : bool
        Record the backward pass.
    inputs : Tensor, GradientEdge or sequence, optional
        Accumulate only into these (a non-leaf retains its gradient from now on); an empty sequence is an error.
    grad_variables, retain_variables, variables
        The names PyTorch 0.1 had for `grad_tensors`, `retain_graph` and `tensors`.

    Raises
    ------
    RuntimeError
        When a tensor does not require grad, has several elements and no gradient, or the graph was freed.
    SavedTensorModifiedError
        When a saved tensor has been written in place.
    """
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            stacklevel=2,
        )
    if (
        grad_tensors is None
        and grad_variables is None
        and inputs is None
        and hasattr(tensors, "_array")
        and tensors._array.size == 1
    ):
        return backward_scalar(tensors, retain_graph if retain_variables is None else retain_variables, create_graph)
    tensors = as_sequence(tensors if variables is None else variables)
    grad_tensors = grad_variables if grad_tensors is None and grad_variables is not None else grad_tensors
    retain_graph = retain_variables if retain_graph is None and retain_variables is not None else retain_graph
    roots, grads = root_edges(tensors, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    if inputs is None:
        run_task(GraphTask(roots, grads, keep_graph=keep, create_graph=create_graph))
        return
    targets = as_sequence(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for target in targets:
        if hasattr(target, "_array"):
            edge_of(target)  # makes the edge of a stale view anew, so that retain_grad() sees that it is no leaf
            target.retain_grad()
    only = {target_edge(target, index)[0] for index, target in enumerate(targets)}
    run_task(GraphTask(roots, grads, keep_graph=keep, create_graph=create_graph, only=only))


def backward_scalar(tensor: Any, retain_graph: bool | None, create_graph: bool) -> None:
    """backward() of one loss, the common call."""
    edge = tensor._edge or edge_of(tensor)
    array = tensor._array
    if edge is None or array.dtype.kind == "c":
        root_edges((tensor,), None, create_graph)  # raises, with the reason
    assert edge is not None
    seed = _ones(tensor, array.shape, array.dtype)
    if create_graph:
        seed = _wrap(seed)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    run_task(GraphTask((edge,), (seed,), keep_graph=keep, create_graph=create_graph))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, without touching any ``grad``.

    Parameters
    ----------
    outputs, inputs : Tensor, GradientEdge or sequence of them
    grad_outputs : Tensor or sequence of Tensor or None, optional
    retain_graph, create_graph : bool
        As for :func:`backward`.
    allow_unused : bool, optional
        Return None for an input the outputs do not depend on; an error otherwise.
    is_grads_batched : bool
        The first dimension of each of `grad_outputs` is a batch; so is that of the results.
    materialize_grads : bool
        Return zeros instead of None.

    Returns
    -------
    tuple of Tensor or None

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor(3.0, requires_grad=True)
    >>> gs.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, targets = as_sequence(outputs), as_sequence(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        gradients = _batched_grad(outputs, targets, grad_outputs, retain_graph, create_graph, allow_unused)
        if not materialize_grads:
            return gradients
        # As in PyTorch, such a zero has no dimension of the batch.
        return tuple(_zeros_of(t) if g is None else g for g, t in zip(gradients, targets, strict=True))
    roots, grads = root_edges(outputs, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    captures = [target_edge(t, i) for i, t in enumerate(targets)]
    task = GraphTask(roots, grads, keep_graph=keep, create_graph=create_graph, captures=captures)
    run_task(task)
    return tuple(
        _result(g, t, i, allow_unused, materialize_grads)
        for i, (g, t) in enumerate(zip(task.captured, targets, strict=True))
    )


def _result(grad: Any, target: Any, index: int, allow_unused: bool, materialize: bool) -> Any:
    if grad is not None:
        return grad
    if not allow_unused:
        raise RuntimeError(
            f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if not materialize:
        return None
    return _zeros_of(target)


def _zeros_of(target: Any) -> Any:
    """Return a zero gradient of a tensor or gradient edge, on its device."""
    shape, kind = edge_spec(target)
    edge = isinstance(target, GradientEdge)
    place = target.node._input_metadata[target.output_nr].device if edge else target.device
    return _wrap(device.to_device(device.numpy.zeros(shape, dtype=kind), place))


def _batched_grad(
    outputs: Any, targets: Any, grad_outputs: Any, retain_graph: Any, create_graph: bool, allow_unused: bool
) -> tuple[Any, ...]:
    from .ops.arrays import TENSOR_OPERATORS

    batches = as_sequence(grad_outputs)
    size = batches[0].shape[0]
    rows = []
    for i in range(size):
        keep = retain_graph or create_graph or i + 1 < size
        seeds = [b[i] for b in batches]
        rows.append(grad(outputs, targets, seeds, keep, create_graph, allow_unused=allow_unused))
    columns = zip(*rows, strict=True)
    return tuple(None if c[0] is None else TENSOR_OPERATORS.stack(list(c)) for c in columns)


def run_task(task: GraphTask) -> None:
    """Run a task here, or on a fresh thread when backwards are nested so deep that the stack could end."""
    outer = state.local.current_task
    if outer is None or outer.depth % MAX_DEPTH != MAX_DEPTH - 1:
        task.run()
        return
    modes = vars_of_modes()
    failures: list[BaseException] = []

    def continue_elsewhere() -> None:
        for name, value in modes.items():
            setattr(state.local, name, value)
        try:
            task.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=continue_elsewhere, name="gradscope nested backward")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def vars_of_modes() -> dict[str, Any]:
    """Return this thread's modes, to be taken over by another thread."""
    names = ("grad_enabled", "inference", "saved_hooks", "saved_hooks_disabled", "current_node", "current_task")
    return {name: getattr(state.local, name) for name in names}


def as_sequence(value: Any) -> tuple[Any, ...]:
    """Return a tensor or edge as a tuple of one."""
    if hasattr(value, "_array") or isinstance(value, GradientEdge):
        return (value,)
    return tuple(value)


def root_edges(tensors: Sequence[Any], grads: Any, create_graph: bool) -> tuple[list[Edge], list[Any]]:
    """Return the edges that gradients enter by, and those gradients."""
    given = as_sequence(grads) if grads is not None else (None,) * len(tensors)
    if len(given) != len(tensors):
        raise RuntimeError(
            f"Mismatch in number of tensors and gradients: got {len(tensors)} tensors and {len(given)} gradients"
        )
    if not tensors:
        raise RuntimeError("grad requires non-empty inputs.")
    roots, seeds = [], []
    for index, (tensor, grad) in enumerate(zip(tensors, given, strict=True)):
        if not hasattr(tensor, "_array") and not isinstance(tensor, GradientEdge):
            raise TypeError(
                f"all outputs have to be Tensors or GradientEdges, but number {index} is {type(tensor).__name__}\n"
                "backward() starts from tensors that the graph has computed."
            )
        edge = (tensor.node, tensor.output_nr) if isinstance(tensor, GradientEdge) else edge_of(tensor)
        if edge is None:
            if tensor._flags & state.VOLATILE:
                raise RuntimeError(
                    "calling backward on a volatile variable\nNothing computed from a volatile tensor is recorded."
                )
            if grad is not None or tensor.requires_grad:
                _seed(tensor, grad, index, create_graph)  # PyTorch looks at the gradients first
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn\n"
                f"It has shape {list(tensor.shape)}: it was computed under no_grad, from tensors that do not require "
                "grad, or was detached (detach(), item(), numpy(), argmax())."
            )
        roots.append(edge)
        if grad is None and edge[0].seedless:
            grad = _wrap(device.array_module(tensor._array).zeros(*edge_spec(tensor)))
        seed = _seed(tensor, grad, index, create_graph)
        seeds.append(seed if create_graph else seed._array)
    return roots, seeds


def _seed(tensor: Any, grad: Any, index: int, create_graph: bool) -> Any:
    shape, kind = edge_spec(tensor)
    if grad is None:
        if (isinstance(tensor, GradientEdge) and shape != ()) or tensor_size(shape) != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs\nOutput {index} has shape {list(shape)}: "
                "reduce it (.sum(), .mean()), or pass its gradient."
            )
        if kind.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {BY_NUMPY[kind]}")
        return _wrap(_ones(tensor, shape, kind))
    if not hasattr(grad, "_array"):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {list(grad.shape)} and output[{index}] has a "
            f"shape of {list(shape)}."
        )
    if (grad._array.dtype.kind == "c") != (kind.kind == "c"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {grad.dtype} and output[{index}] has a dtype of {BY_NUMPY[kind]}."
        )
    if grad._array.dtype != kind:
        return grad.to(BY_NUMPY[kind]) if create_graph else _wrap(grad._array.astype(kind))
    return grad


def tensor_size(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape."""
    size = 1
    for length in shape:
        size *= length
    return size


# One 1 of each dtype, copied for each backward.
_ONE: dict[Any, Any] = {}


def _ones(tensor: Any, shape: tuple[int, ...], kind: Any) -> Any:
    array = getattr(tensor, "_array", None)
    if array is None or type(array) is device.ndarray:
        one = _ONE.get(kind)
        if one is None:
            one = _ONE[kind] = device.numpy.ones((), kind)
        return one.copy() if shape == () else one.copy().reshape(shape)
    return device.array_module(array).ones(shape, dtype=kind)


def edge_spec(target: Any) -> tuple[tuple[int, ...], Any]:
    """Return shape and NumPy dtype of a tensor or gradient edge."""
    if isinstance(target, GradientEdge):
        return target.node.output_specs()[target.output_nr]
    return target._array.shape, target._array.dtype


def target_edge(target: Any, index: int) -> Edge:
    """Return the edge of a tensor or gradient edge that gradients are wanted for."""
    if isinstance(target, GradientEdge):
        return (target.node, target.output_nr)
    if not hasattr(target, "_array"):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(target).__name__}\nIt is number {index}."
        )
    if not target.requires_grad:
        raise RuntimeError(
            "One of the differentiated Tensors does not require grad\n"
            f"It is number {index}, of shape {list(target.shape)}: call requires_grad_() on it before the forward pass."
        )
    # A view made under no_grad requires grad, but no graph leads to it.
    return edge_of(target) or (Node(), 0)


def run_node_alone(node: Node, grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run one node on the given gradients, keeping what it saved."""
    create_graph = state.local.grad_enabled and any(g is not None and g.requires_grad for g in grad_outputs)
    grads = list(grad_outputs) if node.multi else grad_outputs[0]
    if create_graph:
        return tuple(node.apply_graph(grads))
    bare = [None if g is None else g._array for g in grad_outputs]
    results = node.apply(bare if node.multi else bare[0])
    return tuple(None if r is None else _wrap(r) for r in results)


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` at the end of the backward that runs on this thread.

    Raises
    ------
    RuntimeError
        Outside a backward.
    """
    task = state.local.current_task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    task.callbacks = [*task.callbacks, callback]
