"""The graph from outside: nodes, edges, hooks on several tensors at once, and what is saved for backward.

The hooks on saved tensors are context managers of :mod:`gradscope.runtime.modes`.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from ..runtime import state
from ..runtime.graph.edges import ends_of
from ..runtime.graph.graph_node import GradientEdge, Node
from ..runtime.graph.hooks import RemovableHandle
from ..runtime.graph.saved_tensors import SavedTensor
from ..runtime.memory.storage import VersionCounter
from ..runtime.modes import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from ..runtime.tensor.tensor import Tensor
from ..runtime.tensor.views import edge_of

__all__ = [
    "GradientEdge",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the place in the graph where the gradient of `tensor` arrives.

    ``grad(loss, get_gradient_edge(x))`` is ``grad(loss, x)``, and needs no `x`.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    See Also
    --------
    autograd.grad, Node

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> gs.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    edge = edge_of(tensor) if tensor.requires_grad else None
    if edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients\n"
            f"It has shape {list(tensor.shape)}; call requires_grad_() on it first."
        )
    return GradientEdge(*ends_of(edge))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count one more in-place write of a tensor (or of each of several), made by code that autograd does not see.

    See Also
    --------
    allow_mutation_on_saved_tensors

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.zeros(2)
    >>> gs.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        one._bump("increment_version")


# --- hooks on several tensors -----------------------------------------------------------------------------------------


class MultiHandle(RemovableHandle):
    """Removes the hooks of several handles."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__()
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove all of them; doing so twice is harmless."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Call `fn` once in each backward, for several tensors together.

    Parameters
    ----------
    fn : callable
        In mode "all", ``fn(grads)`` with a list of one gradient per tensor, when the last of them is there; None for
        tensors that take no part in this backward. In mode "any", ``fn(grad)`` with the first gradient that is there.
    mode : {"all", "any"}

    See Also
    --------
    Tensor.register_hook

    Examples
    --------
    >>> import gradscope as gs
    >>> a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    >>> handle = gs.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print([g.tolist() for g in grads]))
    >>> (a * b * 3).sum().backward()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    # The key is the running backward, whose end removes the entry.
    running: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
    if mode == "any":

        @functools.wraps(fn)
        def first(grad: Any) -> None:
            task = state.local.current_task
            with lock:
                seen = task in running
                running[task] = True
            if not seen:
                fn(grad)

        return MultiHandle([t.register_hook(first) for t in tensors if t.requires_grad])

    nodes = [get_gradient_edge(t).node for t in tensors]

    def hook_of(index: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            task = state.local.current_task
            with lock:
                if task not in running:
                    running[task] = ([None] * len(nodes), sum(map(task.will_reach, nodes)))
                grads, waiting = running[task]
                grads[index] = grad
                running[task] = (grads, waiting - 1)
            if waiting == 1:
                del running[task]
                fn(grads)

        return hook

    return MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


# --- writing what is saved --------------------------------------------------------------------------------------------


class _Kept:
    """A saved tensor as it was: the tensor itself until somebody writes its memory, then a copy."""

    __slots__ = ("__weakref__", "tensor", "written")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor
        self.written = False


class allow_mutation_on_saved_tensors(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Context manager: tensors saved for backward may be written in place; backward sees them as they were.

    A saved tensor is copied when its memory is about to be written, and only then. Forward and backward must both run
    inside the block.

    See Also
    --------
    saved_tensors_hooks, check.Sanitizer

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with gs.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     loss = (y * y).sum()
    ...     _ = y.zero_()
    ...     loss.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__(self._pack, self._unpack)
        self._open = False
        self._kept: dict[VersionCounter, weakref.WeakSet[_Kept]] = {}
        self._by_version: weakref.WeakValueDictionary[tuple[int, int], _Kept] = weakref.WeakValueDictionary()

    def __enter__(self) -> allow_mutation_on_saved_tensors:  # type: ignore[override]
        if state.local.before_write is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        self._open = True
        state.local.before_write = self._keep
        return self

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        self._open = False
        state.local.before_write = None
        self.clear()

    def clear(self) -> None:
        """Let go of all copies."""
        for kept in list(self._by_version.values()):
            kept.tensor = None
        self._by_version.clear()
        self._kept.clear()

    def _pack(self, tensor: Tensor) -> _Kept:
        key = (id(tensor), tensor._version)
        kept = self._by_version.get(key)
        if kept is None or kept.tensor is not tensor:
            kept = self._by_version[key] = _Kept(tensor)
            self._kept.setdefault(tensor._counter(), weakref.WeakSet()).add(kept)
        return kept

    def _unpack(self, kept: _Kept) -> Tensor:
        if not self._open or kept.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return kept.tensor

    def _keep(self, tensor: Tensor) -> None:
        """Copy what is saved of the memory of `tensor`, which is about to be written."""
        for kept in self._kept.pop(tensor._counter(), ()):
            if kept.tensor is not None and not kept.written:
                kept.tensor, kept.written = kept.tensor.clone(), True
