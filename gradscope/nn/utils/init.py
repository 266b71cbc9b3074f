"""Modules without initial values."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a module whose parameters and buffers are left as the memory is, to be filled by a checkpoint.

    Parameters
    ----------
    module_cls : type
        A subclass of Module whose constructor takes a device, and that initialises itself in ``reset_parameters``.
    *args, **kwargs
        Of the constructor.

    Raises
    ------
    RuntimeError
        If it is no such class.

    See Also
    --------
    nn.init

    Examples
    --------
    >>> import gradscope as gs
    >>> skip_init(gs.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")

    def nothing(self: Module) -> None:
        pass

    # This class resets no parameters, so that they stay as they were allocated.
    bare = type(module_cls.__name__, (module_cls,), {"reset_parameters": nothing, "_reset_parameters": nothing})
    module = bare(*args, **kwargs)
    module.__class__ = module_cls
    return module
