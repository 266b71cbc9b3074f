"""The adapter for programs of either framework or both: each question goes to the one that owns the thing."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any

import numpy

import gradscope as gs

from ...runtime import call_sites
from ...runtime.engine.graph_task import GraphTask
from ...runtime.graph.graph_node import Node
from ..records.moments import Moments
from ..records.records import InnerOperator, Location, TensorSpec
from .gradient_hooks import NodeHook
from .guarded_observer import AdapterGuard, adapter_failed
from .import_watch import when_imported
from .memory_fingerprint import Region
from .native_adapter import NativeAdapter
from .protocol import Adapter, DataParallel, FailedCall, InnerCalls, NodeFacts, Observation, Observer, Plan, SavedView

__all__ = ["AnyAdapter", "adapter_for"]

_NATIVE = (gs.Tensor, Node, GraphTask, gs.nn.Module)
_KEPT_KINDS = 1_000
_torch_adapter: Adapter | None = None
_too_old = False


def load_torch_adapter() -> Adapter:
    """Return the adapter for the PyTorch that the program has imported; raise ImportError if that is too old."""
    global _torch_adapter
    if _torch_adapter is None:
        from .torch import TorchAdapter  # PyTorch is an optional dependency

        _torch_adapter = TorchAdapter()
    return _torch_adapter


def torch_adapter() -> Adapter | None:
    """Return the adapter for PyTorch, None if the program has not imported it, or one that is too old."""
    global _too_old
    if _torch_adapter is None and not _too_old and _torch_loaded():
        try:
            load_torch_adapter()
        except ImportError:
            _too_old = True
    return _torch_adapter


def _torch_loaded() -> bool:
    module = sys.modules.get("torch")
    return module is not None and hasattr(module, "autograd") and hasattr(module, "nn")


def adapter_for(value: Any = None) -> Adapter:
    """Return the adapter for the framework of a tensor, a module or a node.

    PyTorch is not imported for it: whoever has one of its tensors has done so.

    Parameters
    ----------
    value : object, optional
        None gives an adapter for programs of either framework.

    Raises
    ------
    TypeError
        If it is of neither.
    ImportError
        If it is of a PyTorch that is too old.

    Examples
    --------
    >>> import gradscope as gs
    >>> adapter_for(gs.ones(2)).name, adapter_for().name
    ('gradscope', 'any')
    """
    if value is None:
        return AnyAdapter()
    if isinstance(value, _NATIVE):
        return NativeAdapter()
    if _is_torch(value):
        return load_torch_adapter()
    raise TypeError(
        f"a tensor, module or node of gradscope or PyTorch is wanted, got {type(value).__name__}\n"
        "Pass the tensor itself: the loss, or loss.grad_fn."
    )


def _is_torch(value: Any) -> bool:
    if not _torch_loaded():
        return False
    torch = sys.modules["torch"]
    graph = torch.autograd.graph
    return isinstance(value, (torch.Tensor, torch.nn.Module, graph.Node, graph.GradientEdge))


class AnyAdapter:
    """Answers for gradscope's own runtime, and for PyTorch as soon as the program has imported it.

    Examples
    --------
    >>> import gradscope as gs
    >>> adapter = AnyAdapter()
    >>> node, _ = adapter.root(gs.ones(2, requires_grad=True) * 3)
    >>> adapter.node_name(node)
    'MulBackward0'
    """

    name = "any"

    def __init__(self) -> None:
        self._native = NativeAdapter()
        self._by_kind: dict[type, Adapter] = {}
        self._without_leaf: set[type] = set()  # all classes of nodes but AccumulateGrad

    def _of(self, value: Any) -> Adapter:
        adapter = self._by_kind.get(type(value))
        return self._find(value) if adapter is None else adapter

    def _find(self, value: Any) -> Adapter:
        adapter = self._native if isinstance(value, _NATIVE) else torch_adapter()
        if adapter is None:
            return self._native
        if len(self._by_kind) >= _KEPT_KINDS:
            self._by_kind.clear()
        self._by_kind[type(value)] = adapter
        return adapter

    def of(self, value: Any) -> Adapter:
        """Return the adapter that answers for a tensor, node, module or task: asked itself, it answers sooner."""
        return self._of(value)

    # --- tensors and nodes ---

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` is a tensor of either."""
        return self._of(value).is_tensor(value)

    def root(self, tensor: Any) -> tuple[Any, int] | None:
        """Return the node that a gradient of `tensor` enters, and at which input."""
        return self._of(tensor).root(tensor)

    def is_leaf(self, tensor: Any) -> bool | None:
        """Whether no operator has computed a tensor; None where a view's history can no longer be told."""
        return self._of(tensor).is_leaf(tensor)

    def key(self, node: Any) -> int:
        """Return the stable identity of a node; the frameworks share one count."""
        return self._of(node).key(node)

    def node_name(self, node: Any) -> str:
        """Return the node's name."""
        return self._of(node).node_name(node)

    def sequence_nr(self, node: Any) -> int:
        """Return the sequence number."""
        return self._of(node).sequence_nr(node)

    def edges(self, node: Any) -> Sequence[tuple[Any, int]]:
        """Return (node or None, input number) for each produced gradient."""
        return self._of(node).edges(node)

    def outputs(self, node: Any) -> tuple[TensorSpec, ...]:
        """Return what the forward operator returned."""
        return self._of(node).outputs(node)

    def saved(self, node: Any) -> Sequence[SavedView]:
        """Return the saved tensors."""
        return self._of(node).saved(node)

    def held(self, node: Any) -> Callable[[], dict[str, Any]]:
        """Return a function that lists a node's saved tensors by name, also after the node has released them."""
        return self._of(node).held(node)

    def alias(self, node: Any, saved: SavedView) -> Any:
        """Return a tensor in the memory of one that `node` has saved, without history."""
        return self._of(node).alias(node, saved)

    def exchange(self, node: Any, saved: SavedView, values: Any, version: int) -> Callable[[], None]:
        """Put other values and another version into the memory of a saved tensor; return what undoes that."""
        return self._of(node).exchange(node, saved, values, version)

    def saved_bytes(self, nodes: Sequence[Any]) -> int | None:
        """Return the size of the memory that nodes have saved, each piece once; None where that takes long to tell."""
        return self._of(nodes[0]).saved_bytes(nodes) if nodes else 0

    def variable(self, node: Any) -> Any:
        """Return the leaf of an AccumulateGrad."""
        kind = type(node)
        if kind in self._without_leaf:
            return None
        leaf = self._of(node).variable(node)
        if leaf is None and len(self._without_leaf) < _KEPT_KINDS:
            self._without_leaf.add(kind)
        return leaf

    def location(self, node: Any) -> Location | None:
        """Return the user's line that made the node."""
        return self._of(node).location(node)

    def blind(self, node: Any) -> str:
        """Return why an instrument cannot look inside a node."""
        return self._of(node).blind(node)

    def inside(self, node: Any) -> tuple[InnerOperator, ...]:
        """Return what is inside of a compiled node."""
        return self._of(node).inside(node)

    def inner_calls(self, node: Any) -> InnerCalls | None:
        """Return how the calls inside of a compiled node follow each other."""
        return self._of(node).inner_calls(node)

    def withheld(self, node: Any) -> tuple[int, ...]:
        """Return which of its gradients a compiled node never produces."""
        return self._of(node).withheld(node)

    def notes(self, node: Any) -> dict[Any, Any]:
        """Return the node's metadata."""
        notes: dict[Any, Any] = node.metadata
        return notes

    def notes_below(self, node: Any) -> Sequence[dict[Any, Any]]:
        """Return the metadata of the nodes that a node's edges lead to."""
        return self._of(node).notes_below(node)

    def memory_key(self, tensor: Any) -> Hashable:
        """Return what tensors that share memory share."""
        adapter = self._of(tensor)
        return adapter.name, adapter.memory_key(tensor)

    def address(self, tensor: Any) -> Hashable:
        """Return where the memory of a tensor begins: what arrays that share it share too."""
        return self._of(tensor).address(tensor)

    def own_address(self, tensor: Any) -> Hashable | None:
        """Return the same of a tensor that is no view, None of a view."""
        return self._of(tensor).own_address(tensor)

    def memory(self, tensor: Any) -> tuple[Hashable, Any]:
        """Return what tensors that share memory share, and what lives as long as it; None if it has none of its own."""
        adapter = self._of(tensor)
        key, owner = adapter.memory(tensor)
        return (adapter.name, key), owner

    def memories(self, tensors: Sequence[Any]) -> Sequence[tuple[Hashable, Any]]:
        """Return the same of several tensors of one framework."""
        if not tensors:
            return ()
        adapter = self._of(tensors[0])
        name = adapter.name
        return [((name, key), owner) for key, owner in adapter.memories(tensors)]

    def region(self, tensor: Any) -> Region | None:
        """Return which bytes a tensor looks at; None if it has no memory of its own."""
        return self._of(tensor).region(tensor)

    def is_grad_enabled(self) -> bool:
        """Whether operators are recorded on this thread: PyTorch's, where it is loaded."""
        return (torch_adapter() or self._native).is_grad_enabled()

    def version(self, tensor: Any) -> int | None:
        """Return the version of a tensor's memory."""
        return self._of(tensor).version(tensor)

    def bits(self, tensor: Any) -> Any:
        """Return the bits of a tensor as they lie in memory, evenly spaced ones of a large one; None if it has none."""
        return self._of(tensor).bits(tensor)

    def fingerprints(self, node: Any) -> tuple[Any, ...]:
        """Return version and checksum of the values of each saved tensor in turn; both None of one that is not read."""
        return self._of(node).fingerprints(node)

    def copy(self, tensor: Any) -> Any:
        """Return a copy of a tensor, without history."""
        return self._of(tensor).copy(tensor)

    def leaf_grad(self, leaf: Any) -> Any:
        """Return the gradient accumulated in a leaf, or None."""
        return self._of(leaf).leaf_grad(leaf)

    def set_leaf_grad(self, leaf: Any, grad: Any) -> None:
        """Set it."""
        self._of(leaf).set_leaf_grad(leaf, grad)

    # --- running ---

    def hooks(self, node: Any) -> Sequence[NodeHook]:
        """Return the hooks that a backward runs at a node, as far as they are known."""
        return self._of(node).hooks(node)

    def run_node(self, node: Any, grad_outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run one node alone, without hooks."""
        return self._of(node).run_node(node, grad_outputs)

    def gradients(self, outputs: Sequence[Any], grads: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return the gradients of `leaves` when `grads` enter at `outputs`."""
        return self._of(outputs[0]).gradients(outputs, grads, leaves)

    def keep_saved(self, task: Any) -> Callable[[], None] | None:
        """Make a backward keep its saved tensors; return what releases them."""
        return self._of(task).keep_saved(task)

    def call_in(self, frames: Sequence[FrameType]) -> Any:
        """Return the innermost node of gradscope's own runtime that some of `frames` are running, or None."""
        return self._native.call_in(frames)

    def failed_call(self, error: BaseException, frames: Sequence[FrameType]) -> FailedCall | None:
        """Return the node of either at which a backward has failed; None if `error` left no backward."""
        other = torch_adapter()
        found = self._native.failed_call(error, frames)
        return found if found is not None or other is None else other.failed_call(error, frames)

    def task_roots(self, task: Any) -> Sequence[tuple[Any, int]]:
        """Return where the gradients of a backward enter."""
        roots: Sequence[tuple[Any, int]] = task.roots
        return roots

    def task_runs(self, task: Any, node: Any) -> bool:
        """Whether a backward will run `node`."""
        runs: bool = task.runs(node)
        return runs

    def task_is_at(self, task: Any, node: Any) -> bool:
        """Whether a backward still runs, on this thread, the node that it was told last to have entered."""
        return self._of(task).task_is_at(task, node)

    def backward(self, loss: Any, **options: Any) -> Callable[[], Any]:
        """Return the call that runs the backward of `loss`."""
        return self._of(loss).backward(loss, **options)

    # --- values ---

    def to_host(self, tensor: Any) -> numpy.ndarray:
        """Return the values as a NumPy array."""
        return self._of(tensor).to_host(tensor)

    def task_nodes(self, task: Any) -> Sequence[Any]:
        """Return the nodes that a backward may run."""
        nodes: Sequence[Any] = task.nodes
        return nodes

    def task_reach(self, task: Any) -> tuple[Sequence[Any], AbstractSet[str]]:
        """Return the leaves that a backward may reach, and the names of the nodes that it may run."""
        return self._of(task).task_reach(task)

    def facts(self, nodes: Sequence[Any]) -> NodeFacts:
        """Return at once what tells nodes from others; they are of one framework."""
        return (self._of(nodes[0]) if nodes else self._native).facts(nodes)

    def plan(self, task: Any) -> Plan:
        """Return the nodes that a backward may run, and what tells them from others."""
        return self._of(task).plan(task)

    def carried(self, call: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return what a node was given and has made as it is quickest to be had."""
        return self._of(call.node).carried(call)

    def hosts(self, call: Any, values: bool = True) -> tuple[Sequence[Any], int]:
        """Return the values of the gradients that a node was given and has made, and how many it was given."""
        return self._of(call.node).hosts(call, values)

    def moments(self, gradients: Sequence[Any]) -> Sequence[Moments | None]:
        """Return the statistics of gradients on a device, None of others."""
        first = next((gradient for gradient in gradients if gradient is not None), None)
        return [None] * len(gradients) if first is None else self._of(first).moments(gradients)

    def are_small_and_finite(self, carried: Sequence[Any]) -> bool:
        """Whether tensors, or what a node carries, are few numbers each, none of them NaN or infinite."""
        for each in carried:
            if each is not None:
                return self._of(each).are_small_and_finite(carried)
        return True

    def passing_norms(self) -> Callable[[Sequence[Any], Sequence[Any]], tuple[float | None, bool]]:
        """Raise: a backward is of one framework, whose adapter is asked."""
        raise TypeError("the nodes of a backward are looked at by the adapter of its framework")

    def entering(self, task: Any) -> Sequence[Any]:
        """Return the gradients that enter a backward which is about to run its first node."""
        return self._of(task).entering(task)

    def small(self, call: Any, most: int, taken: list[Any]) -> tuple[int, int] | None:
        """Take the gradients that a node was given and has made as bytes, where all are on the host and small."""
        return self._of(call.node).small(call, most, taken)

    def spec(self, tensor: Any) -> TensorSpec:
        """Return shape, dtype and device of a tensor."""
        return self._of(tensor).spec(tensor)

    def tensor_like(self, value: Any, spec: TensorSpec) -> Any:
        """Return a new tensor of shape, dtype and device `spec`, of the framework that the spec is from."""
        adapter = self._native if type(spec) is TensorSpec else load_torch_adapter()
        owner = self._of(value) if self.is_tensor(value) else adapter
        return adapter.tensor_like(value if owner is adapter else owner.to_host(value), spec)

    def quiet(self) -> AbstractContextManager[Any]:
        """Return a context in which operators of neither are recorded."""
        other = torch_adapter()
        return self._native.quiet() if other is None else _BothContexts(self._native.quiet(), other.quiet())

    def fork_random(self) -> AbstractContextManager[Any]:
        """Return a context after which the generators of both go on as if nothing had been drawn in it."""
        other = torch_adapter()
        mine = self._native.fork_random()
        return mine if other is None else _BothContexts(mine, other.fork_random())

    # --- modules ---

    def is_parameter(self, tensor: Any) -> bool:
        """Whether a tensor is a Parameter of either."""
        return self._of(tensor).is_parameter(tensor)

    def tensor_classes(self) -> tuple[type, ...]:
        """Return the classes of all tensors of either."""
        other = torch_adapter()
        return (*self._native.tensor_classes(), *(() if other is None else other.tensor_classes()))

    def module_classes(self) -> tuple[type, ...]:
        """Return the classes of all modules of either."""
        other = torch_adapter()
        return (*self._native.module_classes(), *(() if other is None else other.module_classes()))

    def is_called_traced_graph(self, module: Any) -> bool:
        """Whether a module about to run is a traced graph that its framework calls."""
        return self._of(module).is_called_traced_graph(module)

    def named_parameters(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return the parameters of a module with their paths."""
        return list(module.named_parameters())

    def named_modules(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return a module and those inside it with their paths."""
        return list(module.named_modules())

    def batched(self, tensor: Any) -> tuple[int, ...]:
        """Return the sizes by which a transform has batched a tensor."""
        return self._of(tensor).batched(tensor)

    def loss_scales(self) -> Sequence[tuple[float, float]]:
        """Return those of the GradScalers of either framework."""
        other = torch_adapter()
        return (*self._native.loss_scales(), *(() if other is None else other.loss_scales()))

    # --- ranks ---

    def checksums(self, tensors: Sequence[Any], *, norms: bool = True) -> tuple[Sequence[int], Sequence[float]]:
        """Return the checksum of the bits of each tensor, all of one framework, and its 2-norm."""
        first = next((tensor for tensor in tensors if tensor is not None), None)
        return self._of(first).checksums(tensors, norms=norms)

    def part_of(self, tensor: Any) -> str:
        """Return which part of the whole a tensor of this rank is; an empty string where it is all of it."""
        return self._of(tensor).part_of(tensor)

    def group_of(self, tensor: Any) -> str:
        """Return the ranks over which a tensor is spread; an empty string where all are, or none."""
        return self._of(tensor).group_of(tensor)

    def holders_of(self, tensor: Any) -> str:
        """Return the ranks that hold the same part of a tensor; an empty string where these are all, or one."""
        return self._of(tensor).holders_of(tensor)

    def parallel_modules(self, modules: Sequence[Any]) -> Sequence[Any]:
        """Return those of some modules that reduce the gradients of what they wrap over all ranks."""
        other = torch_adapter()
        return () if other is None else other.parallel_modules(modules)

    def data_parallel(self, module: Any) -> DataParallel:
        """Return what such a module keeps equal on all ranks."""
        return self._of(module).data_parallel(module)

    def stand_ins(self, module: Any) -> Sequence[tuple[Any, Any]]:
        """Return sharded parameters of a module, each with the whole one that is put into its place while it runs."""
        return self._of(module).stand_ins(module)

    def rank_store(self) -> Any:
        """Return the store of PyTorch's default process group; None where there is none."""
        other = torch_adapter()
        return None if other is None else other.rank_store()

    def generator_facts(self) -> dict[str, int]:
        """Return the seed of PyTorch's generator, where it is loaded, or else of gradscope's."""
        return (torch_adapter() or self._native).generator_facts()

    # --- listening ---

    def observe(
        self,
        observer: Observer,
        *,
        forward: bool,
        backward: bool,
        operators: bool = False,
        writes: bool = False,
        own_writes: bool = False,
    ) -> AnyObservation:
        """Tell `observer` what happens in gradscope, and in PyTorch from the moment it has been imported."""
        wanted = {
            "forward": forward,
            "backward": backward,
            "operators": operators,
            "writes": writes,
            "own_writes": own_writes,
        }
        return AnyObservation(self._native, observer, wanted)


class _BothContexts:
    """Two contexts as one."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: AbstractContextManager[Any], second: AbstractContextManager[Any]) -> None:
        self._first, self._second = first, second

    def __enter__(self) -> None:
        self._first.__enter__()
        self._second.__enter__()

    def __exit__(self, *exc_info: Any) -> None:
        self._second.__exit__(*exc_info)
        self._first.__exit__(*exc_info)


def warn_too_old(error: ImportError) -> None:
    """Warn of a PyTorch that is too old at the user's line, which imports it: how far up that is differs."""
    text = f"{error}\nUntil then gradscope sees nothing of it."
    frame = call_sites.user_site(2).user_frame()
    if frame is None:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    else:
        warnings.warn_explicit(text, RuntimeWarning, frame.filename, frame.lineno)


class AnyObservation:
    """An observer's places in both frameworks."""

    def __init__(self, native: NativeAdapter, observer: Observer, wanted: dict[str, bool]) -> None:
        self._observer = observer
        self._wanted = wanted
        self._lock = threading.Lock()
        self._passing = self._resting = False
        self._open: list[Observation] | None = [native.observe(observer, **wanted)]
        self._give_up = when_imported("torch", self._torch_imported)

    def _torch_imported(self) -> None:
        try:
            self._observe_by(load_torch_adapter())
        except ImportError as error:
            warn_too_old(error)
        except Exception as error:
            adapter_failed([self._observer], error)

    def _observe_by(self, adapter: Adapter) -> None:
        with self._lock:
            if self._open is not None:
                place = adapter.observe(self._observer, **self._wanted)
                self._open.append(place)
                place.pass_by(self._passing)
                if self._resting:
                    place.rest(True)

    def pass_by(self, on: bool) -> None:
        """Tell of nodes in passing from now on, or as usual again."""
        with self._lock:
            self._passing = on
            for place in self._open or ():
                place.pass_by(on)

    def rest(self, on: bool) -> None:
        """Tell of nothing but that a backward begins, or of all again."""
        with self._lock:
            self._resting = on
            for place in self._open or ():
                place.rest(on)

    def close(self) -> None:
        """Stop observing; doing so twice is harmless."""
        self._give_up()
        with self._lock:
            places, self._open = self._open, None
        for place in places or ():
            with AdapterGuard([self._observer]):  # one that fails does not keep the other
                place.close()

    def __enter__(self) -> AnyObservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
