"""Has a PyTorch program listen for fronts though it knows nothing of gradscope: ``GRADSCOPE_LISTEN=1 python train.py``.

``gradscope_listen.pth`` lies beside it in site-packages, where Python carries it out at its start; it loads this module
where that variable is set. This module stands alone: to import the package is to listen. The program does so when it
first calls a module or runs a backward, and not when it imports PyTorch: a launcher does that too, ``torchrun`` among
them, and what it starts is the program.

PYTEST_DONT_REWRITE: it may be imported before pytest, which warns then that it cannot rewrite its assertions.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["WaitForTorch"]


class WaitForTorch(MetaPathFinder):
    """Lets the others find PyTorch, and waits for its first use once it is there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders have, with a loader that tells when it is done."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            _then_wait_for_use(spec.loader)
        return spec


def _then_wait_for_use(loader: Any) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        loader.exec_module = execute
        execute(module)
        _wait_for_use(module)

    loader.exec_module = exec_module


def _wait_for_use(torch: Any) -> None:
    """Listen before the first call of a module, backward() or grad()."""
    autograd = torch.autograd
    entries = {name: getattr(autograd, name) for name in ("backward", "grad")}

    def listen(*ignored: object) -> None:
        hook.remove()
        for name, entry in entries.items():
            if getattr(autograd, name) is waiting[name]:
                setattr(autograd, name, entry)
        if "GRADSCOPE_LISTEN" in os.environ:
            importlib.import_module("gradscope")

    def listening_first(name: str) -> Callable[..., Any]:
        def entry(*args: Any, **kwargs: Any) -> Any:
            listen()
            return entries[name](*args, **kwargs)

        return entry

    waiting = {name: listening_first(name) for name in entries}
    for name, entry in waiting.items():
        setattr(autograd, name, entry)
    hook = torch.nn.modules.module.register_module_forward_pre_hook(listen)


sys.meta_path.insert(0, WaitForTorch())
