"""Tells when optimizers step, in either framework."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from ..adapters.framework_hooks import FrameworkHooks
from .object_search import living

__all__ = ["OptimizerHooks", "held_by", "living_optimizers"]

_MODULES = ("gradscope.optim.optimizer", "torch.optim.optimizer")


class OptimizerHooks(FrameworkHooks):
    """Tells when any optimizer is about to step and has stepped; of a framework from when it has been imported.

    Parameters
    ----------
    before, after : callable, optional
        Called with the optimizer.

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.ones(2, requires_grad=True)], lr=0.1)
    >>> told = []
    >>> hooks = OptimizerHooks(after=lambda optimizer: told.append(type(optimizer).__name__))
    >>> hooks.look()
    >>> optimizer.step()
    >>> hooks.close()
    >>> told
    ['SGD']
    """

    def __init__(
        self, *, before: Callable[[Any], None] | None = None, after: Callable[[Any], None] | None = None
    ) -> None:
        super().__init__(_MODULES, "Optimizer")
        self._callbacks = {
            f"register_optimizer_step_{when}_hook": callback
            for when, callback in (("pre", before), ("post", after))
            if callback is not None
        }

    def _listen_to(self, name: str, undo: ExitStack) -> None:
        for register, callback in self._callbacks.items():
            hook = _with_optimizer_alone(callback, _compiling(name), _unheard(name))
            undo.callback(getattr(sys.modules[name], register)(hook).remove)


def _with_optimizer_alone(
    callback: Callable[[Any], None], compiling: Callable[[], bool], unheard: Callable[[], AbstractContextManager[Any]]
) -> Callable[[Any, Any, Any], None]:
    def hook(optimizer: Any, arguments: Any, keywords: Any) -> None:
        if not compiling():  # torch.compile inlines this function, and would compile the callback too
            with unheard():
                callback(optimizer)

    return hook


def _compiling(name: str) -> Callable[[], bool]:
    """Return what tells whether a compiler reads the code of a step, rather than that it is run."""
    compiler = getattr(sys.modules[name.partition(".")[0]], "compiler", None)
    return getattr(compiler, "is_compiling", _never)


def _unheard(name: str) -> Callable[[], AbstractContextManager[Any]]:
    """Return the blocks in which no function mode of the program hears what is asked of a tensor."""
    core = getattr(sys.modules[name.partition(".")[0]], "_C", None)
    return getattr(core, "DisableTorchFunction", nullcontext)


def _never() -> bool:
    return False


def held_by(optimizer: Any) -> list[Any]:
    """Return the tensors that an optimizer changes."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def living_optimizers() -> list[Any]:
    """Return the optimizers that there are, of either framework, whether they have stepped or not."""
    modules = [sys.modules[name] for name in _MODULES if name in sys.modules]
    kinds = [module.Optimizer for module in modules if hasattr(module, "Optimizer")]
    return [optimizer for optimizer in living(kinds) if "param_groups" in vars(optimizer)]
