"""Lists the hooks of a node of PyTorch.

Those of a leaf can be read. What a node or a result has is known to C++ alone, so the hooks of results are noted on the
node when they are registered, as long as somebody observes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..gradient_hooks import NodeHook, hook_name

__all__ = ["hooks_of", "note_hooks"]

_NOTED = "gradscope.inspect.hooks"
_MODULE_HOOKS = "BackwardHookFunctionBackward"


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
