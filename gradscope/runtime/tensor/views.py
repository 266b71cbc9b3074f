"""Views and in-place history: which base a view belongs to, and what a write does to both.

A differentiable view keeps its edge here instead of on the tensor, with the version at which the edge was made. When
the memory has been written through another alias since, the edge is made anew from the base (PyTorch's
``AsStridedBackward0``); when the view itself is written, the base gets a :class:`CopySlices`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import dispatch, state
from ..dispatch import OPERATORS
from ..dispatch import TENSOR_OPERATORS as F
from ..errors import InplaceError, SavedTensorFreedError
from ..graph.accumulate_grad import accumulate_edge
from ..graph.edges import Edge, edge_to, ends_of, own_edge
from ..graph.graph_node import Node, NodeExtra
from ..graph.saved_tensors import SavedPart, SavedResult, SavedTensor
from ..memory import device
from ..memory.storage import (
    Geometry,
    contiguous_strides,
    extent_of,
    geometry_of,
    memory_of,
    offset_of,
    strided_view,
)
from .inplace_checks import forbidden_view, refuse
from .math_bits import mark, resolve_bits, view_with_bits

if TYPE_CHECKING:
    from ..ops.declaration.registry import Operator
    from .tensor import Tensor

__all__ = [
    "CopySlices",
    "RereadView",
    "ViewInfo",
    "edge_of",
    "rebase",
    "reread",
    "saved_result",
]

Step = Callable[["Tensor"], "Tensor"]


class ViewInfo:
    """The facts about a view: its root base, its edge, and how it was made.

    Attributes
    ----------
    base : Tensor
        The root: never itself a view.
    version : int
        The version of the memory at which `edge` was right.
    creation : {"default", "multi", "no_grad", "custom", "inference"}
    operator : str
        The operator that made the view, for messages.
    site : CallSite or None
        Where it was made, when call sites were recorded.
    """

    __slots__ = ("base", "creation", "edge", "operator", "output_nr", "site", "version")

    # How the view's elements are read out of its memory: as they lie there, but for a RereadView.
    steps: tuple[Step, ...] = ()

    def __init__(self, base: Tensor, creation: str, operator: str, version: int, output_nr: int = 0) -> None:
        self.base = base
        self.edge: Edge | None = None
        self.creation = creation
        self.operator = operator
        self.version = version
        self.output_nr = output_nr
        self.site: Any = None


class RereadView(ViewInfo):
    """The facts about a view that reads its memory otherwise than its base does: conjugated, or as another dtype.

    Sizes and strides alone do not lead to it from the base: its edge is made anew by the steps that made the view.

    Attributes
    ----------
    steps : tuple of callable
        What makes the view of its base.
    """

    __slots__ = ("steps",)

    def __init__(self, view: ViewInfo, steps: tuple[Step, ...]) -> None:
        super().__init__(view.base, view.creation, view.operator, view.version, view.output_nr)
        self.edge, self.site = view.edge, view.site
        self.steps = steps


def reread(source: Tensor, output: Tensor, op: Operator, *arguments: Any) -> None:
    """Let `output`, the view that `op` has just made of `source`, be read as the declaration of `op` says."""
    if op.reads != "dtype":
        mark(output, source._conjugated != (op.reads == "conj"), source._negated != (op.reads == "neg"))
    if output._view is None:
        return
    before = () if source._view is None else steps_to(source, source._view)
    output._view = RereadView(output._view, (*before, lambda tensor: op.function(tensor, *arguments)))


def steps_to(tensor: Tensor, view: ViewInfo) -> tuple[Step, ...]:
    """Return what makes a view of its base, or of what lies in memory as the base does."""
    return view.steps or (strided_step(tensor._memory, view.base._memory),)


def _place_in(part: Any, memory: Any) -> Geometry:
    """Return how `part` lies in `memory`; what was given other memory lies there as in its own, as in PyTorch."""
    shape, strides, offset = geometry_of(part, memory)
    if part.base is not memory and part.size and memory_of(part) is not memory_of(memory):
        offset = offset_of(part) - offset_of(memory)
    return shape, strides, offset


def strided_step(part: Any, memory: Any) -> Step:
    """Return what makes a tensor that lies as `part` does of one that lies as `memory` does."""
    size, stride, offset = _place_in(part, memory)
    return lambda tensor: F.as_strided(tensor, size, stride, offset_of(tensor._memory) + offset)


def taken(base: Tensor, steps: tuple[Step, ...]) -> Tensor:
    """Return what `steps` make of `base`."""
    for step in steps:
        base = step(base)
    return base


def edge_of(tensor: Tensor) -> Edge | None:
    """Return where the gradient of `tensor` goes: its node, its AccumulateGrad, or None."""
    view = tensor._view
    if view is None:
        edge = own_edge(tensor)
    else:
        edge, counter = view.edge, tensor._vc
        if counter is not None and view.version != counter.version:
            edge = current_view_edge(tensor, view)
    if edge is not None:
        return edge
    # A view asked for gradients after it was made may require grad only through its base: it leads nowhere then.
    return accumulate_edge(tensor) if tensor._flags & state.GRAD else None


def current_view_edge(tensor: Tensor, view: ViewInfo) -> Edge | None:
    """Return a view's edge, made anew when its memory was written through another alias."""
    counter = tensor._vc
    if counter is None or view.version == counter.version:
        return view.edge
    base = view.base
    if base._flags & state.INERT:
        view.edge = None
        tensor._flags = tensor._flags & ~state.GRAD | state.INERT
    if view.edge is None and not base.requires_grad:
        return None
    if view.creation != "default":
        writes = [w for w in counter.writes or () if w.version > view.version]
        raise refuse(InplaceError(forbidden_view(view, indirect=True), view.creation, tensor, view, writes))
    node = _view_node(tensor, base, edge_of(base))
    if node is None:  # a base without history cannot make it anew: the tensor is still what it was of a leaf
        view.version = counter.version
    else:
        tensor._set_edge(node)
    return view.edge


def _view_node(tensor: Tensor, base: Tensor, base_edge: Edge | None, part: Geometry | None = None) -> Any:
    """Return the node of a view as a part of its base, in which it lies as `part` says, where that is known."""
    if tensor._view is not None and tensor._view.steps:
        return _reread_node(base, tensor._view.steps)
    memory = base._memory
    part = part or _place_in(tensor._memory, memory)
    shape, strides, _ = geometry_of(memory, memory)
    return _as_strided_node(part, base_edge, (shape, strides, offset_of(memory)), base._dtype, type(memory))


def _as_strided_node(part: Geometry, base_edge: Edge | None, base: Geometry, dtype: Any, kind: type) -> Any:
    """Return the node of a part, counted from the first element of a base, which lies in its storage as `base` says."""
    node: Any = OPERATORS["as_strided.size"].node_class()  # type: ignore[misc]
    node.edges = (base_edge,)
    node.seq = state.next_sequence()
    node.extra = None
    node.shape, node.dtype, node.kind = part[0], dtype, kind
    node.s_self_shape, node.s_self_strides, node.s_self_offset = base
    node.s_size, node.s_stride = part[:2]
    node.s_storage_offset = base[2] + part[2]
    return node


def _reread_node(base: Tensor, steps: tuple[Step, ...]) -> Any:
    """Return the node of a view that reads its memory otherwise than its base does."""
    before, state.local.grad_enabled = state.local.grad_enabled, True
    try:
        return taken(base, steps).grad_fn
    finally:
        state.local.grad_enabled = before


class CopySlices(Node):
    """The history of a base one of whose views was written: the operator's node runs on the view's part only.

    The first edge leads to the base before the write, the others are those of the operator's other arguments.
    """

    __slots__ = (
        "base_bits", "base_geometry", "freed", "function", "has_bits", "steps", "view_bits", "view_dtype",
        "view_geometry",
    )  # fmt: skip

    node_name = "CopySlices"

    def __init__(self, base: Tensor, view: Tensor, function: Node) -> None:
        array = base._memory
        self.edges = (edge_of(base) if base.requires_grad else None, *function.edges[1:])
        self.seq = state.next_sequence()
        # Pack hooks, which may have their say later, run in a backward as a user's code does.
        self.extra = NodeExtra() if function.extra is not None or state.special else None
        self.shape, self.dtype, self.kind = array.shape, array.dtype, type(array)
        # It is None while the base lies contiguously.
        self.base_geometry = None if array.flags.c_contiguous else geometry_of(array, array)
        self.view_geometry = _place_in(view._memory, array)
        # The gradient of what lies in memory is that of the elements, conjugated or negated as they are.
        self.base_bits = (base._conjugated, base._negated)
        self.view_bits = (view._conjugated, view._negated)
        self.has_bits = bool((base._flags | view._flags) & state.MATH_BITS)
        self.steps = () if view._view is None else view._view.steps
        self.view_dtype = view._dtype
        self.function = function
        self.freed = False

    def apply(self, grad: Any) -> Any:
        """Run the operator's derivative on the view's part of the gradient, on bare arrays."""
        if self.freed:
            raise SavedTensorFreedError(self)
        if grad is None:
            return (None,) * len(self.edges)
        whole, flat = self._laid_out(grad)
        part = strided_view(flat, self.view_geometry, self.view_dtype)
        if not self.has_bits:
            results = self.function.apply(part.copy())
            if self.edges[0] is not None:
                part[...] = 0 if results[0] is None else results[0]
            return (None if self.edges[0] is None else whole, *results[1:])
        results = self.function.apply(resolve_bits(part.copy(), *self.view_bits))
        if self.edges[0] is None:
            return (None, *results[1:])
        part[...] = 0 if results[0] is None else resolve_bits(results[0], *self.view_bits)
        return (resolve_bits(whole, *self.base_bits), *results[1:])

    def apply_graph(self, grad: Any) -> Any:
        """Run it on tensors, so that it is itself recorded."""
        if self.freed:
            raise SavedTensorFreedError(self)
        if grad is None:
            return (None,) * len(self.edges)
        geometry = self.base_geometry
        grad = view_with_bits(grad, *self.base_bits)
        if geometry is None:
            whole = flat = grad.clone(memory_format="contiguous")
        else:
            flat = F.scatter_strided(grad, extent_of(geometry), geometry[1], 0)
        if self.view_dtype != self.dtype:
            pairs = F.view_as_real(flat) if flat.is_complex() else F.view_as_complex(flat.view(-1, 2))
            part = F.as_strided(pairs, *self.view_geometry)
        else:
            part = F.as_strided(flat, *self.view_geometry)
        part = view_with_bits(part, *self.view_bits)
        results = self.function.apply_graph(part.clone())
        if self.edges[0] is None:
            return (None, *results[1:])
        part.copy_(F.zeros_like(part) if results[0] is None else results[0])
        if geometry is not None:
            whole = F.as_strided(flat, *geometry)
        return (view_with_bits(whole, *self.base_bits), *results[1:])

    def _laid_out(self, grad: Any) -> tuple[Any, Any]:
        """Return a copy of `grad` whose elements lie in memory as the base's do, and an array of all that memory."""
        xp = device.array_module(grad)
        if self.has_bits:
            grad = resolve_bits(grad, *self.base_bits)
        if self.base_geometry is None:
            whole = xp.array(grad, order="C", copy=True)
            return whole, whole
        flat = xp.zeros(extent_of(self.base_geometry), dtype=grad.dtype)
        whole = strided_view(flat, self.base_geometry)
        whole[...] = grad
        return whole, flat

    def part_edge(self) -> Edge:
        """Return the edge of the view that was written, as a part of the base after the write."""
        whole = self.base_geometry or (self.shape, contiguous_strides(self.shape), 0)
        if not self.steps:
            return edge_to(_as_strided_node(self.view_geometry, self, whole, self.dtype, self.kind))
        # Operators that read no element make the nodes: any memory will do.
        memory = device.module_of(self.kind).empty(extent_of(whole), dtype=self.dtype)
        base = dispatch.tensor_type._wrap(strided_view(memory, whole))
        mark(base, *self.base_bits)
        base._set_edge(edge_to(self))
        return edge_to(_reread_node(base, self.steps))

    @property
    def saved_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names that are released after a run: the written view's node, as in PyTorch even when it saved nothing."""
        return ("function",)

    def release(self) -> None:
        """Let go of what the operator's node saved."""
        self.freed = True
        self.function.release()

    def saved_tensors_info(self) -> tuple[SavedTensor, ...]:
        """Return what the written view's node saved."""
        return self.function.saved_tensors_info()

    @property
    def call_site(self) -> Any:
        """Where the view was written."""
        return self.function.call_site


def rebase(tensor: Tensor, node: Node) -> None:
    """Hang `tensor` on the node of the in-place operator that has just written it."""
    view = tensor._view
    if view is None:
        tensor._set_edge(edge_to(node))
        return
    base = view.base
    history = CopySlices(base, tensor, node)
    base._set_edge(history)
    tensor._set_edge(_view_node(tensor, base, edge_of(base), history.view_geometry))


def saved_result(tensor: Tensor, nr: int = 0) -> SavedResult:
    """Return what the node that has just written `tensor`, its output `nr`, saves of it."""
    view = tensor._view
    if view is None:
        return SavedResult(tensor._array, tensor._counter(), nr)
    history = edge_of(view.base)
    assert history is not None
    return SavedPart(tensor._array, tensor._counter(), nr, weakref.ref(ends_of(history)[0]))
