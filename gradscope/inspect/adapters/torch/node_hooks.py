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

__all__ = ["hang", "hooks_of", "note_hooks"]

# PyTorch calls it for each hook of a node, with the node's dict of hooks, if it has one: it enters the hook there, and
# returns the dict and a handle.
_REGISTER = "_register_hook"
_NOTED = "gradscope.inspect.hooks"
_MODULE_HOOKS = "BackwardHookFunctionBackward"
_lock = threading.RLock()  # a signal handler may run a backward: hence reentrant


class _Hooks(dict[Any, Any]):
    """A node's hooks: handles refer to it weakly."""

    __slots__ = ("__weakref__",)


def hang(
    nodes: Sequence[Any],
    ran: Callable[..., Any],
    entered: Callable[..., Any] | None = None,
    entered_at: Sequence[Any] | None = None,
) -> Callable[[], None]:
    """Hook nodes.

    Parameters
    ----------
    ran : callable
        As ``Node.register_hook`` takes it.
    entered : callable, optional
        As ``Node.register_prehook`` takes it.
    entered_at : sequence of node, optional
        The nodes that get `entered`; all by default.

    Returns
    -------
    callable
        Takes the hooks off.
    """
    hung: list[dict[Any, Any]] = []
    handles: list[Any] = []
    key = object()  # a handle's key would be a number

    def take_off() -> None:
        for hooks in hung:
            hooks.pop(key, None)
        for handle in handles:
            if handle is not None:  # another PyTorch may register hooks in another way
                handle.remove()

    with _lock:
        register: Any = getattr(Function, _REGISTER, None)
        own = Function.__dict__.get(_REGISTER)

        def enter(hooks: Any, hook: Any) -> Any:
            if hook is not ran and hook is not entered:  # the hook is another thread's
                return register(hooks, hook)
            if hooks is None:
                hooks = _Hooks()
            hooks[key] = hook
            hung.append(hooks)
            return hooks, None

        setattr(Function, _REGISTER, staticmethod(enter))
        try:
            if entered is not None:
                handles += [node.register_prehook(entered) for node in (nodes if entered_at is None else entered_at)]
            handles += [node.register_hook(ran) for node in nodes]
        except BaseException:  # Ctrl-C counts too
            take_off()
            raise
        finally:
            if own is None:
                delattr(Function, _REGISTER)
            else:
                setattr(Function, _REGISTER, own)
    return take_off


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
