"""Finds what stands in a folder, so that a file in it is all that a rule, a format or a command needs."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

__all__ = ["import_all", "subpackages"]


def import_all(package: str) -> list[ModuleType]:
    """Import all modules of a package, but not those of packages in it, and return them by name.

    Parameters
    ----------
    package : str
        Its full name.

    Examples
    --------
    >>> "gradscope.inspect.output.markup" in [module.__name__ for module in import_all("gradscope.inspect.output")]
    True
    """
    found = pkgutil.iter_modules(import_module(package).__path__)
    return [import_module(f"{package}.{name}") for name in sorted(m.name for m in found if not m.ispkg)]


def subpackages(package: str) -> list[str]:
    """Return the full names of the packages in a package, sorted.

    Parameters
    ----------
    package : str
        Its full name.

    Examples
    --------
    >>> subpackages("gradscope.inspect.graphs")
    ['gradscope.inspect.graphs.formats']
    """
    found = pkgutil.iter_modules(import_module(package).__path__)
    return [f"{package}.{name}" for name in sorted(m.name for m in found if m.ispkg)]
