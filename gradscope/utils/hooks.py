"""Handles of hooks, and hooks that are not to be pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.graph.hooks import RemovableHandle
from ..runtime.user_warnings import warn

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as one that pickles leave out, and of which :func:`warn_if_has_hooks` need not tell; return it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn where a tensor has hooks, which a pickle leaves out, unless :func:`unserializable_hook` has marked them."""
    hooks = tensor._meta.hooks if tensor._meta is not None else None
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can decorate the "
                "function with @gradscope.utils.hooks.unserializable_hook to suppress this warning",
            )
