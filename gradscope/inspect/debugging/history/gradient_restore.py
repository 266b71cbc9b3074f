"""Putting the gradients of leaves back as they were before a backward that does not come to its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...adapters import Adapter

__all__ = ["GradBackup"]


class GradBackup:
    """The leaves' ``.grad`` from before a backward first accumulated into them.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> x = gs.ones(2, requires_grad=True)
    >>> backup = GradBackup(NativeAdapter())
    >>> backup.keep(x)
    >>> x.sum().backward()
    >>> backup.restore(), x.grad
    (1, None)
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._before: dict[int, tuple[Any, Any]] = {}
        self._filled: list[Any] = []

    def leaf_of(self, node: Any) -> Any:
        """Return the leaf that `node` is about to accumulate into, None if there is none or it has been kept."""
        self._keep_filled()
        leaf = self._adapter.variable(node)
        return None if leaf is None or id(leaf) in self._before else leaf

    def keep(self, leaf: Any, quietly: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        """Copy the gradient of a leaf: the engine adds into the memory of the one that is there.

        Parameters
        ----------
        quietly : callable, optional
            Returns the context in which the copy is made.
        """
        grad = self._adapter.leaf_grad(leaf)
        if grad is not None:
            with quietly():
                grad = self._adapter.copy(grad)
        self._before[id(leaf)] = (leaf, grad)

    def filled(self, node: Any) -> None:
        """Note that `node` has brought a gradient to a leaf that had none."""
        self._filled.append(node)

    def _keep_filled(self) -> None:
        """Find the leaves of the nodes that have been noted: as a rule nobody ever asks for them."""
        nodes, self._filled = self._filled, []
        for leaf in map(self._adapter.variable, nodes):
            if leaf is not None:
                self._before.setdefault(id(leaf), (leaf, None))

    def restore(self) -> int:
        """Put the gradients back; return in how many leaves."""
        self._keep_filled()
        count = len(self._before)
        for leaf, grad in self._before.values():
            self._adapter.set_leaf_grad(leaf, grad)
        self.clear()
        return count

    def clear(self) -> None:
        """Let go of leaves and copies."""
        self._before, self._filled = {}, []
