"""Parameters that get gradients and that no optimizer holds: where each hangs, and so why it was not found."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...adapters import Adapter
from ...output.number_format import count, format_shape
from ...records.execution_order import walk
from ...records.naming import tables_of
from ...records.object_search import living
from ...records.optimizer_steps import held_by, living_optimizers
from ...records.records import Location
from ...source.call_sites import fields_of
from ..explanation import at

__all__ = ["ParameterWithoutOptimizer", "WithoutOptimizerWatch"]

_SHOWN = 4
_MOST_NODES = 1_000
# Each search goes through all living objects.
_MOST_LOOKS = 8


@dataclass(frozen=True)
class ParameterWithoutOptimizer:
    """Parameters that get gradients, and that no optimizer holds.

    Attributes
    ----------
    names : tuple of str
        Their paths; empty strings where they have none.
    made : Location or None
        Where they were made.
    text : str
        Why no optimizer holds them; empty where that cannot be told.
    help : str
        What to do.
    used : Location or None
        Where they were used, if nobody has seen them being made.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    made: Location | None
    text: str
    help: str
    used: Location | None = None

    @property
    def location(self) -> Location | None:
        """The line to look at."""
        return self.made or self.used

    def __str__(self) -> str:
        pairs = zip(self.names, self.shapes)
        shown = [f"`{name}`" if name else f"a parameter of shape {format_shape(shape)}" for name, shape in pairs]
        shown = list(dict.fromkeys(shown))
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        verb, them = ("gets", "it") if len(shown) == 1 else ("get", "them")
        lines = [f"{', '.join(shown[:_SHOWN])}{more} {verb} gradients, and no optimizer holds {them}"]
        lines += [f"{'used' if self.made is None else 'made'}{at(self.location)}"] if self.location is not None else []
        return "\n  ".join([*lines, *filter(None, (self.text, self.help))])


class _Placement(NamedTuple):
    """Where a parameter hangs: its path there, what is said of it, and what to do."""

    path: str
    text: str
    help: str


@dataclass
class _ParameterWithGradient:
    """A parameter that a backward has given a gradient, and the key of its AccumulateGrad."""

    leaf: weakref.ref[Any]
    key: int
    shape: tuple[int, ...]
    made: Location | None
    used: Location | None
    why: _Placement | None = None

    @property
    def location(self) -> Location | None:
        return self.made or self.used


class WithoutOptimizerWatch:
    """Collects parameters that have a gradient when an optimizer steps, and that none has ever held."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        # Keyed by the parameter's id, or, where no Python object is known, by minus the key of its AccumulateGrad.
        self._waiting: dict[int, _ParameterWithGradient] = {}
        self._found: dict[int, _ParameterWithGradient] = {}
        self._gone: list[_ParameterWithGradient] = []
        # The ids of parameters that an optimizer holds, and of tensors that belong to no module.
        self._held: dict[int, weakref.ref[Any]] = {}
        self._looks = 0

    def filled(self, leaf: Any, node: Any, made: Location | None, used: Location | None) -> None:
        """Note that a backward has given a gradient to a parameter, or once more to another leaf, at its node."""
        reference = self._held.get(id(leaf))
        if reference is not None and reference() is leaf:
            return
        known = self._waiting.get(id(leaf))
        if known is not None and known.leaf() is not leaf:
            self._gone.append(known)
        self._waiting[id(leaf)] = _ParameterWithGradient(
            weakref.ref(leaf), self._adapter.key(node), tuple(leaf.shape), made, used
        )

    def stepped(self, held: Sequence[Any], idle: Sequence[Any], names: Mapping[int, str]) -> None:
        """Note that an optimizer that holds some leaves, no backward having reached those in `idle`, has stepped."""
        self._hold(held)
        waiting, self._waiting = self._waiting, {}
        self._gone += [self._found.pop(i) for i, entry in list(self._found.items()) if i > 0 and entry.leaf() is None]
        new = {i: entry for i, entry in waiting.items() if i not in self._found and -entry.key not in self._found}
        new = {i: entry for i, entry in new.items() if not self._taken(entry.leaf())}
        if new and self._looks < _MOST_LOOKS:
            # The search runs now, while the program does: when it has ended, its modules are gone.
            self._looks += 1
            self._look(new.values(), idle, names)
            optimizers = living_optimizers()
        else:
            optimizers = []
        for identity, entry in new.items():
            leaf = entry.leaf()
            if leaf is not None and entry.why is None and not self._adapter.is_parameter(leaf):
                self._held[identity] = entry.leaf
            elif leaf is not None:
                self._found[identity] = entry
            elif entry.why is not None:
                self._found[-entry.key] = entry
            else:
                self._gone.append(entry)
        for optimizer in optimizers:
            self._hold(held_by(optimizer))

    def _taken(self, leaf: Any) -> bool:
        """Whether the program has had the gradient: a sharded one moves it to where its optimizer looks."""
        return leaf is not None and self._adapter.leaf_grad(leaf) is None

    def _hold(self, held: Iterable[Any]) -> None:
        for leaf in held:
            self._held[id(leaf)] = weakref.ref(leaf)
            self._waiting.pop(id(leaf), None)
            self._found.pop(id(leaf), None)

    def _look(self, entries: Iterable[_ParameterWithGradient], idle: Sequence[Any], names: Mapping[int, str]) -> None:
        modules = _LivingModules(self._adapter)
        strays = [tensor for tensor in idle if modules.owner_of(tensor) is None]
        for entry in entries:
            leaf = entry.leaf()
            entry.why = modules.behind_a_result(entry.key)
            if entry.why is None and leaf is not None and modules.owner_of(leaf) is None:
                entry.why = modules.beside_parameters(leaf)
            if entry.why is None and leaf is not None and self._adapter.is_parameter(leaf):
                entry.why = modules.why(leaf, names.get(id(leaf), ""), strays)

    def found(self) -> tuple[ParameterWithoutOptimizer, ...]:
        """Return what has been found so far, the parameters of one line and one reason together."""
        renewed: dict[Location, dict[int, _ParameterWithGradient]] = {}
        for entry in self._gone:
            if entry.location is not None:
                renewed.setdefault(entry.location, {})[entry.key] = entry
        again = {place: entries for place, entries in renewed.items() if len(entries) > 1}
        groups: dict[tuple[Location | None, Location | None, str, str], list[tuple[str, tuple[int, ...]]]] = {}
        for entries in again.values():
            text = f"{count(len(entries), 'parameter')}, each used in one iteration only: every call makes a new one"
            way_out = "Make it once, in __init__(), as an attribute of the module."
            last = list(entries.values())[-1]
            groups[last.made, last.used, text, way_out] = [("", entry.shape) for entry in entries.values()]
        # A backward finds the parameters from the last to the first.
        for entry in reversed(self._found.values()):
            if entry.location not in again or entry.location is None:
                why = entry.why or _UNKNOWN
                used = entry.used if entry.made is None else None
                groups.setdefault((entry.made, used, why.text, why.help), []).append((why.path, entry.shape))
        return tuple(
            ParameterWithoutOptimizer(
                tuple(name for name, _ in pairs), tuple(shape for _, shape in pairs), made, text, way_out, used
            )
            for (made, used, text, way_out), pairs in groups.items()
        )


_UNKNOWN = _Placement("", "", "Hand it to an optimizer, or spare that part of the backward: requires_grad_(False).")


class _LivingModules:
    """The living modules, and what hangs in them."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._all = living(adapter.module_classes())
        self._owners: dict[int, tuple[Any, str]] = {}
        self._inside: dict[int, tuple[Any, str]] = {}
        for module in self._all:
            parameters, children = tables_of(module)
            for name, parameter in parameters.items():
                self._owners.setdefault(id(parameter), (module, name))
            for name, child in children.items():
                self._inside.setdefault(id(child), (module, name))

    def owner_of(self, leaf: Any) -> Any:
        """Return the module that has a leaf among its own parameters."""
        return self._owners.get(id(leaf), (None, ""))[0]

    def why(self, leaf: Any, name: str, strays: Sequence[Any]) -> _Placement:
        """Say why no optimizer holds a leaf that a tracker calls `name`."""
        owner, attribute = self._owners.get(id(leaf), (None, ""))
        if owner is None:
            return _Placement(name, "no module has it as a parameter", "Make it an attribute of a module.")
        outermost, path = self._outermost(owner, attribute)
        for module, container, kind, place in self._containers(outermost):
            what = f"`{container}` of {type(module).__name__} is a {kind}, into which parameters() does not look"
            way_out = f"Put the modules into nn.Module{'Dict' if kind == 'dict' else 'List'}."
            return _Placement(f"{container}{place}.{path}", what, way_out)
        if strays:
            shapes = ", ".join(dict.fromkeys(format_shape(tuple(s.shape)) for s in strays[:_SHOWN]))
            what = f"the optimizer holds {count(len(strays), 'other tensor')} ({shapes}), which are in no module"
            return _Placement(name, what, "Make the optimizer after the last change of the model.")
        return _UNKNOWN._replace(path=name)

    def beside_parameters(self, leaf: Any) -> _Placement | None:
        """Say whether a module has a leaf where parameters() does not look."""
        for module in self._all:
            for name, value in list(fields_of(module).items()):
                kind = type(value).__name__
                if value is leaf and not self._adapter.is_parameter(leaf):
                    what = (
                        f"`{name}` of {type(module).__name__} is a tensor, no Parameter, so parameters() leaves it out"
                    )
                    return _Placement(self._path(module, name), what, f"Write self.{name} = nn.Parameter(...).")
                if name.startswith("_") or type(value) not in (list, tuple, dict):
                    continue
                items = value.items() if type(value) is dict else enumerate(value)
                for key, item in list(items):
                    if item is leaf:
                        what = f"`{name}` of {type(module).__name__} is a {kind}, into which parameters() does not look"
                        way_out = f"Put Parameters into nn.Parameter{'Dict' if kind == 'dict' else 'List'}."
                        return _Placement(f"{self._path(module, name)}[{key!r}]", what, way_out)
        return None

    def _path(self, module: Any, attribute: str) -> str:
        return self._outermost(module, attribute)[1]

    def _outermost(self, owner: Any, attribute: str) -> tuple[Any, str]:
        path, seen = attribute, {id(owner)}
        while id(owner) in self._inside:
            owner, name = self._inside[id(owner)]
            if id(owner) in seen:
                break
            seen.add(id(owner))
            path = f"{name}.{path}"
        return owner, path

    def _containers(self, module: Any) -> Iterator[tuple[Any, str, str, str]]:
        """Yield the modules that have `module` in a plain list, tuple or dictionary, and where in it."""
        for other in self._all:
            for name, value in list(fields_of(other).items()):
                if name.startswith("_") or type(value) not in (list, tuple, dict):
                    continue
                items: Iterable[tuple[Any, Any]] = value.items() if type(value) is dict else enumerate(value)
                for key, item in list(items):
                    if item is module:
                        yield other, name, type(value).__name__, f"[{key!r}]"

    def behind_a_result(self, key: int) -> _Placement | None:
        """Say whether a module has a result in the place of a parameter, whose AccumulateGrad has a key."""
        for module in self._all:
            for attribute, value in list(fields_of(module).items()):
                if not self._adapter.is_tensor(value) or self._adapter.is_leaf(value) is not False:
                    continue
                root = self._adapter.root(value)
                links = {} if root is None else walk(self._adapter, [root[0]])
                if key in links and len(links) < _MOST_NODES:
                    what = f"`{attribute}` of {type(module).__name__} is a result computed from it, no parameter itself"
                    way_out = f"Compute first, and wrap the result: self.{attribute} = nn.Parameter(...)."
                    return _Placement("", what, way_out)
        return None
