"""AccumulateGrad, the node at a leaf: it adds the gradient that arrives to the leaf's ``grad``."""

from __future__ import annotations

import threading
import weakref
from sys import getrefcount
from typing import Any

from .. import dispatch, state
from ..kernels.elementwise import add_to
from ..memory import device
from ..tensor.math_bits import mark
from .edges import ACCUMULATE_SEQUENCE, Edge, hold_edge
from .graph_node import Node

__all__ = ["AccumulateGrad", "accumulate_edge"]

_accumulate_lock = threading.Lock()

# Flags of a `.grad` into whose array a sum cannot be written as it lies there, or only in inference mode.
_UNPLAIN = state.MATH_BITS | state.INFERENCE


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives into ``variable.grad``.

    The leaf holds its edge, so the node holds not the leaf but what it needs of it: the array, for the layout, and the
    leaf's :class:`TensorMeta`, where gradient and hooks live. That is no cycle, and a leaf that only the graph still
    needs may go.
    """

    __slots__ = ("array", "leaf_meta", "leaf_type", "reference")

    node_name = "AccumulateGrad"
    edges = ()
    seq = ACCUMULATE_SEQUENCE

    def __init__(self, variable: Any) -> None:
        self.reference = weakref.ref(variable)
        self.leaf_type = type(variable)
        self.leaf_meta = variable._extras()
        self.extra = self._site = self._notes = None
        array = self.array = variable._memory
        self.shape = variable._shape
        self.dtype = array.dtype
        self.kind = type(array)

    @property
    def variable(self) -> Any:
        """The leaf; when nobody holds it any more, another tensor with its memory, gradient and hooks."""
        leaf = self.reference()
        if leaf is None:
            leaf = self.leaf_type._wrap(self.array)
            leaf._meta = self.leaf_meta
            mark(leaf, self.leaf_type._conjugated, self.leaf_type._negated)
            leaf._flags |= state.GRAD
            hold_edge(leaf, self)
            self.reference = weakref.ref(leaf)
        return leaf

    def accumulate(self, grad: Any) -> None:
        """Add the bare array `grad`; take it as it is when nobody else holds it."""
        _accumulate_lock.acquire()  # `with` takes half as long again
        try:
            meta = self.leaf_meta
            old = meta.grad
            if old is None:
                held = getrefcount(grad)
                meta.grad = dispatch.tensor_type._wrap(_as_gradient(grad, self.array, held), self.shape)
                return
            total, shape = old._array, old._shape
            try:
                # What arrives has been held against this node's shape and dtype, which are quicker to read.
                if shape != self.shape or old._dtype is not self.dtype or old._flags & _UNPLAIN:
                    raise ValueError
                if shape or type(total) is not device.ndarray:
                    add_to(total, grad)
                else:
                    # This takes a quarter of the time of a sum of 0-d arrays. The number is the same: a sum of two
                    # floats taken in double precision and rounded to half its digits is the correctly rounded one.
                    total[()] = total.item() + grad.item()
            except ValueError:  # .grad has another dtype or shape, is read-only, a conjugate or an inference tensor
                if old._flags & _UNPLAIN:
                    if old._flags & state.INFERENCE:
                        old._check_inplace(recording=False)
                    old._write(total + grad)
                    old._bump("AccumulateGrad")
                    return
                meta.grad = old.detach() + dispatch.tensor_type._wrap(device.array_module(self.array).asarray(grad))
                return
            counter = old._vc
            if counter is None or state.special:
                old._bump("AccumulateGrad")
            else:
                counter.version += 1
        finally:
            _accumulate_lock.release()

    def accumulate_graph(self, grad: Any) -> None:
        """Add the tensor `grad`, out of place, so that the sum stays in the graph."""
        with _accumulate_lock:
            meta = self.leaf_meta
            if meta.grad is not None:
                meta.grad = meta.grad + grad
                return
            # The leaf gets a copy, because other receivers may hold the same tensor, in the shape that it has now.
            leaf = self.reference()
            array = self.array if leaf is None else leaf._memory
            xp = device.array_module(array)
            meta.grad = dispatch.tensor_type._wrap(xp.empty_like(array, dtype=grad._dtype)).copy_(grad)


def _refcount_probe(grad: Any) -> int:
    return getrefcount(grad)


def _measure_unshared() -> int:
    grad = device.numpy.zeros(1)
    return _refcount_probe(grad)


# How many references a gradient has when only its receiver holds it; measured, because it differs between Pythons.
UNSHARED = _measure_unshared()


def _base_references(grad: Any) -> int:
    return getrefcount(grad.base)


# The same of the array of which only the gradient is a view.
UNSHARED_BASE = _base_references(device.numpy.zeros(2).reshape(1, 2))


def _is_all_of_a_lone_base(grad: Any) -> bool:
    """Whether a gradient is a view of all of an array that nobody else holds: what a formula has reshaped."""
    base = grad.base
    if type(base) is not device.ndarray or base.nbytes != grad.nbytes or not base.flags.owndata:
        return False
    del base
    return _base_references(grad) <= UNSHARED_BASE


def _as_gradient(grad: Any, variable: Any, held: int) -> Any:
    """Return `grad` itself if it can be taken over, else a copy laid out like the leaf."""
    on_host = type(grad) is device.ndarray
    if not on_host and not device.is_array(grad):  # NumPy's operators return numbers, not 0-d arrays
        return device.array_module(variable).asarray(grad)
    unshared = held <= UNSHARED and (grad.base is None or _is_all_of_a_lone_base(grad))
    if unshared and grad.strides == variable.strides and (not on_host or grad.flags.writeable):  # CuPy has no such flag
        return grad
    if not variable.flags.c_contiguous and variable.size:
        copy = device.array_module(variable).empty_like(variable, dtype=grad.dtype)
        copy[...] = grad
        return copy
    copy = grad.copy(order="C")
    return copy if copy.ndim else device.array_module(variable).asarray(copy)  # NumPy's sums of 0-d arrays are scalars


def accumulate_edge(leaf: Any) -> Edge:
    """Return the edge into a leaf's AccumulateGrad, made on first use.

    The leaf keeps it. A view that became a leaf keeps it weakly instead: its edge must stay open to what happens to its
    base; and so does a leaf that got another shape.
    """
    meta = leaf._meta
    node = None if meta is None or meta.accumulator is None else meta.accumulator()
    if node is not None:
        return node
    node = AccumulateGrad(leaf)
    if leaf._view is None:
        leaf._meta.accumulator = None
        hold_edge(leaf, node)
    else:
        leaf._meta.accumulator = weakref.ref(node)  # the node has made _meta
    return node
