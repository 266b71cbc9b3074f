"""Which module a node belongs to, and what its parameter is called: learned while the forward pass runs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .adapters import Adapter, AnyAdapter, Observer

__all__ = ["Tracker", "module_of_parameter", "track"]

_MODULE = "gradscope.inspect.module"


class Tracker(Observer):
    """Follows modules as they run, and notes their path on the nodes made inside.

    Paths are those of ``named_modules()`` of the outermost module that was called. The first such module with
    parameters gives plain paths (``layers.0``); any other is told apart by its class
    (``Discriminator.layers.0``, ``CrossEntropyLoss``).

    Parameters
    ----------
    adapter : Adapter
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._stacks = threading.local()
        # By id, with a reference that empties the place: a module may compare by value and have no hash.
        self._paths: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._roots: dict[str, weakref.ref[Any]] = {}

    # --- what the observer passes on ---

    def module_entered(self, module: Any) -> None:
        """Note that `module` runs."""
        stack = self._stack()
        identity = id(module)
        for depth, (running, _) in enumerate(stack):
            if running == identity:  # it left by an exception last time
                del stack[depth:]
                break
        known = self._paths.get(identity)
        path = self._register(module) if known is None else known[1]
        stack.append((identity, path))

    def module_left(self, module: Any) -> None:
        """Note that `module` has run."""
        stack = self._stack()
        while stack:
            if stack.pop()[0] == id(module):
                break

    def operator_recorded(self, node: Any) -> None:
        """Note the running module on `node`."""
        stack = self._stack()
        if stack and stack[-1][1]:
            self._adapter.notes(node)[_MODULE] = stack[-1][1]

    def _stack(self) -> list[tuple[int, str]]:
        try:
            return self._stacks.modules
        except AttributeError:
            self._stacks.modules = []
            return self._stacks.modules

    # --- names ---

    def module_of(self, node: Any) -> str:
        """Return the path of the module that made `node`, or an empty string."""
        return self._adapter.notes(node).get(_MODULE, "")

    def parameter_paths(self) -> dict[int, str]:
        """Return the paths of all parameters of the modules seen, by the id of the parameter.

        Valid as long as those modules are: ask anew for every backward.
        """
        found: dict[int, str] = {}
        for label, reference in list(self._roots.items()):
            root = reference()
            if root is None:
                continue
            for path, parameter in self._adapter.named_parameters(root):
                found.setdefault(id(parameter), _join(label, path))
        return found

    def add_root(self, module: Any) -> None:
        """Name `module` and its parameters as if it had been called."""
        if id(module) not in self._paths:
            self._register(module)

    def _register(self, root: Any) -> str:
        parts = self._adapter.named_modules(root)
        self._roots = {label: r for label, r in self._roots.items() if r() is not None}
        inside = {id(module) for _, module in parts}
        for label, reference in list(self._roots.items()):
            if id(reference()) in inside:  # a part was called before the whole
                del self._roots[label]
        label = self._label(root)
        self._roots[label] = weakref.ref(root)
        for path, module in parts:
            self._note(module, _join(label, path))
        return label

    def _note(self, module: Any, path: str) -> None:
        identity, paths = id(module), self._paths

        def forget(reference: weakref.ref[Any]) -> None:
            if identity in paths and paths[identity][0] is reference:
                del paths[identity]

        paths[identity] = (weakref.ref(module, forget), path)

    def _label(self, root: Any) -> str:
        if "" not in self._roots and self._adapter.named_parameters(root):
            return ""
        name, number = type(root).__name__, 1
        label = name
        while label in self._roots:
            number += 1
            label = f"{name}#{number}"
        return label


def _join(label: str, path: str) -> str:
    return f"{label}.{path}" if label and path else label or path


def module_of_parameter(path: str) -> str:
    """Return the module's part of a parameter's path.

    Parameters
    ----------
    path : str

    Returns
    -------
    str

    Examples
    --------
    >>> module_of_parameter("layers.0.weight"), module_of_parameter("weight")
    ('layers.0', '')
    """
    return path.rpartition(".")[0]


@contextmanager
def track(*, adapter: Adapter | None = None) -> Iterator[Tracker]:
    """Record, for every node made inside the block, the line and the module that made it.

    Parameters
    ----------
    adapter : Adapter, optional

    Yields
    ------
    Tracker

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.ReLU())
    >>> with gi.track():
    ...     loss = model(gs.ones(1, 3)).sum()
    >>> [(d["operator"], d["module"]) for _, d in gi.graph(loss, params=model).nodes(data=True)][:3]
    [('Sum', ''), ('Relu', '1'), ('Addmm', '0')]
    """
    adapter = adapter or AnyAdapter()
    tracker = Tracker(adapter)
    with adapter.observe(tracker, forward=True, backward=False):
        yield tracker
