"""The adapter for PyTorch: hooks on nodes and modules, a function mode for call sites, one wrapper round the engine.

Importing this package does not import PyTorch; asking it for :class:`TorchAdapter` does. Nowhere else does gradscope
import PyTorch, and it asks only in programs that have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .torch_spec import TorchSpec

if TYPE_CHECKING:
    from .torch_adapter import TorchAdapter  # it imports PyTorch

__all__ = ["TorchAdapter", "TorchSpec", "check_version"]

_OLDEST = (2, 4)


def check_version(version: str) -> None:
    """Raise ImportError for a PyTorch that is too old.

    Examples
    --------
    >>> check_version("2.13.0+cpu")
    >>> check_version("1.13.1")
    Traceback (most recent call last):
    ImportError: gradscope opens programs of PyTorch 2.4 and newer, this is PyTorch 1.13.1
    Install a newer one: pip install 'gradscope-debugger[torch]'
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < _OLDEST:
        raise ImportError(
            f"gradscope opens programs of PyTorch {_OLDEST[0]}.{_OLDEST[1]} and newer, this is PyTorch {version}\n"
            "Install a newer one: pip install 'gradscope-debugger[torch]'"
        )


def __getattr__(name: str) -> Any:
    if name != "TorchAdapter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch  # PyTorch is an optional dependency

    check_version(torch.__version__)
    from .torch_adapter import TorchAdapter  # it imports PyTorch

    return TorchAdapter
