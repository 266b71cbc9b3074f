"""Switches of libraries that are not there, which the modules of this package share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

__all__ = ["is_available", "is_built", "put", "version"]


def is_available() -> bool:
    """Return whether the library is used: False."""
    return False


def is_built() -> bool:
    """Return whether the runtime was built for it: False."""
    return False


def version() -> None:
    """Return its version: None."""


@contextmanager
def put(module: str, **switches: Any) -> Iterator[None]:
    """Give the switches of a module other values inside of a block.

    Parameters
    ----------
    module : str
        Its full name.
    **switches
        None leaves a switch as it is.
    """
    switchboard = sys.modules[module]
    before = {name: getattr(switchboard, name) for name in switches}
    _set(switchboard, {name: value for name, value in switches.items() if value is not None})
    try:
        yield
    finally:
        _set(switchboard, before)


def _set(switchboard: ModuleType, switches: dict[str, Any]) -> None:
    for name, value in switches.items():
        setattr(switchboard, name, value)
