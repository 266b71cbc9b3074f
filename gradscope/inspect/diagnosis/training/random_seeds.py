"""Tells when a program seeds its random numbers, in either framework."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from ...adapters.framework_hooks import FrameworkHooks
from ...records.records import Location
from ...source.call_sites import user_lines

__all__ = ["Seed", "SeedHooks"]

_FRAMEWORKS = ("gradscope", "torch")


class Seed(NamedTuple):
    """A seed that was set.

    Attributes
    ----------
    framework : str
        ``'gradscope'`` or ``'torch'``.
    value : int
        The seed.
    lines : tuple of Location
        The user's lines that led to it, the innermost first.
    """

    framework: str
    value: int
    lines: tuple[Location, ...]


class SeedHooks(FrameworkHooks):
    """Tells when ``manual_seed()`` has been called; of a framework from when it has been imported.

    Parameters
    ----------
    callback : callable
        Called with the :class:`Seed` once it is set.

    Examples
    --------
    >>> import gradscope as gs
    >>> told = []
    >>> hooks = SeedHooks(told.append)
    >>> hooks.look()
    >>> _ = gs.manual_seed(3)
    >>> hooks.close()
    >>> _ = gs.manual_seed(4)
    >>> [seed.value for seed in told]
    [3]
    """

    def __init__(self, callback: Callable[[Seed], None]) -> None:
        super().__init__(_FRAMEWORKS, "manual_seed")
        self._callback = callback

    def _listen_to(self, name: str, undo: ExitStack) -> None:
        defined_in = sys.modules[name].manual_seed.__module__
        heard: dict[Any, Any] = {}
        # Whoever pickles the function names the module that it stands in.
        for place in dict.fromkeys((name, f"{name}.random", defined_in)):
            module: Any = sys.modules.get(place)
            original = getattr(module, "manual_seed", None)
            if original is not None and original not in heard.values():
                module.manual_seed = heard.setdefault(original, self._told_of(name, original))
                undo.callback(_restore, module, original, module.manual_seed)

    def _told_of(self, framework: str, original: Callable[[int], Any]) -> Callable[[int], Any]:
        @functools.wraps(original)
        def manual_seed(seed: int) -> Any:
            generator = original(seed)
            if framework in self._undo:
                self._callback(Seed(framework, int(seed), user_lines()))
            return generator

        return manual_seed


def _restore(module: Any, original: Any, replacement: Any) -> None:
    # A function by which other code has replaced it meanwhile stays: so does torch._dynamo, which wraps it.
    if module.manual_seed is replacement:
        module.manual_seed = original
