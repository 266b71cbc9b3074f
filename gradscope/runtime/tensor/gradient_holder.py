"""The part of a tensor beside its values: the gradient that backward accumulates, and the hooks on its way there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..graph.edges import Edge, ends_of
from ..graph.graph_node import Node
from ..graph.hooks import HookTable, RemovableHandle, add_hook
from ..memory import dtype as dtypes
from ..user_warnings import warn
from .views import edge_of

if TYPE_CHECKING:
    from ..ops.random.random import Sampler
    from .tangents import ForwardGrad
    from .tensor import Tensor

__all__ = ["GradientHolder", "TensorMeta"]


class TensorMeta:
    """The attributes that few tensors have: a gradient, hooks, a name."""

    __slots__ = (
        "accumulator",
        "detached_at",
        "aside",
        "extra",
        "forward",
        "grad",
        "hooks",
        "name",
        "post_accumulate",
        "retains_grad",
        "sampler",
    )

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.accumulator: weakref.ref[Node] | None = None
        self.detached_at = -1  # the sequence number at which detach_() cut the history; -1 where it did not
        self.hooks: HookTable | None = None
        self.post_accumulate: HookTable | None = None
        self.retains_grad = False
        self.name: str | None = None
        self.sampler: Sampler | None = None
        self.extra: dict[str, Any] | None = None
        self.forward: ForwardGrad | None = None
        self.aside: Edge | None = None  # graph.hold_edge() says what for


class GradientHolder:
    """The part of a tensor that holds its gradient, and says what is to happen when one arrives."""

    __slots__ = ()

    _array: Any
    _dtype: Any
    _meta: TensorMeta | None
    shape: Any
    dtype: Any
    device: Any
    requires_grad: Any
    is_leaf: Any
    _known_edge: Callable[[], Edge | None]
    _extras: Callable[[], TensorMeta]

    @property
    def _grad(self) -> Tensor | None:
        return None if self._meta is None else self._meta.grad

    @property
    def _backward_hooks(self) -> HookTable | None:
        edge = self._known_edge()
        if edge is None:
            return None if self._meta is None else self._meta.hooks
        node, nr = ends_of(edge)
        return None if node.extra is None or node.extra.tensor_hooks is None else node.extra.tensor_hooks.get(nr)

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None."""
        meta = self._meta
        grad = None if meta is None else meta.grad
        if grad is None and not (meta is not None and meta.retains_grad) and self._known_edge() is not None:
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
                "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor "
                "by mistake, make sure you access the leaf Tensor instead.",
            )
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            if self._meta is not None:
                self._meta.grad = None
            return
        self._check_grad(value)
        self._extras().grad = value

    @grad.deleter
    def grad(self) -> None:
        if self._meta is not None:
            self._meta.grad = None

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, GradientHolder):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad\nAssign a clone().")
        if value._dtype != self._dtype and self.grad_dtype is not None:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with grad_dtype "
                f"'{self.dtype}'.\nConvert it with .to(), or set grad_dtype to None."
            )
        if value.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient located on device '{value.device}' to a tensor located on device "
                f"'{self.device}'. Please ensure that the gradient and the tensor are on the same device."
            )
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size."
            )

    @property
    def grad_dtype(self) -> dtypes.dtype | None:
        """The dtype that ``grad`` must have; None lifts the check."""
        extra = self._meta.extra if self._meta is not None else None
        return extra["grad_dtype"] if extra and "grad_dtype" in extra else self.dtype

    @grad_dtype.setter
    def grad_dtype(self, value: dtypes.dtype | None) -> None:
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        meta = self._extras()
        meta.extra = {**(meta.extra or {}), "grad_dtype": value}

    def retain_grad(self: Any) -> None:
        """Keep the gradient of this non-leaf in ``grad``; does nothing for a leaf.

        Raises
        ------
        RuntimeError
            If the tensor does not require grad.

        Examples
        --------
        >>> import gradscope as gs
        >>> x = gs.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad
        tensor([1., 1.])
        """
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False\nCall requires_grad_() first.")
        if self._known_edge() is None or self._extras().retains_grad:
            return
        edge = edge_of(self)  # this raises for a stale view that may not be used: nothing is retained then
        assert edge is not None
        self._extras().retains_grad = True
        self._retain_on(edge)

    def _retain_on(self, edge: Edge) -> None:
        node, nr = ends_of(edge)
        extra = node.extras()
        if extra.retain is None:
            extra.retain = {}
        extra.retain[nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether :meth:`retain_grad` was called on this non-leaf."""
        return self._meta is not None and self._meta.retains_grad

    def register_hook(self: Any, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(grad)`` when the tensor's gradient is there; a returned tensor replaces it.

        The hook of a non-leaf stays with the node that computed the tensor when it was registered.

        Raises
        ------
        RuntimeError
            If the tensor does not require grad.

        Examples
        --------
        >>> import gradscope as gs
        >>> x = gs.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 2)
        >>> x.sum().backward()
        >>> x.grad
        tensor([2., 2.])
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        edge = None if self.is_leaf else edge_of(self)
        if edge is None:
            meta = self._extras()
            if meta.hooks is None:
                meta.hooks = HookTable()
            return add_hook(meta.hooks, hook)
        node, nr = ends_of(edge)
        extra = node.extras()
        if extra.tensor_hooks is None:
            extra.tensor_hooks = {}
        return add_hook(extra.tensor_hooks.setdefault(nr, HookTable()), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(tensor)`` after a gradient has been added to this leaf's ``grad``.

        Raises
        ------
        RuntimeError
            If the tensor is not a leaf that requires grad.

        Examples
        --------
        >>> import gradscope as gs
        >>> x = gs.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        meta = self._extras()
        if meta.post_accumulate is None:
            meta.post_accumulate = HookTable()
        return add_hook(meta.post_accumulate, hook)
