"""Puts hooks on all nodes of a backward and takes them off again, at little more than a third of what handles cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from torch.autograd import Function

__all__ = ["hang"]

# PyTorch calls it for each hook of a node, with the node's dict of hooks, if it has one: it enters the hook there, and
# returns the dict and a handle.
_REGISTER = "_register_hook"
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
