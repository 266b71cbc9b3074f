"""Being told when a module has been imported: a script says only by importing PyTorch that it uses it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["when_imported"]


def when_imported(name: str, callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` once a module has been imported to its end; at once if it has been already.

    Parameters
    ----------
    name : str
        Of a module that is in no package.
    callback : callable
        Without arguments; called at most once, on the thread that imports.

    Returns
    -------
    callable
        Gives up waiting.

    Examples
    --------
    >>> seen = []
    >>> give_up = when_imported("sys", lambda: seen.append("sys"))
    >>> seen
    ['sys']
    """
    if _loaded(name):
        callback()
        return lambda: None
    finder = _Finder(name, callback)
    sys.meta_path.insert(0, finder)
    return finder.give_up


def _loaded(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


class _Finder(MetaPathFinder):
    """Lets the others find the module, and has its loader tell when it has executed it."""

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self._name = name
        self._callback: Callable[[], None] | None = callback
        self._searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders have, with a loader that tells."""
        if fullname != self._name or self._searching or self._callback is None:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = execute
            execute(module)
            self._done()

        loader.exec_module = exec_module

    def _done(self) -> None:
        callback = self._callback
        self.give_up()
        if callback is not None:
            callback()

    def give_up(self) -> None:
        """Wait no more."""
        self._callback = None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
