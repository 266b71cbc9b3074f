"""The adapter for gradscope's own runtime: the observer's methods are its events."""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import os
import re
import weakref
import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from operator import attrgetter
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import numpy

import gradscope as gs

from ...program_files import is_installed_file
from ...runtime import call_sites, events, state
from ...runtime.engine.graph_task import GraphTask
from ...runtime.graph.accumulate_grad import AccumulateGrad
from ...runtime.graph.edges import ends_of
from ...runtime.graph.graph_node import Node
from ...runtime.graph.saved_tensors import RELEASED, SavedResult
from ...runtime.memory import bfloat16, device
from ...runtime.memory.bfloat16 import plain, widened
from ...runtime.memory.dtype import BY_NUMPY
from ...runtime.memory.storage import memory_of, without_repeats
from ...runtime.tensor.views import edge_of
from ..records.checksums import checksum
from ..records.moments import Moments
from ..records.object_search import living
from ..records.records import InnerOperator, Location, TensorSpec, dtype_name
from ..records.tensor_statistics import combined_norm, is_finite, makes_bad, norm_of, quick_norm
from ..source.frame_variables import variables_of
from .gradient_hooks import NodeHook, hook_name
from .guarded_observer import AdapterGuard
from .memory_fingerprint import DEVICE_ELEMENTS, UNREAD, WHOLE_BYTES, Region, bits_of, fingerprint_of
from .protocol import (
    CHECKPOINTS,
    Converted,
    DataParallel,
    FailedCall,
    InnerCalls,
    NodeFacts,
    Observer,
    Plan,
    SavedView,
    hears,
    hears_entries,
    hears_operator,
    key_in,
    refuse_checkpoint,
)
from .recent_norms import RecentNorms

__all__ = ["NativeAdapter", "location_of"]

_NOWHERE = object()


def location_of(site: call_sites.CallSite | None) -> Location | None:
    """Return the user's line of a call site.

    Returns
    -------
    Location or None
        None where nothing was recorded, or no frame of it is the user's.
    """
    if site is None:
        return None
    # One line makes many nodes, and finding it is a walk along the stack.
    told = site.told
    if told is None:
        frame = site.user_frame()
        told = _NOWHERE
        if frame is not None:
            calls = _calls(site) if is_installed_file(frame.filename) else ()
            told = Location(frame.filename, frame.lineno, frame.function, site.source_line, calls)
        site.told = told
    return None if told is _NOWHERE else told


def _calls(site: call_sites.CallSite) -> tuple[Location, ...]:
    """Return the calls that lead to a line of an installed package, from the line that called to the program's own."""
    found = []
    for frame in site.user_frames()[1:]:
        text = linecache.getline(frame.filename, frame.lineno).strip()
        found.append(Location(frame.filename, frame.lineno, frame.function, text))
        if not is_installed_file(frame.filename):
            return tuple(found)
    return ()


_PACKAGE = os.path.dirname(os.path.abspath(gs.__file__))
_ARRAY = numpy.ndarray
_READ_AS_NUMBERS = 16  # elements, which Python reads sooner than NumPy begins
_hypot, _INF = math.hypot, math.inf
_new = object.__new__
_FEW = 256  # elements, whose norm is taken as quickly as it is remembered
_NOTHING = (None, None, None)
_RUNNING_NODES = ("<gradscope operator ", *(os.path.join(_PACKAGE, room, "") for room in ("runtime", "autograd")))


# In training, batch_norm saves its statistics and writes them; its derivative has copies of its own.
_UNREAD = ("running_mean", "running_var", "dropout_state")
_TENSORS = frozenset({gs.Tensor, gs.nn.Parameter})
_PLAIN = frozenset({type(None), bool, int, float, complex, str, tuple})


_known_slots: dict[type[Node], tuple[str, ...]] = {}
_known_read_slots: dict[type[Node], tuple[str, ...]] = {}


def _slots(kind: type[Node]) -> tuple[str, ...] | None:
    """Return the slots in which nodes of a class keep what they save; None where each node is to be asked."""
    known = _known_slots.get(kind)
    if known is not None:
        return known
    names = kind.saved_names
    if kind.saved_tensors_info is not Node.saved_tensors_info or not isinstance(names, tuple):
        return None
    found = tuple([f"s_{name}" for name in names])
    if not _is_custom(kind):
        _known_slots[kind] = found
    return found


def _read_slots(kind: type[Node]) -> tuple[str, ...] | None:
    """Return those slots, None too where what they keep is not all read in backward."""
    known = _known_read_slots.get(kind)
    if known is not None:
        return known
    found = None if set(kind.saved_names) & set(_UNREAD) else _slots(kind)
    if found is not None and not _is_custom(kind):
        _known_read_slots[kind] = found
    return found


def _is_custom(kind: type[Node]) -> bool:
    """Whether a class is of a custom Function's nodes: a program may make them in a loop, and none is to be kept."""
    return hasattr(kind, "_forward_cls")


def _by_name(saved: Iterable[SavedView]) -> dict[str, Any]:
    return {view.name: view.data for view in saved if view.current_version is not None}


def _held_in(kind: type[Node], slots: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return the saved tensors, by name, of a node that had `values` in its slots."""
    node = Node.__new__(kind)
    for slot, value in zip(slots, values, strict=True):
        setattr(node, slot, value)
    return _by_name(node.saved_tensors_info())


def _runs_nodes(frame: FrameType) -> bool:
    """Whether a function that the engine's loop has called is one that runs a node."""
    return frame.f_code.co_filename.startswith(_RUNNING_NODES)


class NativeAdapter:
    """Answers for :mod:`gradscope.runtime`.

    Examples
    --------
    >>> import gradscope as gs
    >>> adapter = NativeAdapter()
    >>> y = gs.ones(2, requires_grad=True) * 3
    >>> node, nr = adapter.root(y)
    >>> adapter.node_name(node), nr, adapter.outputs(node)[0].shape
    ('MulBackward0', 0, (2,))
    """

    name = "gradscope"

    def of(self, value: Any) -> NativeAdapter:
        """Return itself."""
        return self

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` is a gradscope tensor."""
        return isinstance(value, gs.Tensor)

    def root(self, tensor: Any) -> tuple[Any, int] | None:
        """Return the node that a gradient of `tensor` enters, and at which input."""
        # A view that a custom Function's forward has made of a leaf requires grad, and leads nowhere.
        edge = edge_of(tensor) if tensor.requires_grad else None
        return None if edge is None else ends_of(edge)

    def is_leaf(self, tensor: Any) -> bool | None:
        """Whether no operator has computed a tensor; None where a view's history can no longer be told."""
        return None if tensor._view is not None and _history_is_lost(tensor) else tensor.is_leaf

    def key(self, node: Node) -> int:
        """Return the number that this process gave the node when it was first asked about."""
        return key_in(node.metadata)

    def node_name(self, node: Node) -> str:
        """Return the node's name."""
        return node.name()

    def sequence_nr(self, node: Node) -> int:
        """Return the sequence number."""
        return node._sequence_nr()

    def edges(self, node: Node) -> Sequence[tuple[Any, int]]:
        """Return (node or None, input number) for each produced gradient."""
        return node.next_functions

    def outputs(self, node: Node) -> tuple[TensorSpec, ...]:
        """Return what the forward operator returned."""
        kind = getattr(node, "kind", _ARRAY) if device.elsewhere or bfloat16.known else _ARRAY
        if not node.multi:
            return _one_output(node.shape, node.dtype, kind)
        return tuple([_one_output(shape, dtype, kind)[0] for shape, dtype in node.output_specs()])

    def saved(self, node: Node) -> Sequence[SavedView]:
        """Return the saved tensors."""
        return node.saved_tensors_info()

    def held(self, node: Node) -> Callable[[], dict[str, Any]]:
        """Return a function that lists a node's saved tensors by name, also after the node has released them."""
        slots = _slots(type(node))
        if slots is None:
            saved = _by_name(node.saved_tensors_info())
            return lambda: saved
        return functools.partial(_held_in, type(node), slots, [getattr(node, slot) for slot in slots])

    def alias(self, node: Node, saved: Any) -> Any:
        """Return a tensor in the memory of one that `node` has saved, without history."""
        return gs.Tensor._wrap(without_repeats(saved.memory))

    def exchange(self, node: Node, saved: Any, values: Any, version: int) -> Callable[[], None]:
        """Put other values and another version into the memory of a saved tensor; return what undoes that."""
        memory, counter = without_repeats(saved.memory), saved.counter

        def put(array: Any, version: int) -> None:
            if array is not None:
                memory[...] = array
            counter.version = version

        undo = functools.partial(put, None if values is None else memory.copy(), counter.version)
        put(None if values is None else values._memory, version)
        return undo

    def saved_bytes(self, nodes: Iterable[Node]) -> int | None:
        """Return the size of the memory that nodes have saved; None where another program's memory is among it."""
        sizes: dict[int, int] = {}
        known_slots = _known_slots
        for node in nodes:
            slots = known_slots.get(type(node))
            if slots is None:
                slots = _slots(type(node))
            if slots is None:
                return None
            for slot in slots:
                value = getattr(node, slot)
                kind = type(value)
                if kind in _PLAIN or kind is _ARRAY or value is RELEASED:  # these have no version
                    continue
                array = value._memory if kind in _TENSORS else value.array if kind is SavedResult else None
                owner = memory_of(array) if type(array) is _ARRAY else None
                if type(owner) is not _ARRAY or owner.base is not None:
                    return None
                sizes[id(owner)] = owner.nbytes
        return sum(sizes.values())

    def variable(self, node: Node) -> Any:
        """Return the leaf of an AccumulateGrad."""
        return node.variable if type(node) is AccumulateGrad else None

    def location(self, node: Node) -> Location | None:
        """Return the user's line that made the node."""
        return location_of(node.call_site)

    def blind(self, node: Node) -> str:
        """Return why an instrument cannot look inside a node."""
        return CHECKPOINTS.get(node.name(), "")

    def inside(self, node: Node) -> tuple[InnerOperator, ...]:
        """Return nothing: no node is compiled."""
        return ()

    def inner_calls(self, node: Node) -> InnerCalls | None:
        """Return nothing: no node is compiled."""
        return None

    def withheld(self, node: Node) -> tuple[int, ...]:
        """Return nothing: no node is compiled."""
        return ()

    def notes(self, node: Node) -> dict[Any, Any]:
        """Return the node's metadata."""
        try:
            return node._notes or node.metadata
        except AttributeError:
            return node.metadata

    def notes_below(self, node: Node) -> list[dict[Any, Any]]:
        """Return the metadata of the nodes that a node's edges lead to."""
        found = []
        for edge in node.edges:
            if edge is not None:
                child: Node = edge[0] if type(edge) is tuple else edge  # type: ignore[assignment]
                try:
                    notes = child._notes
                except AttributeError:
                    notes = None
                found.append(child.metadata if notes is None else notes)
        return found

    def fingerprints(self, node: Node) -> tuple[Any, ...]:
        """Return version and checksum of each saved tensor that the node reads, in turn."""
        slots = _known_read_slots.get(type(node))
        if slots is None:
            slots = _read_slots(type(node))
        if slots is None:
            return self._fingerprints_by_view(node)
        found: list[int] = []
        for slot in slots:
            value = getattr(node, slot)
            kind = type(value)
            if kind in _PLAIN:
                continue
            if kind in _TENSORS:
                counter, array = value._vc, value._memory
            elif kind is SavedResult:
                counter, array = value.counter, value.array
            else:
                return self._fingerprints_by_view(node)
            if type(array) is not _ARRAY or array.nbytes > WHOLE_BYTES:
                return self._fingerprints_by_view(node)
            found.append(0 if counter is None else counter.version)
            try:
                found.append(zlib.crc32(array))  # type: ignore[arg-type]
            except ValueError:  # the memory is not contiguous
                found.append(zlib.crc32(bits_of(array)))
        return tuple(found)

    def _fingerprints_by_view(self, node: Node) -> tuple[Any, ...]:
        prints = [UNREAD if v.name in _UNREAD else fingerprint_of(self, v) for v in self.saved(node)]
        return tuple(itertools.chain.from_iterable(prints))

    def memory_key(self, tensor: Any) -> Hashable:
        """Return the address of the memory that a tensor looks at."""
        array = tensor._memory
        return device.address(array if type(array) is _ARRAY and array.base is None else memory_of(array))

    def address(self, tensor: Any) -> Hashable:
        """Return where the memory of a tensor begins, for arrays too."""
        array = tensor._memory
        if type(array) is not _ARRAY or array.base is not None:
            array = memory_of(array)
        return device.address(array) or ("empty", id(tensor))

    def own_address(self, tensor: Any) -> Hashable | None:
        """Return the same of a tensor that is no view, None of a view."""
        return self.address(tensor) if tensor._view is None else None

    def memory(self, tensor: Any) -> tuple[Hashable, Any]:
        """Return the address of the memory that a tensor looks at, and the array that owns it."""
        owner = memory_of(tensor._memory)
        return device.address(owner), owner

    def memories(self, tensors: Sequence[Any]) -> Sequence[tuple[Hashable, Any]]:
        """Return the same of several tensors."""
        return [self.memory(tensor) for tensor in tensors]

    def region(self, tensor: Any) -> Region | None:
        """Return which bytes a tensor looks at."""
        array = tensor._memory
        return Region(device.address(array), array.shape, array.strides, array.itemsize)

    def is_grad_enabled(self) -> bool:
        """Whether operators are recorded on this thread."""
        return gs.is_grad_enabled()

    def version(self, tensor: Any) -> int | None:
        """Return the version of a tensor's memory."""
        return None if tensor.is_inference() else tensor._version

    def bits(self, tensor: Any) -> Any:
        """Return the bits of a tensor as they lie in memory, evenly spaced ones of a large one."""
        array = plain(tensor._memory)
        if type(array) is numpy.ndarray:
            return bits_of(array)
        return device.to_host(bits_of(array, whole=DEVICE_ELEMENTS * array.itemsize, sample=DEVICE_ELEMENTS))

    def copy(self, tensor: Any) -> Any:
        """Return a copy of a tensor, without history."""
        return tensor.detach().clone()

    def leaf_grad(self, leaf: Any) -> Any:
        """Return the gradient accumulated in a leaf, or None."""
        return leaf.grad if leaf.is_leaf or leaf.retains_grad else None

    def set_leaf_grad(self, leaf: Any, grad: Any) -> None:
        """Set it."""
        leaf.grad = grad

    def hooks(self, node: Node) -> Sequence[NodeHook]:
        """Return the hooks that a backward runs at a node."""
        extra, leaf = node.extra, node.leaf_meta if type(node) is AccumulateGrad else None
        before = [] if leaf is None else [leaf.hooks]
        before += [] if extra is None else [*(extra.tensor_hooks or {}).values(), extra.prehooks]
        after = [] if leaf is None else [leaf.post_accumulate]
        after += [] if extra is None else [extra.posthooks]
        return [
            NodeHook(hook_name(hook), tables is before)
            for tables in (before, after)
            for table in tables
            for hook in (table or {}).values()
        ]

    def run_node(self, node: Node, grad_outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run one node alone, without hooks."""
        refuse_checkpoint(node.name())
        return node(*grad_outputs)

    def gradients(self, outputs: Sequence[Any], grads: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return the gradients of `leaves` when `grads` enter at `outputs`."""
        return list(gs.autograd.grad(outputs, leaves, list(grads), retain_graph=True, allow_unused=True))

    def keep_saved(self, task: Any) -> Callable[[], None] | None:
        """Make a backward keep its saved tensors; return what releases them."""
        if task.keep_graph:
            return None
        task.keep_graph, task.kept = True, []
        return task.release_kept

    def task_roots(self, task: Any) -> Sequence[tuple[Any, int]]:
        """Return where the gradients of a backward enter."""
        return task.roots

    def task_runs(self, task: Any, node: Node) -> bool:
        """Whether a backward will run `node`."""
        return task.runs(node)

    def call_in(self, frames: Iterable[FrameType]) -> NativeCall | None:
        """Return the innermost node that some of `frames` (innermost first) are running, None if none are."""
        called: FrameType | None = None
        for frame in frames:
            # A signal's handler may raise between two nodes.
            if frame.f_code is GraphTask._advance.__code__ and called is not None and _runs_nodes(called):
                names = variables_of(frame)
                task, node, grad = names["self"], names["node"], names["grad"]
                return NativeCall(task, node, task._as_tensors(grad if node.multi else [grad]))
            called = frame
        return None

    def failed_call(self, error: BaseException, frames: Sequence[FrameType]) -> FailedCall | None:
        """Return the node that was running when `error` was raised."""
        call = self.call_in(frames)
        return None if call is None else FailedCall(call.task, call.node, call.grad_outputs)

    def task_nodes(self, task: GraphTask) -> Sequence[Node]:
        """Return the nodes that a backward may run."""
        return task.nodes

    def task_reach(self, task: GraphTask) -> tuple[Sequence[Any], AbstractSet[str]]:
        """Return the leaves that a backward may reach, and the names of the nodes that it may run."""
        nodes = task.nodes
        return [node.variable for node in nodes if type(node) is AccumulateGrad], {node.node_name for node in nodes}

    def facts(self, nodes: Sequence[Node]) -> NodeFacts:
        """Return at once what tells nodes from others."""
        return NodeFacts(
            list(map(attrgetter("node_name"), nodes)),
            _slots_of(nodes, "_site"),
            [node.variable if type(node) is AccumulateGrad else None for node in nodes],
            _slots_of(nodes, "_notes"),
        )

    def plan(self, task: GraphTask) -> Plan:
        """Return the nodes that a backward may run, and what tells them from others."""
        nodes = task.nodes
        edges = list(map(attrgetter("edges"), nodes))
        flat = list(itertools.chain.from_iterable(edges))
        several = tuple in map(type, flat)  # such edges lead to outputs of nodes that have more than one
        return Plan(
            nodes,
            self.facts(nodes),
            list(map(attrgetter("seq"), nodes)),
            list(map(len, edges)),
            [edge[0] if type(edge) is tuple else edge for edge in flat] if several else flat,
            [edge[1] if type(edge) is tuple else 0 for edge in flat] if several else [0] * len(flat),
        )

    def to_host(self, tensor: Any) -> numpy.ndarray:
        """Return the values as a NumPy array; bfloat16 widens to float32."""
        array = tensor._array
        return array if type(array) is numpy.ndarray else widened(device.to_host(array))

    def hosts(self, call: Any, values: bool = True) -> tuple[Sequence[Any], int]:
        """Return the values of the gradients that a node was given and has made, and how many it was given."""
        given, made = self.carried(call)
        found = [*given, *made]
        if device.elsewhere or bfloat16.known:
            found = [None if array is None else _converted(array) for array in found]
        return found, len(given)

    def moments(self, gradients: Sequence[Any]) -> Sequence[Moments | None]:
        """Return None of each gradient: CuPy's are looked at on the host."""
        return [None] * len(gradients)

    def are_small_and_finite(self, carried: Sequence[Any]) -> bool:
        """Whether tensors, or the arrays that a node carries, are few numbers each, none of them NaN or infinite."""
        for array in carried:
            if type(array) is not _ARRAY:
                if array is None:
                    continue
                array = getattr(array, "_array", None)
                if type(array) is not _ARRAY:
                    return False
            if array.size > _READ_AS_NUMBERS or array.dtype.kind != "f":
                return False
            values = array.tolist() if array.ndim == 1 else array.reshape(-1).tolist()
            if not _hypot(*values) < _INF:
                return False
        return True

    def passing_norms(self) -> Callable[[Sequence[Any], Sequence[Any]], tuple[float | None, bool]]:
        """Return a function of the arrays that a node was given and has made: see the protocol."""
        # In a chain what one node has made is what the next is given.
        last: Callable[[], Any] = _nothing
        last_norm = 0.0
        recent: RecentNorms[float] = RecentNorms()

        def norm_of_given(array: Any) -> float | None:
            if array is None:
                return None
            norm = recent.of(array) if array.size > _FEW else None
            return _norm(array) if norm is None else norm

        def look(given: Sequence[Any], made: Sequence[Any]) -> tuple[float | None, bool]:
            nonlocal last, last_norm
            if len(given) == 1:
                known = given[0] is not None and given[0] is last()
                norm = last_norm if known else norm_of_given(given[0])
            else:
                norm = combined_norm(map(norm_of_given, given))
            finite = True
            for array in made:
                if type(array) is _ARRAY:
                    last_norm = quick_norm(array)
                    last = weakref.ref(array)
                    if array.size > _FEW:
                        recent.note(array, last_norm)
                elif array is not None:
                    last_norm, last = _norm(array), _nothing  # a NumPy number takes no weak reference
                else:
                    continue
                if not last_norm < math.inf:
                    finite = False
            if not finite and not is_finite(norm):
                finite = not makes_bad(_hosts(given), _hosts(made))
            return norm, finite

        return look

    def entering(self, task: GraphTask) -> Sequence[Any]:
        """Return the gradients that enter a backward which is about to run its first node."""
        return task.waiting

    def carried(self, call: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the bare arrays that a node was given and has made."""
        if type(call) is events.NodeExited and call.arrays is not None:
            return call.arrays
        given, made = call.grad_outputs, call.grad_inputs
        return [None if g is None else g._array for g in given], [None if g is None else g._array for g in made]

    def small(self, call: Any, most: int, taken: list[Any]) -> tuple[int, int] | None:
        """Take the gradients that a node was given and has made as bytes, where all are on the host and small."""
        begin = len(taken)
        arrays = call.arrays if type(call) is events.NodeExited else None
        given, made = self.carried(call) if arrays is None else arrays
        for array in (*given, *made):
            if type(array) is _ARRAY and array.nbytes <= most:
                taken += array.tobytes(), array.dtype, array.shape
            elif array is None:
                taken += _NOTHING
            else:
                del taken[begin:]
                return None
        return len(given), len(made)

    def spec(self, tensor: Any) -> TensorSpec:
        """Return shape, dtype and device of a tensor."""
        return TensorSpec(tuple(tensor.shape), dtype_name(tensor.dtype), str(tensor.device))

    def tensor_like(self, value: Any, spec: TensorSpec) -> Any:
        """Return a new tensor of shape, dtype and device `spec`."""
        values = self.to_host(value) if self.is_tensor(value) else numpy.asarray(value)
        if values.dtype.kind not in "biufc":
            raise TypeError(f"a gradient is a number, an array or a tensor, got {type(value).__name__}")
        if values.dtype.kind == "c" and not spec.dtype.startswith("complex"):
            raise TypeError(f"a gradient of dtype {spec.dtype} cannot take complex values")
        try:
            filled = numpy.broadcast_to(values, spec.shape)
        except ValueError:
            raise ValueError(
                f"a gradient of shape {list(spec.shape)} cannot take a value of shape {list(values.shape)}"
            ) from None
        return gs.tensor(numpy.array(filled), dtype=getattr(gs, spec.dtype), device=spec.device)

    def quiet(self) -> AbstractContextManager[Any]:
        """Return a context in which operators are not recorded."""
        return gs.no_grad()

    def fork_random(self) -> AbstractContextManager[Any]:
        """Return a context after which the generators go on as if nothing had been drawn in it."""
        return gs.random.fork_rng()

    def is_parameter(self, tensor: Any) -> bool:
        """Whether a tensor is a Parameter."""
        return isinstance(tensor, gs.nn.Parameter)

    def tensor_classes(self) -> tuple[type, ...]:
        """Return the class of all tensors."""
        return (gs.Tensor,)

    def module_classes(self) -> tuple[type, ...]:
        """Return the class of all modules."""
        return (gs.nn.Module,)

    def is_called_traced_graph(self, module: Any) -> bool:
        """Return False: nothing is traced."""
        return False

    def named_parameters(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return the parameters of a module with their paths."""
        return list(module.named_parameters())

    def named_modules(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return a module and those inside it with their paths."""
        return list(module.named_modules())

    def batched(self, tensor: gs.Tensor) -> tuple[int, ...]:
        """Return nothing: a transform runs each sample by itself."""
        return ()

    def loss_scales(self) -> Sequence[tuple[float, float]]:
        """Return the scale of each GradScaler that has scaled a loss, and what it multiplies that by."""
        scalers = [scaler for scaler in living([gs.amp.GradScaler]) if vars(scaler).get("_scale") is not None]
        return [(float(self.to_host(scaler._scale)), scaler.get_backoff_factor()) for scaler in scalers]

    # --- ranks ---

    def checksums(self, tensors: Sequence[Any], *, norms: bool = True) -> tuple[Sequence[int], Sequence[float]]:
        """Return the checksum of the bits of each tensor and its 2-norm; 0 and 0.0 for None."""
        hosts = [None if tensor is None else self.to_host(tensor) for tensor in tensors]
        return (
            [0 if host is None else checksum(host) for host in hosts],
            [0.0 if host is None or not norms else norm_of(host) for host in hosts],
        )

    def part_of(self, tensor: Any) -> str:
        """Return an empty string: a tensor is whole."""
        return ""

    def group_of(self, tensor: Any) -> str:
        """Return an empty string: a tensor is whole."""
        return ""

    def holders_of(self, tensor: Any) -> str:
        """Return an empty string: a tensor is whole."""
        return ""

    def parallel_modules(self, modules: Sequence[Any]) -> Sequence[Any]:
        """Return none: distributed training is PyTorch's."""
        return ()

    def data_parallel(self, module: Any) -> DataParallel:
        """Raise: there is no such module."""
        raise TypeError(f"{type(module).__name__} reduces no gradients")

    def stand_ins(self, module: Any) -> Sequence[tuple[Any, Any]]:
        """Return none: parameters are whole."""
        return ()

    def rank_store(self) -> Any:
        """Return None: distributed training is PyTorch's."""
        return None

    def generator_facts(self) -> dict[str, int]:
        """Return the seed of the default generator."""
        return {"seed": gs.random.initial_seed()}

    # --- running ---

    def task_is_at(self, task: GraphTask, node: Node) -> bool:
        """Whether a backward still runs the node that it was told last to have entered."""
        return task.running is node

    def backward(self, loss: Any, **options: Any) -> Callable[[], Any]:
        """Return the call that runs the backward of `loss`."""
        return functools.partial(loss.backward, **options)

    def observe(
        self,
        observer: Observer,
        *,
        forward: bool,
        backward: bool,
        operators: bool = False,
        writes: bool = False,
        own_writes: bool = False,
    ) -> NativeObservation:
        """Tell `observer` what happens in all threads."""
        return NativeObservation(
            observer,
            forward=forward,
            backward=backward,
            operators=operators,
            writes=writes,
            own_writes=writes or own_writes,
        )


class NativeCall(NamedTuple):
    """A node in the middle of running."""

    task: GraphTask
    node: Node
    grad_outputs: list[Any]


class NativeOperatorCall:
    """An operator that has run."""

    __slots__ = ("_site", "inputs", "name", "node", "outputs")

    name: str
    node: Node | None
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    _site: call_sites.CallSite | None

    @property
    def grad_enabled(self) -> bool:
        """Whether operators are recorded on this thread: asked while it is told."""
        return bool(state.local.grad_enabled)

    @property
    def location(self) -> Location | None:
        """The user's line that called it."""
        site = self._site
        told = None if site is None else site.told  # as location_of() has left it there
        return location_of(site) if told is None or told is _NOWHERE else told


class NativeWrite:
    """A tensor that has been written in place."""

    def __init__(self, event: events.VersionBumped) -> None:
        self.tensor, self.operator, self.version = event.tensor, event.operator, event.version
        self.grad_enabled = event.grad_mode
        self._site = event.call_site

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor does."""
        return bool(self.tensor.requires_grad)

    @property
    def location(self) -> Location | None:
        """The user's line that wrote it."""
        return location_of(self._site)


class NativeShare:
    """The memory of a tensor handed to where writes count no version of its own."""

    def __init__(self, event: events.MemoryShared) -> None:
        self.tensor, self.how = event.tensor, event.how
        self.memory = weakref.ref(memory_of(event.tensor._memory))
        self._site = event.call_site

    @property
    def location(self) -> Location | None:
        """The user's line that asked for it."""
        return location_of(self._site)


class NativeObservation:
    """The subscriptions that turn events into calls of an observer's methods."""

    def __init__(
        self,
        observer: Observer,
        *,
        forward: bool,
        backward: bool,
        operators: bool,
        writes: bool,
        own_writes: bool,
    ) -> None:
        self._observer = observer
        handlers: dict[type[events.Event], Callable[[Any], None]] = {}
        if forward:
            handlers |= _forward_handlers(observer)
        if operators and hears(observer, "operator_ran"):
            handlers[events.OperatorRecorded] = _told_of_operators(observer)
        if own_writes and hears(observer, "tensor_written"):
            handlers[events.VersionBumped] = lambda event: observer.tensor_written(NativeWrite(event))
        if writes and hears(observer, "write_started"):
            handlers[events.WriteStarted] = lambda event: observer.write_started(event.tensor)
        if writes:
            handlers[events.MemoryShared] = lambda event: _memory_shared(observer, event)
            handlers[events.ItemAssigned] = lambda event: _item_assigned(observer, event)
            handlers[events.WriteRefused] = lambda event: observer.write_refused(event.error)
        if backward:
            handlers |= _backward_handlers(observer)
        for kind, told in _told_of_events(observer):
            handlers[kind] = _both(handlers[kind], told) if kind in handlers else told
        self._waits_for_module = observer.nodes_of_modules_alone is True and events.ModuleForwardPre in handlers
        if self._waits_for_module:
            handlers[events.ModuleForwardPre] = _both(self._hear_nodes, handlers[events.ModuleForwardPre])
        self._handlers = handlers
        self._passing = self._resting = False
        self._sites = int(forward or operators or own_writes)  # only the user's innermost line is asked for
        self._subscription = events.subscribe_each(self._wanted(), call_sites=self._sites)

    def pass_by(self, on: bool) -> None:
        """Tell of nodes in passing from the next node on, or as usual again."""
        self._passing = on
        self._listen()

    def rest(self, on: bool) -> None:
        """Tell of nothing but that a backward begins, or of all again."""
        if on is self._resting:
            return
        self._resting = on
        events.call_unheard(self._observer.backward_passes, on)
        self._listen()

    def _hear_nodes(self, event: events.ModuleForwardPre) -> None:
        """Hear the nodes that are made, from the first module on."""
        if self._waits_for_module:
            self._waits_for_module = False
            self._listen()

    def _listen(self) -> None:
        self._subscription.listen_to(self._wanted(), 0 if self._resting else self._sites)

    def _wanted(self) -> dict[type[Any], Callable[..., Any]]:
        """Return what is heard now, by the class of the event."""
        if self._resting:
            return {}
        handlers: dict[type[Any], Callable[..., Any]] = dict(self._handlers)
        if self._waits_for_module:
            handlers.pop(events.NodeRecorded, None)
        if self._passing and events.NodeExited in handlers:
            handlers.pop(events.NodeEntered, None)
            del handlers[events.NodeExited]
            handlers[events.InPassing] = self._observer.node_passed
            if hears(self._observer, "node_reached"):
                handlers[events.LeafReached] = self._observer.node_reached
        return handlers

    def close(self) -> None:
        """Stop observing; doing so twice is harmless."""
        events.call_unheard(self._observer.backward_passes, False)
        self._subscription.unsubscribe()

    def __enter__(self) -> NativeObservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _forward_handlers(observer: Observer) -> dict[type[events.Event], Callable[[Any], None]]:
    """Return what hears the forward pass: an event that the observer does not hear costs nothing."""
    handlers: dict[type[events.Event], Callable[[Any], None]] = {}
    if hears(observer, "module_entered"):
        handlers[events.ModuleForwardPre] = lambda event: observer.module_entered(event.module)
    if hears(observer, "module_left") or hears(observer, "module_returned"):
        handlers[events.ModuleForward] = lambda event: _module_ran(observer, event)
    if hears(observer, "function_applied"):
        applied = observer.function_applied
        handlers[events.FunctionApplied] = lambda event: applied(event.function, event.args)
    if hears(observer, "operator_recorded"):
        recorded = observer.operator_recorded
        handlers[events.NodeRecorded] = lambda event: recorded(event.node)
    return handlers


def _backward_handlers(observer: Observer) -> dict[type[events.Event], Callable[[Any], None]]:
    """Return what hears the backward pass."""
    handlers: dict[type[events.Event], Callable[[Any], None]] = {
        events.GraphTaskStarted: lambda event: observer.task_started(event.task),
        events.GraphTaskFinished: lambda event: observer.task_finished(event.task),
        events.GraphTaskFailed: lambda event: observer.task_failed(event.task, event.error),
        events.VersionViolation: lambda event: observer.violation(event.error),
    }
    if hears_entries(observer):
        handlers[events.NodeEntered] = observer.node_entered
    if hears(observer, "node_exited"):
        exited = events.ForkExited if observer.exits_of_forks_alone is True else events.NodeExited
        handlers[exited] = observer.node_exited
    return handlers


def _nothing() -> None:
    """Stand for a reference to an array that is gone."""


def _listeners() -> dict[str, type[events.Event]]:
    """Return the events by the name of the method that hears each: ``on_node_ready``."""
    return {f"on_{re.sub('(?<=[a-z])(?=[A-Z])', '_', name).lower()}": kind for name, kind in events.kinds.items()}


def _told_of_operators(observer: Observer) -> Callable[[events.OperatorRecorded], None]:
    """Return what tells an observer of the operators that it wants to hear of."""
    ran, heard = observer.operator_ran, None if observer.operators_heard is None else _HeardNames(observer)

    def told(event: events.OperatorRecorded) -> None:
        if heard is None or heard[event.name]:
            call = _new(NativeOperatorCall)
            call.name, call.node, call.inputs, call.outputs = event.name, event.node, event.inputs, event.outputs
            call._site = event.call_site
            ran(call)

    return told


class _HeardNames(dict[str, bool]):
    """Whether an observer wants to hear of an operator, by its name, as far as it was asked."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def __missing__(self, name: str) -> bool:
        wanted = self[name] = hears_operator(self._observer, name)
        return wanted


def _told_of_events(observer: Observer) -> list[tuple[type[events.Event], Callable[[Any], None]]]:
    """Return the events of the runtime that an observer is told unchanged."""
    written = type(observer)
    return [(kind, getattr(observer, name)) for name, kind in _listeners().items() if hasattr(written, name)]


def _both(first: Callable[[Any], None], second: Callable[[Any], None]) -> Callable[[Any], None]:
    def told(event: Any) -> None:
        first(event)
        second(event)

    return told


def _slots_of(nodes: Sequence[Node], name: str) -> list[Any]:
    """Return what nodes have in a slot, None where it has not been set; those made under observation have set it."""
    try:
        return list(map(attrgetter(name), nodes))
    except AttributeError:
        return [getattr(node, name, None) for node in nodes]


def _module_ran(observer: Observer, event: events.ModuleForward) -> None:
    observer.module_left(event.module)
    observer.module_returned(event.module, event.args, event.output)


def _memory_shared(observer: Observer, event: events.MemoryShared) -> None:
    with AdapterGuard([observer]):
        observer.memory_shared(NativeShare(event))


def _item_assigned(observer: Observer, event: events.ItemAssigned) -> None:
    with AdapterGuard([observer]):
        observer.item_assigned(event.tensor, event.index, location_of(event.call_site))


def _converted(array: Any) -> Any:
    """Return an array, which may be on a device, as `Adapter.hosts` does."""
    if type(array) is numpy.ndarray:
        return array
    spec = TensorSpec(tuple(array.shape), _name_of(array.dtype), _place_of(type(array)))  # type: ignore[arg-type]
    return Converted(widened(device.to_host(array)), spec)


def _hosts(arrays: Sequence[Any]) -> list[Any]:
    """Return the values of arrays, of which some may be None, as NumPy's."""
    here = (_ARRAY, numpy.generic)
    return [a if isinstance(a, here) else device.to_host(a) for a in map(widened, arrays) if a is not None]


def _norm(array: Any) -> float:
    """Return the 2-norm of an array, which may be on a device: of one there, a number alone comes to the host."""
    if type(array) is _ARRAY:
        return quick_norm(array)
    flat = array.reshape(-1)
    squares = (
        float(device.to_host(device.array_module(flat).dot(flat, flat)))
        if array.dtype.kind == "f" and array.itemsize >= 4
        else 0.0
    )
    return math.sqrt(squares) if 1e-30 < squares < 1e30 else norm_of(widened(device.to_host(array)))


@functools.cache
def _name_of(kind: Any) -> str:
    return dtype_name(BY_NUMPY[kind])


@functools.cache
def _place_of(kind: type) -> str:
    """Return the device of arrays of a type, as its text."""
    return str(device.device_of_type(kind))


@functools.lru_cache(maxsize=1 << 12)
def _one_output(shape: Any, dtype: Any, kind: type) -> tuple[TensorSpec]:
    """Return the outputs of a node that has one: they are the same object for nodes by the thousand."""
    return (TensorSpec(tuple(shape), _name_of(dtype), _place_of(kind)),)


def _history_is_lost(tensor: Any) -> bool:
    """Whether a tensor is a view made under no_grad, or by several at once, whose memory was written through another.

    Asked for its history it would raise, and tell all listeners that a write was refused.
    """
    view, counter = tensor._view, tensor._vc
    if view is None or counter is None or view.version == counter.version or view.creation == "default":
        return False
    return view.edge is not None or view.base.requires_grad
