"""Hooks of nodes: those that are put on all of a backward and taken off again, and which of its own a node has.

The former come at little more than a third of what handles cost. Of the latter those of a leaf can be read; what a node
or a result has is known to C++ alone, so the hooks of results are noted on the node when they are registered, as long
as somebody observes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function

from ..gradient_hooks import NodeHook, hook_name

__all__ = ["HungHooks", "hang", "hooks_of", "note_hooks"]

# PyTorch calls it for each hook of a node, with the node's dict of hooks, if it has one: it enters the hook there, and
# returns the dict and a handle.
_REGISTER = "_register_hook"
_NOTED = "gradscope.inspect.hooks"
_MODULE_HOOKS = "BackwardHookFunctionBackward"
_lock = threading.RLock()  # a signal handler may run a backward: hence reentrant


class _Hooks(dict[Any, Any]):
    """A node's hooks: handles refer to it weakly."""

    __slots__ = ("__weakref__",)


class HungHooks:
    """Hooks that are on nodes, until they are taken off."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.nodes = nodes
        self.key = object()  # a handle's key would be a number
        self.ran: list[dict[Any, Any]] = []
        self.entered: list[dict[Any, Any]] = []
        self.handles: list[Any] = []

    def take_off(self) -> None:
        """Take them off."""
        for hooks in (*self.entered, *self.ran):
            hooks.pop(self.key, None)
        for handle in self.handles:
            if handle is not None:  # another PyTorch may register hooks in another way
                handle.remove()

    def exchange(self, ran: Callable[..., Any], entered: Callable[..., Any]) -> bool:
        """Put others into the place of those that are on all nodes, at a small part of what hanging costs.

        Parameters
        ----------
        ran, entered : callable
            As for :func:`hang`.

        Returns
        -------
        bool
            False where not all nodes have both, or hooks are registered in another way: then all is as it was.
        """
        count = len(self.nodes)
        if (len(self.ran), len(self.entered)) != (count, count):
            return False
        for hooks in self.ran:
            hooks[self.key] = ran
        for hooks in self.entered:
            hooks[self.key] = entered
        return True


def hang(
    nodes: Sequence[Any],
    ran: Callable[..., Any] | None,
    entered: Callable[..., Any] | None = None,
    entered_at: Sequence[Any] | None = None,
    ran_at: Sequence[Any] | None = None,
) -> HungHooks:
    """Hook nodes.

    Parameters
    ----------
    ran : callable or None
        As ``Node.register_hook`` takes it.
    entered : callable, optional
        As ``Node.register_prehook`` takes it.
    entered_at, ran_at : sequence of node, optional
        The nodes that get each of these; all by default.
    """
    hung = HungHooks(nodes)
    key, hung_ran, hung_entered = hung.key, hung.ran, hung.entered

    with _lock:
        register: Any = getattr(Function, _REGISTER, None)
        own = Function.__dict__.get(_REGISTER)

        def enter(hooks: Any, hook: Any) -> Any:
            if hook is not ran and hook is not entered:  # the hook is another thread's
                return register(hooks, hook)
            if hooks is None:
                hooks = _Hooks()
            hooks[key] = hook
            (hung_ran if hook is ran else hung_entered).append(hooks)
            return hooks, None

        setattr(Function, _REGISTER, staticmethod(enter))
        try:
            if entered is not None:
                entered_at = nodes if entered_at is None else entered_at
                hung.handles += [node.register_prehook(entered) for node in entered_at]
            if ran is not None:
                hung.handles += [node.register_hook(ran) for node in (nodes if ran_at is None else ran_at)]
        except BaseException:  # Ctrl-C counts too
            hung.take_off()
            raise
        finally:
            if own is None:
                delattr(Function, _REGISTER)
            else:
                setattr(Function, _REGISTER, own)
    return hung


def hooks_of(node: Any) -> list[NodeHook]:
    """Return the hooks of a node that are known."""
    noted = node.metadata.get(_NOTED, {})
    found = [NodeHook(name, True) for key, (name, handle) in noted.items() if key in (handle.hooks_dict_ref() or ())]
    if node.name() == _MODULE_HOOKS:
        found.append(NodeHook("a backward hook of a module", False))
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        found += [NodeHook(hook_name(hook), True) for hook in (leaf._backward_hooks or {}).values()]
        after = getattr(leaf, "_post_accumulate_grad_hooks", None) or {}
        found += [NodeHook(hook_name(hook), False) for hook in after.values()]
    return found


def note_hooks() -> Callable[[], None]:
    """Note hooks of results on their nodes from now on; return what ends it."""
    original = torch.Tensor.register_hook

    @functools.wraps(original)
    def register_hook(self: torch.Tensor, hook: Any) -> Any:
        handle = original(self, hook)
        with torch._C.DisableTorchFunction():
            node = None if self.is_leaf else self.grad_fn
        # The handle is the key: under a function mode this is called twice.
        if node is not None and hasattr(handle, "hooks_dict_ref"):
            node.metadata.setdefault(_NOTED, {})[handle.id] = (hook_name(hook), handle)
        return handle

    def restore() -> None:
        # A function by which other code has replaced it meanwhile stays.
        if torch.Tensor.register_hook is register_hook:
            torch.Tensor.register_hook = original

    torch.Tensor.register_hook = register_hook
    return restore
