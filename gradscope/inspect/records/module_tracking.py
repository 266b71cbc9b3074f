"""Learns, while the forward pass runs, which module a node belongs to and what its parameter is called."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..adapters import Adapter, AnyAdapter
from ..adapters.guarded_observer import GuardedObserver, guards_itself
from ..source.call_sites import fields_of, user_frames
from ..source.frame_variables import variables_of
from ..source.variable_names import name_of
from .records import ModuleRecord

__all__ = [
    "Tracker",
    "free_label",
    "join",
    "latest_tracker",
    "module_of_parameter",
    "module_records",
    "remember",
    "track",
]

MODULE = "gradscope.inspect.module"

_LONGEST = 80
"""Characters of what a module says about itself that are kept."""

# The tracker of the block that is open or was open last: it knows names when nobody gives any, and keeps no module
# alive.
_latest: Tracker | None = None


class _Running(threading.local):
    """The modules that run on this thread, outermost first: their ids and paths."""

    def __init__(self) -> None:
        self.modules: list[tuple[int, str]] = []


class Tracker(GuardedObserver):
    """Follows modules as they run, and notes their path on the nodes made inside.

    Paths are those of ``named_modules()`` of the outermost module that was called, or of which a method (Lightning's
    ``training_step()``) has called a part; a part that the program calls itself, ``model.encoder(x)``, has the path
    that it has in the model. The only such module with parameters gives plain paths (``layers.0``); where the program
    has several, each is told apart by the variable that holds it (``discriminator.layers.0``), or else by its class
    (``CrossEntropyLoss``). What a library has traced for itself (``torch.func.linearize()``) is no such module.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._running = _Running()
        # The key is the id, with a reference that removes it: a module may compare by value and have no hash.
        self._paths: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._roots: dict[str, weakref.ref[Any]] = {}
        self._new: dict[str, weakref.ref[Any]] = {}
        self._leaves: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._users: dict[int, str] = {}
        self._added: list[weakref.ref[Any]] = []

    # --- what the observer passes on ---

    def module_entered(self, module: Any) -> None:
        """Note that `module` runs."""
        stack = self._running.modules
        identity = id(module)
        for depth, (running, _) in enumerate(stack):
            if running == identity:  # an exception ended its last call
                del stack[depth:]
                break
        if identity not in self._paths:
            self._register(self._whole(module))
        stack.append((identity, self._paths[identity][1]))

    def module_left(self, module: Any) -> None:
        """Note that `module` has run."""
        stack, identity = self._running.modules, id(module)
        while stack:
            if stack.pop()[0] == identity:
                break

    @guards_itself
    def operator_recorded(self, node: Any) -> None:
        """Note the running module on `node`."""
        try:
            stack = self._running.modules
            if stack:
                path = stack[-1][1]
                if path:
                    self._adapter.notes(node)[MODULE] = path
        except Exception as error:
            self.fail(error)

    @guards_itself
    def operators_recorded(self, nodes: Sequence[Any]) -> None:
        """Note it on several nodes."""
        try:
            stack = self._running.modules
            path = stack[-1][1] if stack else ""
            if path:
                for node in nodes:
                    self._adapter.notes(node)[MODULE] = path
        except Exception as error:
            self.fail(error)

    # --- names ---

    def module_of(self, node: Any) -> str:
        """Return the path of the module that made `node`, or an empty string."""
        module: str = self._adapter.notes(node).get(MODULE, "")
        if module or not self._users:
            return module
        return self._users.get(self._adapter.key(node), "")

    def modules_of(self, keys: Sequence[int], notes: Sequence[dict[Any, Any] | None]) -> list[str]:
        """Return the same of several nodes, of which keys and notes are known."""
        found = [known.get(MODULE, "") if known else "" for known in notes]
        users = self._users
        return [module or users.get(key, "") for module, key in zip(found, keys)] if users else found

    def running_module(self) -> str:
        """Return the path of the innermost module that runs on this thread, or an empty string."""
        stack = self._running.modules
        return stack[-1][1] if stack else ""

    def inside_module(self) -> bool:
        """Whether a module runs on this thread."""
        return bool(self._running.modules)

    def path_of(self, module: Any) -> str:
        """Return the path of a module that was seen, or an empty string."""
        reference, path = self._paths.get(id(module), (None, ""))
        return path if reference is not None and reference() is module else ""

    def roots(self) -> dict[str, Any]:
        """Return the outermost modules seen that still live, by what their paths begin with."""
        alive = ((label, reference()) for label, reference in list(self._roots.items()))
        return {label: root for label, root in alive if root is not None}

    def take_new_roots(self) -> dict[str, Any]:
        """Return those of :meth:`roots` that have been seen, or seen with other parts, since this was asked last."""
        taken, self._new = self._new, {}
        alive = ((label, reference()) for label, reference in taken.items())
        return {label: root for label, root in alive if root is not None}

    @property
    def has_new_roots(self) -> bool:
        """Whether :meth:`take_new_roots` may return any, sooner told."""
        return bool(self._new)

    def is_root(self, module: Any) -> bool:
        """Whether a module is one of :meth:`roots`."""
        return any(reference() is module for reference in list(self._roots.values()))

    @property
    def count(self) -> int:
        """How many modules :meth:`modules` returns, sooner told."""
        return len(self._paths)

    def modules(self) -> list[Any]:
        """Return the modules seen, and those inside of them, that still live."""
        alive = (reference() for reference, _ in list(self._paths.values()))
        return [module for module in alive if module is not None]

    def parameter_paths(self) -> dict[int, str]:
        """Return the paths of all parameters of the modules seen, by the id of the parameter.

        Valid as long as those modules are: ask anew for every backward.
        """
        found: dict[int, str] = {}
        for label, root in self.roots().items():
            for path, parameter in self._adapter.named_parameters(root):
                found.setdefault(id(parameter), join(label, path))
            for parameter, whole in self._adapter.stand_ins(root):
                name = found.get(id(parameter)) or found.get(id(whole))
                if name is not None:
                    found.update({id(parameter): name, id(whole): name})
        found.update((identity, name) for identity, (leaf, name) in self._leaves.items() if leaf() is not None)
        return found

    def add_root(self, module: Any) -> None:
        """Name `module` and its parameters as if it had been called."""
        self._added.append(weakref.ref(module))
        if id(module) not in self._paths:
            self._register(module)

    def add_leaves(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Call leaves by these names, whatever modules are seen."""
        self._leaves.update((id(leaf), (weakref.ref(leaf), name)) for name, leaf in pairs if name)

    def add_users(self, modules: Mapping[int, str]) -> None:
        """Call nodes, by their keys, after the module whose parameters they use, where none was seen to make them."""
        self._users.update(modules)

    def take_over(self, other: Tracker) -> None:
        """Add what has been added to another tracker, and nothing of what that has seen."""
        self._leaves.update(other._leaves)
        self._users.update(other._users)
        for reference in other._added:
            module = reference()
            if module is not None:
                self.add_root(module)

    def _whole(self, module: Any) -> Any:
        """Return the module whose method has called `module`, a part of it: not all are entered by being called."""
        whole = module
        for frame in user_frames(sys._getframe(1)):
            owner = frame.f_locals.get("self")
            if self._is_module(owner) and any(part is whole for _, part in self._adapter.named_modules(owner)):
                whole = owner
        return whole

    def _register(self, root: Any) -> None:
        parts = self._adapter.named_modules(root)
        self._roots = {label: r for label, r in self._roots.items() if r() is not None}
        inside = {id(module) for _, module in parts}
        for label, reference in list(self._roots.items()):
            if id(reference()) in inside:  # a submodule was called before the module
                del self._roots[label]
        if self._is_of_library(root):
            label = type(root).__name__
        else:
            label = self._label(root)
            self._roots[label] = self._new[label] = weakref.ref(root)
        for path, module in parts:
            self._note(module, join(label, path))

    def _note(self, module: Any, path: str) -> None:
        identity, paths = id(module), self._paths

        def forget(reference: weakref.ref[Any]) -> None:
            if identity in paths and paths[identity][0] is reference:
                del paths[identity]

        paths[identity] = (weakref.ref(module, forget), path)

    def _is_of_library(self, root: Any) -> bool:
        """Whether a module is a graph that a call of the framework's has traced: no variable of the program has it."""
        if not self._adapter.is_called_traced_graph(root):
            return False
        return not any(name_of(root, frame) for frame in user_frames(sys._getframe(1)))

    def _label(self, root: Any) -> str:
        if not self._adapter.named_parameters(root):
            return free_label(type(root).__name__, self._roots)
        found = ((name_of(root, frame), frame) for frame in user_frames(sys._getframe(1)))
        variable, frame = next((pair for pair in found if pair[0]), ("", None))
        if not variable and (path := self._path_in_whole(root)):
            return free_label(path, self._roots)
        if "" not in self._roots and (frame is None or not self._has_others(root, frame)):
            return ""
        return free_label(variable.removeprefix("self.") or type(root).__name__, self._roots)

    def _path_in_whole(self, part: Any) -> str:
        """Return the path of a module in the smallest one that is in a variable and holds it; empty where none does."""
        adapter = self._adapter
        for frame in user_frames(sys._getframe(1)):
            wholes = [(other, adapter.named_modules(other)) for other in self._held_in(frame)]
            found = [(len(own), path, whole) for whole, own in wholes for path, one in own if one is part and path]
            if found:
                _, path, whole = min(found, key=lambda place: place[:2])
                variable = name_of(whole, frame).removeprefix("self.") if self._has_others(whole, frame) else ""
                return join(variable, path)
        return ""

    def _has_others(self, root: Any, frame: FrameType) -> bool:
        """Whether a variable of a frame holds a module with parameters that is no part of `root`, nor has it as one."""
        adapter = self._adapter
        inside = {id(part) for _, part in adapter.named_modules(root)}
        return any(
            id(other) not in inside
            and adapter.named_parameters(other)
            and not any(part is root for _, part in adapter.named_modules(other))
            for other in self._held_in(frame)
        )

    def _held_in(self, frame: FrameType) -> Iterator[Any]:
        """Yield the modules that variables of a frame hold, and those of the object whose method it runs."""
        local = variables_of(frame)
        for scope in (local, fields_of(local.get("self")), frame.f_globals):
            yield from filter(self._is_module, list(scope.values()))

    def _is_module(self, value: Any) -> bool:
        """Whether a value is a module that can be asked for its parts: until its class has made it, it has none."""
        return issubclass(type(value), self._adapter.module_classes()) and "_modules" in fields_of(value)


def module_records(adapter: Adapter, roots: Mapping[str, Any], *, ask_program: bool = True) -> tuple[ModuleRecord, ...]:
    """Return modules, and those inside of them, with their paths.

    Parameters
    ----------
    roots : mapping of str to module
        As :meth:`Tracker.roots` returns them.
    ask_program : bool
        Whether the program's own classes are asked what they say about themselves, too: that runs their code.
    """
    packages = {_package_of(base) for base in adapter.module_classes()}
    return tuple(
        ModuleRecord(
            join(label, path),
            type(module).__name__,
            _arguments(module) if ask_program or _package_of(type(module).extra_repr) in packages else "",
        )
        for label, root in roots.items()
        for path, module in adapter.named_modules(root)
    )


def _package_of(definition: Any) -> str:
    """Return the package of a framework's in which something is defined: ``torch.nn``."""
    return ".".join(str(getattr(definition, "__module__", "")).split(".")[:2])


def _arguments(module: Any) -> str:
    """Return what a module says about itself, in one line; nothing where its own code fails."""
    try:
        text = " ".join(str(module.extra_repr()).split())
    except Exception:
        return ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def latest_tracker() -> Tracker | None:
    """Return what the :func:`track` or :func:`ledger` that is open, or was open last, has seen."""
    return _latest


def remember(tracker: Tracker) -> None:
    """Make a tracker the latest."""
    global _latest
    _latest = tracker


def free_label(name: str, taken: Container[str]) -> str:
    """Return `name`, or with a number if it is taken.

    Examples
    --------
    >>> free_label("Linear", {"Linear", "Linear#2"})
    'Linear#3'
    """
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name}#{number}"
    return label


def join(label: str, path: str) -> str:
    """Return the path of something in the module that is called `label`."""
    return f"{label}.{path}" if label and path else label or path


def module_of_parameter(path: str) -> str:
    """Return the module's part of a parameter's path.

    Examples
    --------
    >>> module_of_parameter("layers.0.weight"), module_of_parameter("weight")
    ('layers.0', '')
    """
    return path.rpartition(".")[0]


@contextmanager
def track(*, adapter: Adapter | None = None) -> Iterator[Tracker]:
    """Record, for every node made inside the block, the line and the module that made it.

    See Also
    --------
    why_no_grad

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
    remember(tracker)
    with adapter.observe(tracker, forward=True, backward=False):
        yield tracker
