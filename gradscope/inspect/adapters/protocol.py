"""The protocol between the instruments and a framework.

An instrument never imports a framework: it asks an :class:`Adapter` about tensors and nodes, and it is told by an
:class:`Observer`'s methods what happens, on the thread where it happens. Nodes and tensors pass through as opaque
objects that are not kept: what is kept is a node's :meth:`~Adapter.key`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy

from ..records.moments import Moments
from ..records.records import InnerOperator, Location, TensorSpec, operator_of
from .gradient_hooks import NodeHook
from .memory_fingerprint import Region

__all__ = [
    "Adapter",
    "CompiledRun",
    "Converted",
    "OnDevice",
    "DataParallel",
    "FailedCall",
    "InnerCall",
    "InnerCalls",
    "InnerKernel",
    "InnerStep",
    "MemoryShare",
    "NodeCall",
    "NodeFacts",
    "Observation",
    "Observer",
    "OperatorCall",
    "Plan",
    "SavedView",
    "Write",
    "hears_entries",
    "key_in",
]

_KEY = "gradscope.inspect.key"
_next_key = itertools.count(1).__next__


def key_in(notes: dict[Any, Any]) -> int:
    """Return the number that this process gave the node with these notes when it was first asked about.

    One count for all frameworks, so that no two nodes of a program share a key.
    """
    key = notes.get(_KEY)
    known: int = notes.setdefault(_KEY, _next_key()) if key is None else key
    return known


class SavedView(Protocol):
    """A look at one saved tensor, without unpacking it."""

    @property
    def name(self) -> str:
        """Under which name the node saved it."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """None once released."""

    @property
    def dtype(self) -> Any:
        """The framework's dtype."""

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""

    @property
    def saved_version(self) -> int | None:
        """The version at which it was saved."""

    @property
    def current_version(self) -> int | None:
        """The version its memory is at now."""

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor that was saved requires grad; False where it is not known."""

    @property
    def released(self) -> bool:
        """Whether the node has let go of it."""

    @property
    def data(self) -> Any:
        """The value, stale or not, without the version check."""


class NodeCall(Protocol):
    """A node about to run, or just run. An entry of a list may be assigned: that replaces the gradient.

    Setting ``skip`` before it runs leaves the node out: what it produces is undefined.
    """

    task: Any
    node: Any
    grad_outputs: list[Any]
    skip: bool


class FailedCall(NamedTuple):
    """The node at which a backward has failed that no observer followed.

    Attributes
    ----------
    grad_outputs : list of Tensor or None, or None
        None where they are not known.
    notes : tuple of str
        What could not be known, and what was taken for granted.
    in_hook : bool
        Whether it was a hook of the node, which runs before it.
    """

    task: Any
    node: Any
    grad_outputs: list[Any] | None
    notes: tuple[str, ...] = ()
    in_hook: bool = False

    @property
    def grad_inputs(self) -> list[Any]:
        """Empty: it has produced none."""
        return []


class OperatorCall(Protocol):
    """An operator that has run forward, recorded or not."""

    name: str
    node: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def grad_enabled(self) -> bool:
        """Whether operators are recorded on this thread, while it is told."""

    @property
    def location(self) -> Location | None:
        """The user's line that called it."""


class Write(Protocol):
    """A tensor that has been written in place."""

    tensor: Any
    operator: str
    version: int
    grad_enabled: bool

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor does."""

    @property
    def location(self) -> Location | None:
        """The user's line that wrote it."""


class MemoryShare(Protocol):
    """The memory of a tensor handed to where writes count no version of its own: ``.data``, NumPy, DLPack.

    ``memory`` is a weak reference to what lives as long as the memory does.
    """

    tensor: Any
    how: str
    memory: Any

    @property
    def location(self) -> Location | None:
        """The user's line that asked for it."""


class InnerKernel(NamedTuple):
    """An operator of a compiled region's backward that has run: its bare name, what it was given and what it made."""

    name: str
    inputs: tuple[Any, ...]
    output: Any


class InnerStep(NamedTuple):
    """A call of the forward pass inside of a compiled region, whose backward has run beside the region's own.

    Attributes
    ----------
    given, made : tuple
        The gradients that came into it, and what left it.
    saved : tuple
        What of the forward pass it was computed with.
    kernels : tuple of InnerKernel
        Of what its backward consists.
    """

    operator: InnerOperator
    given: tuple[Any, ...]
    saved: tuple[Any, ...]
    made: tuple[Any, ...]
    kernels: tuple[InnerKernel, ...]


class InnerCall(NamedTuple):
    """A call of the forward pass inside of a compiled region, and what it was given.

    Attributes
    ----------
    shape : tuple of int
        Of its result.
    source : int or None
        The number of the call that has computed its one operand with a gradient; None where several calls use that
        gradient (a sum has no operator in backward), or none inside does.
    edge : int or None
        The edge of the region's node that leads to where the operand was computed, where that is outside.
    """

    operator: InnerOperator
    shape: tuple[int, ...]
    source: int | None
    edge: int | None


class InnerCalls(NamedTuple):
    """The calls of the forward pass inside of a compiled region, the last first.

    Attributes
    ----------
    results : dict of int to int
        By the number of the region's output, the call that has computed it.
    """

    calls: tuple[InnerCall, ...]
    results: dict[int, int]


class CompiledRun(Protocol):
    """The backward of a compiled region that has just run: ``made`` is what it has produced."""

    task: Any
    node: Any
    made: Sequence[Any]

    def steps(self) -> Iterator[InnerStep]:
        """Run it again beside the program, operator by operator."""

    def inputs(self) -> Sequence[Any]:
        """Return what the region was given in forward, as far as it has saved that."""

    def saved(self) -> Sequence[tuple[InnerOperator, Any]]:
        """Return what it has computed in forward and saved, each with the call that has made it, the first first."""


class Observer:
    """A listener on the program's thread: inherit, and write the methods of the events that matter.

    Each may block, and may raise: the exception leaves through the user's call.

    These are what both frameworks tell. An event of gradscope's own runtime is told as it is to a method of its name:
    ``def on_gradient_accumulated(self, event)`` hears `gradscope.runtime.events.GradientAccumulated`.

    Attributes
    ----------
    nodes_of_modules_alone : bool
        Whether :meth:`operator_recorded` does nothing before a module has been entered: a program without modules need
        not call it at each operator then.
    operators_heard : frozenset of str or None
        The bare names of the operators of which :meth:`operator_ran` is told, in place too; None for all.
    operators_of_steps : bool
        Whether :meth:`operator_ran` does something in a step of an optimizer that is the framework's own: if nobody
        wants that, PyTorch's are not told of.
    operators_unrecorded : bool
        Whether it does something in a module under ``no_grad()``: if nobody wants that, PyTorch keeps its fused
        inference paths.
    places_of_nodes : bool
        Whether the lines that make nodes are asked for, now or later: under PyTorch they are noted at each operator.
    exits_of_forks_alone : bool
        Whether :meth:`node_exited` does nothing for a node that hands a gradient to one other at most: it is not told
        of those then, which run sooner if nobody else is.
    """

    nodes_of_modules_alone: ClassVar[bool] = False
    operators_heard: ClassVar[frozenset[str] | None] = None
    operators_of_steps: ClassVar[bool] = True
    operators_unrecorded: ClassVar[bool] = True
    places_of_nodes: ClassVar[bool] = True
    exits_of_forks_alone: ClassVar[bool] = False

    def module_entered(self, module: Any) -> None:
        """`module` is about to run forward."""

    def module_left(self, module: Any) -> None:
        """`module` has run forward."""

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """`module` has run forward on `inputs`, and returns `output`; told after :meth:`module_left`."""

    def function_applied(self, function: Any, args: tuple[Any, ...]) -> None:
        """A custom Function (its class) is about to run forward on `args`."""

    def operator_recorded(self, node: Any) -> None:
        """`node` has been made."""

    def operators_recorded(self, nodes: Sequence[Any]) -> None:
        """One call has made these, the first one first: each is told by :meth:`operator_recorded`."""
        for node in nodes:
            self.operator_recorded(node)

    def operator_ran(self, call: OperatorCall) -> None:
        """An operator has run, recorded or not (detach, argmax, anything under no_grad)."""

    def write_started(self, tensor: Any) -> None:
        """A tensor is about to be written in place, by what :meth:`tensor_written` tells of; it may be refused yet."""

    def tensor_written(self, write: Write) -> None:
        """A tensor has been written in place."""

    def tensors_written(self, writes: Sequence[Write]) -> None:
        """One call has written these, an optimizer's step as a rule: each is told by :meth:`tensor_written`."""
        for write in writes:
            self.tensor_written(write)

    def memory_shared(self, share: MemoryShare) -> None:
        """The memory of a tensor can now be written without a version being counted."""

    def item_assigned(self, tensor: Any, index: Any, location: Location | None) -> None:
        """``tensor[index]`` has been assigned to, where several elements of `tensor` lie at one address."""

    def write_refused(self, error: Any) -> None:
        """A write in place is not allowed; `error`, with the facts of an InplaceError, is about to be raised."""

    def backward_passes(self) -> None:
        """A backward begins of which nothing is told; see :meth:`Observation.rest`."""

    def task_started(self, task: Any) -> None:
        """A backward is about to run its first node."""

    def node_entered(self, call: Any) -> None:
        """A node is about to run: ``call.grad_outputs``. An observer that does not write this method costs less."""

    def node_exited(self, call: Any) -> None:
        """A node has run: ``call.grad_outputs`` and ``call.grad_inputs``. It still has what it saved."""

    def compiled_ran(self, run: CompiledRun) -> None:
        """The backward of a compiled region has run, inside of its node; ``run`` is good for as long as this method is.

        An observer that does not write this method costs less.
        """

    def node_reached(self, call: Any) -> None:
        """A leaf or a node of Python is about to run, told in passing; see :meth:`Observation.pass_by`."""

    def leaf_filled(self, task: Any, node: Any) -> None:
        """A leaf that had no gradient has been given one, told in passing where :meth:`node_reached` was not."""

    def node_passed(self, task: Any, given: Sequence[Any], made: Sequence[Any]) -> bool:
        """A node has run, told in passing: what it was given and has made as the framework has it, not to be kept.

        Return True, after :meth:`Observation.pass_by` (False), to be told of its end by :meth:`node_exited` too.
        """
        return False

    def task_finished(self, task: Any) -> None:
        """A backward has ended."""

    def task_failed(self, task: Any, error: BaseException) -> None:
        """A backward has ended by `error`."""

    def violation(self, error: Any) -> None:
        """A saved tensor has been written since it was saved; `error` is about to be raised."""

    def blind_region(self, reason: str) -> None:
        """A backward runs that cannot be observed (compiled autograd, a functorch transform); `reason` says why."""

    def blind_call(self, reason: str) -> None:
        """A call is made that cannot be observed: `reason` says what runs there."""


class Observation(AbstractContextManager["Observation"], Protocol):
    """A subscription of an observer."""

    def pass_by(self, on: bool) -> None:
        """Tell of nodes in passing from now on, or as usual again.

        In passing the observer's :meth:`~Observer.node_passed` is called in the place of ``node_entered`` and
        ``node_exited``, at a fraction of what these cost.
        """

    def rest(self, on: bool) -> None:
        """Tell of nothing from now on but, by ``backward_passes``, that a backward begins; or of all again.

        It begins on the thread that has called for a backward, after that. It ends in ``backward_passes``, before a
        backward of which all is told then; on another thread this may be called at any time, and does what it can.
        """

    def close(self) -> None:
        """Stop observing."""


class NodeFacts(NamedTuple):
    """What tells nodes from others: a column for each fact.

    Attributes
    ----------
    sites : sequence
        Where each was made: the same object for the same place. See :meth:`Adapter.location`.
    leaves : sequence of Tensor or None
        Of each AccumulateGrad.
    notes : sequence of dict or None
        See :meth:`Adapter.notes`; None where there are none.
    """

    names: Sequence[str]
    sites: Sequence[Any]
    leaves: Sequence[Any]
    notes: Sequence[dict[Any, Any] | None]


class Plan(NamedTuple):
    """The nodes that a backward may run, in an order that depends on the graph alone, and their edges.

    Attributes
    ----------
    fans : sequence of int
        How many gradients each produces.
    receivers : sequence of node or None
        For each produced gradient, node by node, who receives it.
    inputs : sequence of int
        As which of its inputs.
    """

    nodes: Sequence[Any]
    facts: NodeFacts
    sequence_nrs: Sequence[int]
    fans: Sequence[int]
    receivers: Sequence[Any]
    inputs: Sequence[int]


class DataParallel(NamedTuple):
    """What a module does so that all ranks hold the same parameters.

    Attributes
    ----------
    reduced, frozen, ignored : tuple of Tensor
        The parameters that it keeps equal; those of them whose gradients it does not reduce, since they required no
        grad when it wrapped them; and those that it was told to leave alone.
    buffers : tuple of (str, Tensor)
        With their paths in the module.
    broadcasts : bool
        Whether it copies the buffers of rank 0 to the others before a forward.
    synchronised : bool
        Whether the last forward was one whose gradients it reduces, and not one under ``no_sync()``.
    group : str
        The ranks that it keeps equal (``'0, 2'``); empty where these are all.
    """

    module: Any
    reduced: tuple[Any, ...]
    frozen: tuple[Any, ...]
    ignored: tuple[Any, ...]
    buffers: tuple[tuple[str, Any], ...]
    broadcasts: bool
    synchronised: bool
    group: str = ""


class Converted(NamedTuple):
    """A gradient that NumPy cannot look at as it is.

    Attributes
    ----------
    array : ndarray
        Its values, on the host, of a dtype that NumPy has.
    spec : TensorSpec
        What the gradient itself looks like.
    """

    array: Any
    spec: TensorSpec


class OnDevice(NamedTuple):
    """A gradient on a device, where its statistics can be taken.

    Attributes
    ----------
    tensor : object
        The gradient.
    version : int
        The tensor's version: a write to it changes that.
    spec : TensorSpec
        What it looks like.
    itemsize : int
        Bytes of an element.
    take_statistics : callable
        Begins to take them, of a tensor; returns an object whose ``read()`` waits for them and returns
        :class:`~gradscope.inspect.records.moments.Moments`, or None where the device cannot.
    """

    tensor: Any
    version: int
    spec: TensorSpec
    itemsize: int
    take_statistics: Callable[[Any], Any]

    def is_memory_of(self, other: OnDevice) -> bool:
        """Whether it is the other, perhaps in another shape."""
        mine, its = self.tensor, other.tensor
        if mine is its:
            return self.version == other.version
        return (
            mine.data_ptr() == its.data_ptr()
            and (self.version, mine.dtype, mine.numel()) == (other.version, its.dtype, its.numel())
            and mine.is_contiguous()
            and its.is_contiguous()
        )


def hears_entries(observer: Observer) -> bool:
    """Whether an observer wants to be told before a node runs, which costs as much again as to be told after."""
    return hears(observer, "node_entered")


def hears_operator(observer: Observer, name: str) -> bool:
    """Whether an observer wants to be told of an operator that has run."""
    heard = observer.operators_heard
    return hears(observer, "operator_ran") and (heard is None or operator_of(name) in heard)


def hears(observer: Observer, method: str) -> bool:
    """Whether an observer has written a method of its own."""
    return getattr(getattr(observer, method), "__func__", None) is not getattr(Observer, method)


class Adapter(Protocol):
    """The questions that an instrument may ask of a framework."""

    name: str

    def of(self, value: Any) -> Adapter:
        """Return the adapter that answers for a tensor, node, module or task: itself, or one behind it."""

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` is a tensor of this framework."""

    def root(self, tensor: Any) -> tuple[Any, int] | None:
        """Return the node that a gradient of `tensor` enters, and at which input; None if it requires no grad."""

    def is_leaf(self, tensor: Any) -> bool | None:
        """Whether no operator has computed a tensor; None where a view's history can no longer be told."""

    def key(self, node: Any) -> int:
        """Return the stable identity of a node: the same as long as the node lives, never given to another."""

    def node_name(self, node: Any) -> str:
        """Return the node's name, e.g. ``'MulBackward0'``."""

    def sequence_nr(self, node: Any) -> int:
        """Return the sequence number, which orders ready nodes."""

    def edges(self, node: Any) -> Sequence[tuple[Any, int]]:
        """Return (node or None, input number) for each produced gradient."""

    def outputs(self, node: Any) -> tuple[TensorSpec, ...]:
        """Return what the forward operator returned: what the incoming gradients look like.

        Empty where the framework does not tell: see :func:`expected_spec`.
        """

    def saved(self, node: Any) -> Sequence[SavedView]:
        """Return the saved tensors."""

    def held(self, node: Any) -> Callable[[], dict[str, Any]]:
        """Return a function that lists a node's saved tensors by name, also after the node has released them.

        Those that a hook has packed are left alone.
        """

    def alias(self, node: Any, saved: SavedView) -> Any:
        """Return a tensor in the memory of one that `node` has saved, without history.

        Of elements that lie at one address it has one.
        """

    def exchange(self, node: Any, saved: SavedView, values: Any, version: int) -> Callable[[], None]:
        """Put other values and another version into the memory of a saved tensor; return what undoes that.

        Nobody is told of either.

        Parameters
        ----------
        values : Tensor or None
            As its :meth:`alias` has them; None leaves what is there.
        """

    def saved_bytes(self, nodes: Sequence[Any]) -> int | None:
        """Return the size of the memory that nodes have saved, each piece once; None where that takes long to tell."""

    def variable(self, node: Any) -> Any:
        """Return the leaf of an AccumulateGrad node, None for others."""

    def location(self, node: Any) -> Location | None:
        """Return the user's line that made the node, if it was recorded."""

    def blind(self, node: Any) -> str:
        """Return why an instrument cannot look inside a node (compiled, checkpointed); an empty string for most."""

    def inside(self, node: Any) -> tuple[InnerOperator, ...]:
        """Return what is inside of a compiled node, in the order of its backward; empty for others."""

    def inner_calls(self, node: Any) -> InnerCalls | None:
        """Return how the calls inside of a compiled node follow each other; None for others, and where no graph is."""

    def withheld(self, node: Any) -> tuple[int, ...]:
        """Return which of its gradients a compiled node never produces: inside, no way leads to what they are of."""

    def notes(self, node: Any) -> dict[Any, Any]:
        """Return a dictionary that lives as long as the node."""

    def notes_below(self, node: Any) -> Sequence[dict[Any, Any]]:
        """Return the notes of the nodes that a node's edges lead to, one for each edge that leads to any."""

    def memory_key(self, tensor: Any) -> Hashable:
        """Return what tensors that share memory share; valid as long as one of them lives."""

    def address(self, tensor: Any) -> Hashable:
        """Return where the memory of a tensor begins: what arrays that share it share too; its own key without any."""

    def own_address(self, tensor: Any) -> Hashable | None:
        """Return :meth:`address` of a tensor that its framework does not know as a view, None of a view."""

    def memory(self, tensor: Any) -> tuple[Hashable, Any]:
        """Return what :meth:`memory_key` does, and the one object that lives as long as a tensor's memory.

        Weak references can be made to that; it is None if the tensor has no memory of its own.
        """

    def memories(self, tensors: Sequence[Any]) -> Sequence[tuple[Hashable, Any]]:
        """Return the same of several tensors of one framework."""

    def region(self, tensor: Any) -> Region | None:
        """Return which bytes a tensor looks at; None if it has no memory of its own."""

    def is_grad_enabled(self) -> bool:
        """Whether operators are recorded on this thread."""

    def version(self, tensor: Any) -> int | None:
        """Return the version of a tensor's memory; None where none is kept."""

    def bits(self, tensor: Any) -> Any:
        """Return the bits of a tensor as they lie in memory, evenly spaced ones of a large one; None if it has none.

        A contiguous buffer, for a checksum, which may share memory with the tensor: hold on to that meanwhile.
        """

    def fingerprints(self, node: Any) -> tuple[Any, ...]:
        """Return version and checksum of the values of each saved tensor in turn, in the order of :meth:`saved`.

        Both are None of a tensor whose version is not kept, or that the node's derivative does not read. They are kept
        for each node: a tuple of numbers alone the garbage collector leaves alone.
        """

    def copy(self, tensor: Any) -> Any:
        """Return a copy of a tensor, without history."""

    def leaf_grad(self, leaf: Any) -> Any:
        """Return the gradient accumulated in a leaf, or None, without a warning."""

    def set_leaf_grad(self, leaf: Any, grad: Any) -> None:
        """Set it."""

    def hooks(self, node: Any) -> Sequence[NodeHook]:
        """Return the hooks that a backward runs at a node, as far as they are known."""

    def run_node(self, node: Any, grad_outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run one node alone, without hooks; its saved tensors must still be there, and stay."""

    def gradients(self, outputs: Sequence[Any], grads: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return the gradients of `leaves` when `grads` enter at `outputs`; None for one that is not reached.

        No hook of a leaf runs, nothing is accumulated, and saved tensors stay.
        """

    def failed_call(self, error: BaseException, frames: Sequence[FrameType]) -> FailedCall | None:
        """Return the node at which a backward without an observer has failed; None if `error` left no backward.

        `frames` are those that the error has left, innermost first.
        """

    def keep_saved(self, task: Any) -> Callable[[], None] | None:
        """Make a backward that runs under observation keep the saved tensors of nodes from here on.

        Return what lets go of those of the nodes that have run, as the backward would have; None where it keeps them
        itself, or cannot be made to.
        """

    def task_roots(self, task: Any) -> Sequence[tuple[Any, int]]:
        """Return where the gradients of a backward enter."""

    def task_runs(self, task: Any, node: Any) -> bool:
        """Whether a backward will run `node`; not all do when gradients of some inputs only are wanted."""

    def task_nodes(self, task: Any) -> Sequence[Any]:
        """Return the nodes that a backward may run, in an order that depends on the graph alone."""

    def task_reach(self, task: Any) -> tuple[Sequence[Any], AbstractSet[str]]:
        """Return the leaves that a backward may reach, and the names of the nodes that it may run: less than `plan`."""

    def facts(self, nodes: Sequence[Any]) -> NodeFacts:
        """Return at once what tells nodes from others."""

    def plan(self, task: Any) -> Plan:
        """Return the nodes that a backward under observation may run, and at once what tells them from others."""

    def to_host(self, tensor: Any) -> numpy.ndarray:
        """Return the values as a NumPy array, which may share memory with the tensor."""

    def carried(self, call: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return what a node was given and has made as it is quickest to be had: arrays or tensors, not to be written.

        None stands for None.
        """

    def hosts(self, call: Any, values: bool = True) -> tuple[Sequence[Any], int]:
        """Return the values of the gradients that a node was given and has made, and how many it was given.

        Each value is a NumPy array, which may share the gradient's memory, None for None, or Converted. Where values
        are not asked for it may be OnDevice.
        """

    def moments(self, gradients: Sequence[Any]) -> Sequence[Moments | None]:
        """Return the statistics of gradients, taken where they are: of those on a device; None of others, and of None.

        All of them are waited for once, and those of the latest gradients are remembered.
        """

    def are_small_and_finite(self, carried: Sequence[Any]) -> bool:
        """Whether tensors, or what :meth:`carried` gives, are few numbers each on the host, all of them finite.

        None counts as such. It costs a fraction of a look at the arrays; False says nothing.
        """

    def passing_norms(self) -> Callable[[Sequence[Any], Sequence[Any]], tuple[float | None, bool]]:
        """Return a function for the nodes that a backward passes, to be called with what each was given and has made.

        It returns the 2-norm of the former, computed where that is, and whether the node has made a NaN or an infinity
        out of gradients without one.
        """

    def entering(self, task: Any) -> Sequence[Any]:
        """Return the gradients that enter a backward about to run its first node, as ``node_passed`` has them."""

    def small(self, call: Any, most: int, taken: list[Any]) -> tuple[int, int] | None:
        """Take the gradients that a node was given and has made as bytes, where all are on the host, dense and small.

        Of each three entries are added to a list: its bytes, dtype and shape, or three times None for None.

        Parameters
        ----------
        call : object
            What `Observer.node_exited` is given.
        most : int
            How many bytes a gradient may have.
        taken : list
            To which they are added.

        Returns
        -------
        tuple of int or None
            How many it was given, and has made; None where one is to be had by `hosts` alone, and none was added.
        """

    def spec(self, tensor: Any) -> TensorSpec:
        """Return shape, dtype and device of a tensor."""

    def tensor_like(self, value: Any, spec: TensorSpec) -> Any:
        """Return a new tensor of shape, dtype and device `spec` from a number, array or tensor."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Return a context in which operators are not recorded."""

    def fork_random(self) -> AbstractContextManager[Any]:
        """Return a context after which the generators go on as if nothing had been drawn in it."""

    def is_parameter(self, tensor: Any) -> bool:
        """Whether a tensor may be a module's parameter, by its class."""

    def tensor_classes(self) -> tuple[type, ...]:
        """Return the classes that all tensors are instances of."""

    def module_classes(self) -> tuple[type, ...]:
        """Return the classes that all modules are instances of."""

    def is_called_traced_graph(self, module: Any) -> bool:
        """Whether a module about to run is a traced graph, and it is the framework's own code that calls it."""

    def named_parameters(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return the parameters of a module with their paths."""

    def named_modules(self, module: Any) -> Sequence[tuple[str, Any]]:
        """Return a module and those inside it with their paths."""

    def batched(self, tensor: Any) -> tuple[int, ...]:
        """Return the sizes by which a transform (vmap) has batched a tensor, whose shape leaves them out."""

    def loss_scales(self) -> Sequence[tuple[float, float]]:
        """Return the scale of each GradScaler that is in use, and what it multiplies that by after an overflow."""

    # --- ranks ---

    def checksums(self, tensors: Sequence[Any], *, norms: bool = True) -> tuple[Sequence[int], Sequence[float]]:
        """Return the 64-bit checksum of the bits of each tensor and its 2-norm; 0 and 0.0 for None.

        Of a tensor that is spread over ranks they are those of the part that is here; the checksums of all parts add up
        to that of the whole. Without `norms` those need not be computed.
        """

    def part_of(self, tensor: Any) -> str:
        """Return which part of the whole a tensor of this rank is; an empty string where it is all of it."""

    def group_of(self, tensor: Any) -> str:
        """Return the ranks over which a tensor is spread (``'0, 2'``); an empty string where all are, or none."""

    def holders_of(self, tensor: Any) -> str:
        """Return the ranks that hold the same part of a tensor; an empty string where these are all, or one."""

    def parallel_modules(self, modules: Sequence[Any]) -> Sequence[Any]:
        """Return those of some modules that reduce the gradients of what they wrap over all ranks."""

    def data_parallel(self, module: Any) -> DataParallel:
        """Return what such a module keeps equal on all ranks."""

    def stand_ins(self, module: Any) -> Sequence[tuple[Any, Any]]:
        """Return the parameters of a module that are spread over ranks, each with the whole one that runs in its place.

        Nodes accumulate into the latter, optimizers hold the former.
        """

    def rank_store(self) -> Any:
        """Return the keys and values that all ranks of a process group share; None where there is no group.

        It has ``set(key, bytes)``, ``get(key)``, ``check([key])`` and ``delete_key(key)``.
        """

    def generator_facts(self) -> dict[str, int]:
        """Return the seed of the generator of random numbers, and a checksum of where it has come to."""

    # --- running ---

    def task_is_at(self, task: Any, node: Any) -> bool:
        """Whether a backward still runs, on this thread, the node that it was told last to have entered."""

    def backward(self, loss: Any, **options: Any) -> Callable[[], Any]:
        """Return the call that runs the backward of `loss`."""

    def observe(
        self,
        observer: Observer,
        *,
        forward: bool,
        backward: bool,
        operators: bool = False,
        writes: bool = False,
        own_writes: bool = False,
    ) -> Observation:
        """Tell `observer` what happens in all threads.

        In forward (modules, recorded operators), in backward, for every operator that runs, and for every write. Those
        that the program itself calls for, `own_writes`, cost next to nothing: of PyTorch's, that leaves out what is
        written inside another call, such as the statistics of a batch norm.
        """


def expected_spec(adapter: Adapter, node: Any, nr: int) -> TensorSpec | None:
    """Return what gradient a node expects at an input; None where the framework does not tell (PyTorch 2.4)."""
    specs = adapter.outputs(node)
    return specs[nr] if nr < len(specs) else None


# The reasons why nobody can look inside a node, by the node's name.
CHECKPOINTS = {
    "CheckpointFunctionBackward": "checkpoint: its inside is recomputed, and differentiated in a backward of its own",
}


def refuse_checkpoint(name: str) -> None:
    """Raise for a node that cannot be run alone: what it does is not undone by forgetting its results.

    Parameters
    ----------
    name : str
        The node's.

    Raises
    ------
    RuntimeError
        Always.
    """
    if name in CHECKPOINTS:
        raise RuntimeError(
            f"{name} runs a backward of its own, which fills the .grad of the leaves inside: it is not run beside the "
            "program\nPass use_reentrant=False to checkpoint()."
        )


NOT_TOLD = """\
this PyTorch does not tell what gradient a node expects, so no backward can be run beside the program
Install PyTorch 2.5 or newer."""
