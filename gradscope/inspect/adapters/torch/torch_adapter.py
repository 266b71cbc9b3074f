"""The adapter for PyTorch: what an instrument asks, answered from nodes, their metadata, and tensors."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from operator import itemgetter
from types import FrameType, TracebackType
from typing import Any

import numpy
import torch
from torch.autograd.function import BackwardCFunction

from ....program_files import is_library_file
from ....runtime import call_sites
from ...records.moments import Moments
from ...records.object_search import living
from ...records.records import InnerOperator, Location, TensorSpec
from ..gradient_hooks import NodeHook
from ..memory_fingerprint import UNREAD, WHOLE_BYTES, Region
from ..native_adapter import location_of
from ..protocol import (
    CHECKPOINTS,
    DataParallel,
    FailedCall,
    InnerCalls,
    NodeFacts,
    Observer,
    OnDevice,
    Plan,
    SavedView,
    key_in,
    refuse_checkpoint,
)
from .data_parallel import (
    checksums_of,
    data_parallel,
    generator_facts,
    group_of,
    holders_of,
    parallel_modules,
    part_of,
    rank_store,
    stand_ins,
)
from .device import device_fingerprints, device_statistics
from .engine_wrapper import backward_tap
from .failed_node import failed_call
from .forward_pass import HEARD, SITE, WantedEvents, forward_tap
from .graph_freeing import cut_row
from .node_hooks import hooks_of
from .numpy_conversion import (
    bits_of,
    from_host,
    outputs_of,
    reader,
    region_of,
    shape_of,
    small_of,
    spec_of,
    storage_of,
    to_host,
    to_host_told,
    without_repeats,
)
from .observed_backward import TorchTask, edge_of
from .passing_norms import PassingNorms, are_small_and_finite
from .saved_tensors import (
    PLAIN_SLOTS,
    RELEASED,
    held,
    late_hooks,
    saved_bytes,
    saved_of,
    set_version,
    unpacked_of,
    written_by_itself,
)
from .transforms.dispatch_modes import modes_aside
from .transforms.functorch import batched_sizes, is_wrapped
from .transforms.torch_compile import blindness_of, calls_inside, generated_code, inside_of, is_compiled, withheld_by

__all__ = ["TorchAdapter"]

_ACCUMULATE_GRAD = torch._C._functions.AccumulateGrad
_DisableTorchFunction = torch._C.DisableTorchFunction
_dispatch_modes_on = torch._C._len_torch_dispatch_stack
_function_modes_on = torch._C._len_torch_function_stack
# What stands between a module and who calls it: ours, which is told of the call, and what makes a call of a module.
_CALLS = (
    os.path.dirname(os.path.dirname(call_sites.__file__)) + os.sep,
    torch.nn.modules.module.__file__,
    torch.fx.graph_module.__file__,
)


class TorchAdapter:
    """Answers for PyTorch.

    Examples
    --------
    >>> import torch
    >>> adapter = TorchAdapter()
    >>> y = torch.ones(2, requires_grad=True) * 3
    >>> node, nr = adapter.root(y)
    >>> adapter.node_name(node), nr, adapter.spec(y).shape
    ('MulBackward0', 0, (2,))
    """

    name = "pytorch"

    def __init__(self) -> None:
        call_sites.add_library(os.path.dirname(torch.__file__))
        call_sites.add_library("<eval_with_key>")  # torch.fx has made this of the program's code
        call_sites.add_library(generated_code())
        self._recent_moments = device_statistics.RecentMoments()

    def of(self, value: Any) -> TorchAdapter:
        """Return itself."""
        return self

    # --- tensors and nodes ---

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` is a PyTorch tensor."""
        return isinstance(value, torch.Tensor)

    def root(self, tensor: torch.Tensor) -> tuple[Any, int] | None:
        """Return the node that a gradient of `tensor` enters, and at which input."""
        return edge_of(tensor)

    def is_leaf(self, tensor: torch.Tensor) -> bool | None:
        """Whether no operator has computed a tensor; None where a view's history can no longer be told."""
        try:
            return tensor.is_leaf
        except RuntimeError:
            return None

    def key(self, node: Any) -> int:
        """Return the number kept in the node's metadata: its Python object is made anew when nobody holds it."""
        return key_in(node.metadata)

    def node_name(self, node: Any) -> str:
        """Return the node's name, without C++ namespaces."""
        return _bare_names[node.name()]

    def sequence_nr(self, node: Any) -> int:
        """Return the sequence number."""
        return node._sequence_nr()

    def edges(self, node: Any) -> Sequence[tuple[Any, int]]:
        """Return (node or None, input number) for each produced gradient."""
        cut_row(node)
        return node.next_functions

    def outputs(self, node: Any) -> tuple[TensorSpec, ...]:
        """Return what the forward operator returned; nothing where PyTorch (2.4) does not tell."""
        return outputs_of(node)

    def saved(self, node: Any) -> Sequence[SavedView]:
        """Return the saved tensors."""
        return saved_of(node)

    def held(self, node: Any) -> Callable[[], dict[str, Any]]:
        """Return a function that lists a node's saved tensors by name, also after the node has released them."""
        return held(node)

    def alias(self, node: Any, saved: SavedView) -> torch.Tensor:
        """Return a tensor in the memory of one that `node` has saved, without history."""
        with torch._C.DisableTorchFunction():
            return without_repeats(saved.data.detach())

    def exchange(self, node: Any, saved: SavedView, values: Any, version: int) -> Callable[[], None]:
        """Put other values and another version into the memory of a saved tensor; return what undoes that."""
        alias = self.alias(node, saved)

        def put(values: torch.Tensor | None, version: int) -> None:
            with self.quiet(), torch._C.DisableTorchFunction():
                if values is not None:
                    alias.copy_(values)
                set_version(alias, version)

        undo = functools.partial(put, None if values is None else self.copy(alias), alias._version)
        put(values, version)
        return undo

    def saved_bytes(self, nodes: Sequence[Any]) -> int | None:
        """Return the size of the memory that nodes have saved; None where that is to be asked of each tensor."""
        return saved_bytes(nodes)

    def variable(self, node: Any) -> Any:
        """Return the leaf of an AccumulateGrad."""
        return node.variable if type(node) is _ACCUMULATE_GRAD else None

    def location(self, node: Any) -> Location | None:
        """Return the user's line that made the node."""
        return location_of(node.metadata.get(SITE))

    def blind(self, node: Any) -> str:
        """Return why an instrument cannot look inside a node."""
        return blindness_of(type(node)._forward_cls) if is_compiled(node) else CHECKPOINTS.get(node.name(), "")

    def inside(self, node: Any) -> tuple[InnerOperator, ...]:
        """Return what is inside of a compiled node."""
        return inside_of(node)

    def inner_calls(self, node: Any) -> InnerCalls | None:
        """Return how the calls inside of a compiled node follow each other."""
        return calls_inside(node)

    def withheld(self, node: Any) -> tuple[int, ...]:
        """Return which of its gradients a compiled node never produces."""
        return withheld_by(node)

    def notes(self, node: Any) -> dict[Any, Any]:
        """Return the node's metadata."""
        return node.metadata

    def notes_below(self, node: Any) -> list[dict[Any, Any]]:
        """Return the metadata of the nodes that a node's edges lead to."""
        return [child.metadata for child, _ in self.edges(node) if child is not None]

    def memory_key(self, tensor: torch.Tensor) -> Hashable:
        """Return the address of PyTorch's storage; of a tensor without one, its own."""
        return self.memory(tensor)[0]

    def address(self, tensor: torch.Tensor) -> Hashable:
        """Return where the memory of a tensor begins, for arrays too; of one without memory its own key."""
        with torch._C.DisableTorchFunction():
            return _address_of(tensor)

    def own_address(self, tensor: torch.Tensor) -> Hashable | None:
        """Return the same of a tensor that is no view, None of a view."""
        with torch._C.DisableTorchFunction():
            return None if tensor._is_view() else _address_of(tensor)

    def memory(self, tensor: torch.Tensor) -> tuple[Hashable, Any]:
        """Return the same, and PyTorch's storage, of which there is one object; None for a tensor without one."""
        return self.memories((tensor,))[0]

    def memories(self, tensors: Sequence[torch.Tensor]) -> Sequence[tuple[Hashable, Any]]:
        """Return the same of several tensors."""
        with torch._C.DisableTorchFunction():
            return list(map(_memory_of, tensors))

    def region(self, tensor: torch.Tensor) -> Region | None:
        """Return which bytes a tensor looks at; None if it has no memory of its own."""
        with torch._C.DisableTorchFunction():
            return region_of(tensor)

    def is_grad_enabled(self) -> bool:
        """Whether operators are recorded on this thread."""
        return torch.is_grad_enabled()

    def version(self, tensor: torch.Tensor) -> int | None:
        """Return the version of a tensor's memory."""
        with torch._C.DisableTorchFunction():
            return None if tensor.is_inference() else tensor._version

    def bits(self, tensor: torch.Tensor) -> Any:
        """Return the bits of a tensor as they lie in memory, evenly spaced ones of a large one; None if it has none."""
        with torch._C.DisableTorchFunction():
            return bits_of(tensor)

    def fingerprints(self, node: Any) -> tuple[Any, ...]:
        """Return version and checksum of each saved tensor that the node reads, in turn."""
        prints = _prints_of_plain(node)
        return _prints_of_any(node) if prints is None else prints

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor, without history."""
        if type(tensor) is not torch.Tensor:
            return tensor.detach().clone()
        # The observed forward pass would have each of these calls told, and the program's modes hear it.
        with torch._C.DisableTorchFunction(), modes_aside(tensor):
            return tensor.detach().clone()

    def leaf_grad(self, leaf: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient accumulated in a leaf, or None."""
        if type(leaf) is torch.nn.Parameter and leaf.is_leaf:  # as nearly all are, in a third of the time
            return leaf.grad
        with torch._C.DisableTorchFunction():
            return leaf.grad if leaf.is_leaf or leaf.retains_grad else None

    def set_leaf_grad(self, leaf: torch.Tensor, grad: torch.Tensor | None) -> None:
        """Set it."""
        leaf.grad = grad

    # --- running ---

    def hooks(self, node: Any) -> Sequence[NodeHook]:
        """Return the hooks that a backward runs at a node: of leaves, and of results since somebody observes."""
        return hooks_of(node)

    def run_node(self, node: Any, grad_outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run one node alone, without hooks."""
        refuse_checkpoint(node.name())
        run = node.apply if isinstance(node, BackwardCFunction) else node
        with torch.no_grad(), backward_tap.unheard():
            produced = run(*grad_outputs)
        return produced if isinstance(produced, tuple) else () if produced is None else (produced,)

    def gradients(self, outputs: Sequence[Any], grads: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return the gradients of `leaves` when `grads` enter at `outputs`."""
        with backward_tap.unheard(), _without_hooks(leaves):
            return list(torch.autograd.grad(outputs, leaves, list(grads), retain_graph=True, allow_unused=True))

    def failed_call(self, error: BaseException, frames: Sequence[FrameType]) -> FailedCall | None:
        """Return the node at which a backward has failed, as far as the traceback, the message and the graph tell."""
        return failed_call(error, frames)

    def keep_saved(self, task: TorchTask) -> Callable[[], None] | None:
        """Make a backward keep its saved tensors, if it has not begun; return what releases them."""
        return task.keep()

    def task_roots(self, task: TorchTask) -> Sequence[tuple[Any, int]]:
        """Return where the gradients of a backward enter."""
        return task.roots

    def task_runs(self, task: TorchTask, node: Any) -> bool:
        """Whether a backward will run `node`."""
        return task.runs(node)

    def task_is_at(self, task: TorchTask, node: Any) -> bool:
        """Whether a backward still runs, on this thread, the node that it was told last to have entered."""
        return torch._C._current_autograd_node() is node

    def backward(self, loss: torch.Tensor, **options: Any) -> Callable[[], Any]:
        """Return the call that runs the backward of `loss`."""
        return functools.partial(loss.backward, **options)

    # --- values ---

    def task_nodes(self, task: TorchTask) -> Sequence[Any]:
        """Return the nodes that a backward may run."""
        return task.nodes

    def task_reach(self, task: TorchTask) -> tuple[Sequence[torch.Tensor], AbstractSet[str]]:
        """Return the leaves that a backward may reach, and the names of the nodes that it may run."""
        leaves = [node.variable for node in task.nodes if type(node) is _ACCUMULATE_GRAD]
        return leaves, {kind.__name__ for kind in set(map(type, task.nodes))}

    def facts(self, nodes: Sequence[Any]) -> NodeFacts:
        """Return at once what tells nodes from others."""
        notes = [node.metadata for node in nodes]
        return NodeFacts(
            [_bare_names[node.name()] for node in nodes],
            [known.get(SITE) for known in notes],
            [node.variable if type(node) is _ACCUMULATE_GRAD else None for node in nodes],
            notes,
        )

    def plan(self, task: TorchTask) -> Plan:
        """Return the nodes that a backward may run, and what tells them from others."""
        nodes, edges = task.nodes, task.edges
        flat = list(itertools.chain.from_iterable(edges))
        return Plan(
            nodes,
            self.facts(nodes),
            [node._sequence_nr() for node in nodes],
            list(map(len, edges)),
            list(map(itemgetter(0), flat)),
            list(map(itemgetter(1), flat)),
        )

    def to_host(self, tensor: torch.Tensor) -> numpy.ndarray:
        """Return the values as a NumPy array."""
        return to_host(tensor)

    def carried(self, call: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the tensors that a node was given and has made."""
        return (call.grad_outputs or (), ()) if type(call) is FailedCall else (call.given, call.made)

    def hosts(self, call: Any, values: bool = True) -> tuple[Sequence[Any], int]:
        """Return the values of the gradients that a node was given and has made, and how many it was given."""
        given, made = self.carried(call)
        look = to_host_told if values else _look
        with torch._C.DisableTorchFunction():
            return [look(gradient) for gradient in (*given, *made)], len(given)

    def moments(self, gradients: Sequence[Any]) -> Sequence[Moments | None]:
        """Return the statistics of gradients on a GPU, None of others."""
        if not any(device_statistics.are_taken_of(gradient) for gradient in gradients):
            return [None] * len(gradients)
        found = _unobserved(self._recent_moments.of, gradients)
        return [None] * len(gradients) if found is None else found

    def are_small_and_finite(self, carried: Sequence[Any]) -> bool:
        """Whether tensors are few numbers each on the host, none of them NaN or infinite."""
        if not _function_modes_on():  # to put none aside takes half as long as to read a tensor
            return are_small_and_finite(carried)
        with torch._C.DisableTorchFunction():
            return are_small_and_finite(carried)

    def passing_norms(self) -> Callable[[Sequence[Any], Sequence[Any]], tuple[float | None, bool]]:
        """Return a function of the tensors that a node was given and has made: see the protocol."""
        return PassingNorms(_NoRecording)

    def entering(self, task: TorchTask) -> Sequence[Any]:
        """Return the gradients that enter a backward which is about to run its first node."""
        return [grad for grad in task.grads if grad is not None]

    def small(self, call: Any, most: int, taken: list[Any]) -> tuple[int, int] | None:
        """Take the gradients that a node was given and has made as bytes, where all are on the host and small."""
        return None if type(call) is FailedCall else small_of(call, most, taken)

    def spec(self, tensor: torch.Tensor) -> TensorSpec:
        """Return shape, dtype and device of a tensor."""
        return spec_of(tensor)

    def tensor_like(self, value: Any, spec: TensorSpec) -> torch.Tensor:
        """Return a new tensor of shape, dtype and device `spec`."""
        if not isinstance(value, torch.Tensor):
            return from_host(value, spec)
        if is_wrapped(value) and shape_of(value) == spec.shape:  # its numbers are those of all that vmap goes over
            return value.detach().clone()
        return from_host(to_host(value), spec)

    def quiet(self) -> AbstractContextManager[Any]:
        """Return a context in which operators are not recorded, and not told of."""
        return _NoRecording()

    def fork_random(self) -> AbstractContextManager[Any]:
        """Return a context after which the generators go on as if nothing had been drawn in it."""
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        return torch.random.fork_rng(devices)

    # --- modules ---

    def is_parameter(self, tensor: Any) -> bool:
        """Whether a tensor is a Parameter."""
        return isinstance(tensor, torch.nn.Parameter)

    def tensor_classes(self) -> tuple[type, ...]:
        """Return the class of all tensors."""
        return (torch.Tensor,)

    def module_classes(self) -> tuple[type, ...]:
        """Return the class of all modules."""
        return (torch.nn.Module,)

    def is_called_traced_graph(self, module: Any) -> bool:
        """Whether a module about to run is a graph of torch.fx's that PyTorch calls, and not the program."""
        return isinstance(module, torch.fx.GraphModule) and _called_by_torch(sys._getframe(1))

    def named_parameters(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return the parameters of a module with their paths."""
        return list(module.named_parameters())

    def named_modules(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return a module and those inside it with their paths."""
        return list(module.named_modules())

    def batched(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """Return the sizes of the dimensions of vmaps, the outermost first."""
        return batched_sizes(tensor)

    def loss_scales(self) -> Sequence[tuple[float, float]]:
        """Return the scale of each GradScaler that has scaled a loss, and what it multiplies that by."""
        scalers = [scaler for scaler in living([torch.amp.GradScaler]) if vars(scaler).get("_scale") is not None]
        return [(float(self.to_host(scaler._scale)), scaler.get_backoff_factor()) for scaler in scalers]

    # --- ranks ---

    def checksums(
        self, tensors: Sequence[torch.Tensor | None], *, norms: bool = True
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Return the checksum of the bits of each tensor and its 2-norm; 0 and 0.0 for None."""
        return checksums_of(tensors, with_norms=norms)

    def part_of(self, tensor: torch.Tensor) -> str:
        """Return which part of the whole a tensor of this rank is; an empty string where it is all of it."""
        return part_of(tensor)

    def group_of(self, tensor: torch.Tensor) -> str:
        """Return the ranks over which a tensor is spread; an empty string where all are, or none."""
        return group_of(tensor)

    def holders_of(self, tensor: torch.Tensor) -> str:
        """Return the ranks that hold the same part of a tensor; an empty string where these are all, or one."""
        return holders_of(tensor)

    def parallel_modules(self, modules: Sequence[Any]) -> Sequence[Any]:
        """Return the DistributedDataParallel among some modules."""
        return parallel_modules(modules)

    def data_parallel(self, module: Any) -> DataParallel:
        """Return what a DistributedDataParallel keeps equal on all ranks."""
        return data_parallel(module)

    def stand_ins(self, module: Any) -> Sequence[tuple[Any, Any]]:
        """Return sharded parameters of a module, each with the whole one that FSDP2 puts into its place."""
        return stand_ins(module)

    def rank_store(self) -> Any:
        """Return the store of the default process group; None where there is none."""
        return rank_store()

    def generator_facts(self) -> dict[str, int]:
        """Return the seed of the CPU's generator, and a checksum of its state."""
        return generator_facts()

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
    ) -> TorchObservation:
        """Tell `observer` what happens on this thread, on those that it starts, and in modules on any."""
        wanted = WantedEvents(forward=forward, operators=operators, writes=writes, own_writes=own_writes and not writes)
        return TorchObservation(observer, wanted, backward=backward)


def _called_by_torch(frame: FrameType | None) -> bool:
    """Whether it is PyTorch's own code that has called the module about to run."""
    while frame is not None and frame.f_code.co_filename.startswith(_CALLS):
        frame = frame.f_back
    return frame is not None and is_library_file(frame.f_code.co_filename)


class _BareNames(dict[str, str]):
    """Names of nodes without C++ namespaces."""

    def __missing__(self, name: str) -> str:
        bare = self[name] = name.rpartition("::")[2]
        return bare


_bare_names = _BareNames()


def _set_grad_enabled(on: bool) -> None:
    """Switch grad mode, without the function modes that see that: they would take as long as all the rest here."""
    with torch._C.DisableTorchFunction():
        torch._C._set_grad_enabled(on)


def _look(gradient: Any) -> Any:
    """Return a gradient as `Adapter.hosts` does where its values are not asked for."""
    if not device_statistics.are_taken_of(gradient):
        return to_host_told(gradient)
    return OnDevice(gradient, gradient._version, spec_of(gradient), gradient.element_size(), _take_statistics)


def _take_statistics(gradient: torch.Tensor) -> Any:
    return _unobserved(device_statistics.statistics_of, gradient)


def _unobserved(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call a function whose operators are not recorded, and of which no mode and no observer is told.

    It returns None where the device has no memory left for that, which is not the program's fault. What else a device
    reports is: an assertion that failed in a kernel of the program's reaches whoever speaks with the device next.
    """
    try:
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), _NoRecording():
            return function(argument)
    except RuntimeError as error:
        if "out of memory" not in str(error):  # so say CUDA and Triton too, which have no class for it
            raise
        return None


def _memory_of(tensor: torch.Tensor) -> tuple[Hashable, Any]:
    """Return the address of a tensor's storage, and that; of a tensor without one, its own, and None."""
    storage = storage_of(tensor)
    return (id(tensor), None) if storage is None else (storage._cdata, storage)


class _NoRecording:
    """No recording, and no telling, on this thread."""

    __slots__ = ("_grad_enabled",)

    def __enter__(self) -> None:
        forward_tap.muted.depth += 1
        self._grad_enabled = torch.is_grad_enabled()
        _set_grad_enabled(False)

    def __exit__(self, *exc_info: object) -> None:
        _set_grad_enabled(self._grad_enabled)
        forward_tap.muted.depth -= 1


class TorchObservation:
    """An observer's place in PyTorch."""

    def __init__(self, observer: Observer, wanted: WantedEvents, *, backward: bool) -> None:
        self._observer, self._wanted = observer, wanted
        self._leave_forward: Callable[[], None] | None = None
        self._resting_in: int | None = None
        self._undo: list[Callable[[], None]] = [self._rest_forward]
        self._hear_forward()
        if backward:
            backward_tap.add(observer)
            self._undo.append(functools.partial(backward_tap.remove, observer))

    def _hear_forward(self) -> None:
        if any(self._wanted) and self._leave_forward is None:
            forward_tap.add(self._observer, self._wanted)
            self._leave_forward = functools.partial(forward_tap.remove, self._observer)

    def _rest_forward(self) -> None:
        leave, self._leave_forward = self._leave_forward, None
        if leave is not None:
            leave()

    def rest(self, on: bool) -> None:
        """Tell of nothing but that a backward begins, or of all again, which another thread cannot have."""
        here = threading.get_ident()
        if on:
            if sys.getprofile() is not None:  # a profiler is in the place of what takes the function mode off
                return
            self._resting_in = here
            backward_tap.rest(self._observer, True)
            self._rest_forward()
        elif self._resting_in == here:
            self._resting_in = None
            backward_tap.rest(self._observer, False)
            self._hear_forward()

    def pass_by(self, on: bool) -> None:
        """Tell of nodes in passing, or as usual, from the next node on."""
        backward_tap.pass_by(self._observer, on)

    def close(self) -> None:
        """Stop observing; doing so twice is harmless."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> TorchObservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _without_hooks(leaves: Sequence[torch.Tensor]) -> Iterator[None]:
    """Keep the hooks of leaves from running: where grad() takes a gradient, PyTorch calls them."""
    tables = [leaf._backward_hooks for leaf in leaves if leaf._backward_hooks]
    kept = [dict(table) for table in tables]
    for table in tables:
        table.clear()
    try:
        yield
    finally:
        for table, hooks in zip(tables, kept):
            table.update(hooks)


def _address_of(tensor: torch.Tensor) -> Hashable:
    """Return where the memory of a tensor begins, as :meth:`Adapter.address` does; modes have been put aside."""
    try:
        if type(tensor) in _PLAIN and tensor.is_cpu:
            address = tensor.data_ptr()
            if address:  # else it may have no elements; an object for its storage would live as long as that
                return address - tensor.storage_offset() * tensor.itemsize
        storage = tensor.untyped_storage()
        # A FakeTensor warns of being asked for an address.
        return (storage.data_ptr() if storage.device.type != "meta" else 0) or ("empty", id(tensor))
    except (RuntimeError, NotImplementedError, ValueError):  # the tensor is sparse, or not yet initialised
        return "none", id(tensor)


def _prints_of_any(node: Any) -> tuple[Any, ...]:
    unread = written_by_itself(node)
    prints = [UNREAD if name in unread else _fingerprint(tensor) for name, tensor in unpacked_of(node)]
    return tuple(itertools.chain.from_iterable(prints))


def _prints_of_plain(node: Any) -> tuple[int, ...] | None:
    """Return the same, at a fifth of the time, where all that a node has saved is small, dense and on the host."""
    slots, notes = PLAIN_SLOTS[type(node)], node.metadata
    if slots is None or RELEASED in notes:
        return None
    # Whether no code of the program's runs when the node unpacks: no hook's, mode's or class's.
    unheard = SITE in notes and HEARD not in notes and not late_hooks.are_there and not _dispatch_modes_on()
    found = []
    try:
        with _DisableTorchFunction():
            for raw, unpacked in slots:
                tensor = getattr(node, unpacked) if unheard else _data_of(node, raw, unpacked)
                if tensor is None:
                    continue
                # A FakeTensor warns when asked for more.
                if not (type(tensor) in _PLAIN and tensor.is_cpu and tensor.is_contiguous()):
                    return None
                size, address = tensor.nbytes, tensor.data_ptr()
                if not address or size > WHOLE_BYTES:
                    return None
                found.append((tensor._version, reader(size)(address)))
    except _UNREADABLE:
        return None
    # Nothing has been read in vain, where one of several is another.
    if len(found) == 1:
        ((version, memory),) = found
        return version, zlib.crc32(memory)
    return tuple([part for version, memory in found for part in (version, zlib.crc32(memory))])


def _data_of(node: Any, raw: str, unpacked: str) -> Any:
    """Return what a slot of a node holds; raise where a hook has packed it, or it has been released."""
    slot = getattr(node, raw)
    if slot.unpack_hook is not None:
        raise TypeError("packed by a hook")
    tensor = slot.data
    if tensor is None:
        getattr(node, unpacked)  # it raises, but for one that has never held anything
    return tensor


# What a tensor raises that is sparse, of inference mode or inside of a transform, a slot that is empty, or one of
# several tensors, or one that has been written since.
_UNREADABLE = (AttributeError, NotImplementedError, RuntimeError, TypeError)
_PLAIN = {torch.Tensor, torch.nn.Parameter}


def _fingerprint(tensor: torch.Tensor | None) -> tuple[int | None, Any]:
    """Return version and checksum of a saved tensor, as :func:`.memory_fingerprint.fingerprint_of` does."""
    if tensor is None:
        return UNREAD
    with torch._C.DisableTorchFunction():
        if tensor.is_inference():
            return UNREAD
        if tensor.is_cuda and region_of(tensor) is not None and not (tensor.is_conj() or tensor.is_neg()):
            made = _unobserved(device_fingerprints.fingerprint_of, tensor)
            return UNREAD if made is None else (tensor._version, made)
        bits = bits_of(tensor)
        return UNREAD if bits is None else (tensor._version, zlib.crc32(bits))
