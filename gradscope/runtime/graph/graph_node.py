"""The nodes of the backward graph.

A node is made by an operator (its class comes from the operator's declaration), by a user's ``Function`` or, for a
leaf, in :mod:`.accumulate_grad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import dispatch
from ..memory import device
from ..memory.dtype import BY_NUMPY
from .edges import Edge, ends_of
from .hooks import HookTable, RemovableHandle, add_hook
from .saved_tensors import RELEASED, SavedTensor, is_saved

__all__ = ["GradientEdge", "InputMetadata", "Node", "NodeExtra"]


class GradientEdge(NamedTuple):
    """A place in the graph: gradients can be taken with respect to it, or sent into it.

    Attributes
    ----------
    node : Node
        The node at which the gradient arrives.
    output_nr : int
        For which result of its operator.

    See Also
    --------
    gradscope.autograd.graph.get_gradient_edge : returns that of a tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * 3
    >>> edge = gs.autograd.graph.GradientEdge(y.grad_fn, 0)
    >>> gs.autograd.grad(y.exp().sum(), edge)[0] == y.exp()
    tensor([True, True])
    """

    node: Node
    output_nr: int


class InputMetadata(NamedTuple):
    """The shape, dtype and device that a node expects of an incoming gradient."""

    shape: tuple[int, ...]
    dtype: Any
    device: device.device


class NodeExtra:
    """The attributes that few nodes have: hooks.

    A node that has one runs with the thread's modes as a backward sets them, so one that calls a user's code has one.
    """

    __slots__ = ("posthooks", "prehooks", "retain", "tensor_hooks", "topological")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, HookTable] | None = None
        self.retain: dict[int, Any] | None = None
        self.prehooks: HookTable | None = None
        self.posthooks: HookTable | None = None
        self.topological: int | None = None


class Node:
    """A node of the backward graph (``tensor.grad_fn``).

    Attributes
    ----------
    next_functions : tuple of (Node or None, int)
        Where the produced gradients go.
    metadata : dict
        Free for the user's notes; it lives as long as the node.

    See Also
    --------
    get_gradient_edge, Tensor.grad_fn

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> node = (x * 2).grad_fn
    >>> node.name(), [edge.name() for edge, _ in node.next_functions if edge is not None]
    ('MulBackward0', ['AccumulateGrad'])
    """

    __slots__ = ("__weakref__", "_notes", "_site", "dtype", "edges", "extra", "kind", "seq", "shape")

    # The class that an operator's declaration makes fills these in.
    node_name: str = "Node"
    saved_names: tuple[str, ...] = ()
    multi: bool = False
    # Whether backward may start at the node without a gradient: the node has one of its own.
    seedless: bool = False

    edges: tuple[Edge | None, ...]
    shape: tuple[int, ...]
    dtype: Any
    kind: type
    extra: NodeExtra | None
    seq: int
    # They are unset until somebody records a call site, or asks for the metadata.
    _site: Any
    _notes: dict[Any, Any] | None

    # --- what the engine calls ---

    def apply(self, grad: Any) -> Any:
        """Run the derivative on bare arrays; return one gradient (or None) per edge."""
        raise NotImplementedError

    def apply_graph(self, grad: Any) -> Any:
        """Run the derivative on tensors, so that it is itself recorded."""
        raise NotImplementedError

    def spend(self, grad: Any) -> Any:
        """Run :meth:`apply`, then release the saved tensors."""
        results = self.apply(grad)
        self.release()
        return results

    def release(self) -> None:
        """Let go of the saved tensors."""

    # --- what people call ---

    def name(self) -> str:
        """Return the name, e.g. ``'MulBackward0'``."""
        return self.node_name

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges to the nodes that receive this node's gradients; ``(None, 0)`` where none is wanted."""
        # What ends_of() does, without its calls.
        ends: list[Any] = [(None, 0) if e is None else e if type(e) is tuple else (e, 0) for e in self.edges]
        return tuple(ends)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        try:
            notes = self._notes
        except AttributeError:
            notes = None
        if notes is None:
            notes = self._notes = {}
        return notes

    @property
    def call_site(self) -> Any:
        """Where the forward operator was called, or None when call sites were not recorded."""
        return getattr(self, "_site", None)

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        # ``kind``, the type of the output's array, is left unset for NumPy's.
        place = device.device_of_type(getattr(self, "kind", device.ndarray))
        return tuple(InputMetadata(s, BY_NUMPY[d], place) for s, d in self.output_specs())

    def output_specs(self) -> Sequence[tuple[tuple[int, ...], Any]]:
        """Return (shape, NumPy dtype) of each output of the forward operator."""
        return [(self.shape, self.dtype)]

    def _sequence_nr(self) -> int:
        return self.seq

    def topological_nr(self) -> int:
        """Return the length of the longest path from this node to a leaf (computed once, then kept)."""
        order: list[Node] = []
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            node, expanded = stack.pop()
            extra = node.extras()
            if extra.topological is not None:
                continue
            if expanded:
                below = [ends_of(edge)[0].extras().topological or 0 for edge in node.edges if edge is not None]
                extra.topological = 1 + max(below) if below else 0
                order.append(node)
                continue
            stack.append((node, True))
            stack.extend((ends_of(edge)[0], False) for edge in node.edges if edge is not None)
        return self.extras().topological or 0

    def register_prehook(self, hook: Any) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node runs; a returned tuple replaces the incoming gradients."""
        extra = self.extras()
        if extra.prehooks is None:
            extra.prehooks = HookTable()
        return add_hook(extra.prehooks, hook)

    def register_hook(self, hook: Any) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node ran; a returned tuple replaces its results."""
        extra = self.extras()
        if extra.posthooks is None:
            extra.posthooks = HookTable()
        return add_hook(extra.posthooks, hook)

    def _register_hook_dict(self, table: HookTable) -> None:
        self.extras().posthooks = table

    def extras(self) -> NodeExtra:
        """Return the holder of hooks and metadata, made on first use."""
        extra = self.extra
        if extra is None:
            extra = self.extra = NodeExtra()
        return extra

    def saved_tensors_info(self) -> tuple[SavedTensor, ...]:
        """Return every saved tensor of this node, by name, without unpacking any."""
        found: list[SavedTensor] = []
        for name in self.saved_names:
            value = getattr(self, "s_" + name)
            if isinstance(value, list):
                found.extend(SavedTensor(self, name, i) for i, item in enumerate(value) if is_saved(item))
            elif value is RELEASED or is_saved(value):
                found.append(SavedTensor(self, name))
        return tuple(found)

    def __call__(self, *grad_outputs: Any) -> Any:
        """Run this node alone on the given gradients (tensors or None); return the gradients it produces."""
        return dispatch.run_node_alone(self, grad_outputs)

    def __repr__(self) -> str:
        return f"<{self.node_name} object at {id(self):#x}>"
