"""Names of leaves and nodes: as the caller says, as a tracker saw, else after the living modules that own them.

Without ``params`` and without :func:`track`, a loss alone does not tell which model it is of. The modules do: they are
alive, and the parameters that the graph ends in are theirs. So one look through the objects that the garbage collector
knows finds them. Their dictionaries are read, and none of their code runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from ..adapters import Adapter
from ..source.call_sites import fields_of, user_frame, user_frames
from ..source.variable_names import name_of
from .execution_order import NodeLinks
from .module_tracking import Tracker, free_label, join, latest_tracker, module_of_parameter
from .object_search import living
from .records import operator_name

__all__ = [
    "Names",
    "living_roots",
    "name_graph",
    "named_tensors",
    "names_for",
    "parameters_below",
    "tables_of",
    "unusable",
]

# Operators between a parameter and the one that uses it, which are part of that use.
_PASSING_ON = {
    "AsStrided", "Chunk", "Clone", "Expand", "Mt", "Permute", "ReshapeAlias", "Select", "Slice", "Split", "Squeeze",
    "T", "ToCopy", "Transpose", "Unbind", "UnsafeView", "Unsqueeze", "View",
}  # fmt: skip
_MOST_PASSING_ON = 4


@dataclass(frozen=True)
class Names:
    """The names in a graph, as far as they are known.

    Attributes
    ----------
    paths : dict of int to str
        From the id of a leaf to what it is called. Valid as long as the leaves live.
    tensors : tuple of (str, Tensor)
        All parameters there are where the names come from, also such as the graph does not reach; then the leaves that
        have no name.
    roots : dict of str to Module
        The outermost modules that the leaves are in, by what their parameters' paths begin with.
    modules : dict of int to str
        From the key of a node that no tracker has seen to the module whose parameters it uses.
    """

    paths: dict[int, str]
    tensors: tuple[tuple[str, Any], ...] = ()
    roots: dict[str, Any] = field(default_factory=dict)
    modules: dict[int, str] = field(default_factory=dict)


def named_tensors(adapter: Adapter, params: Any) -> list[tuple[str, Any]]:
    """Return the (name, tensor) pairs that a module, a mapping, pairs, or tensors stand for.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, iterable of (str, Tensor) or of Tensor, Tensor, or None
        None stands for no tensor at all.

    Raises
    ------
    TypeError
        If `params` is none of these.
    """
    if params is None:
        return []
    if adapter.is_tensor(params):
        return [("", params)]
    if hasattr(params, "named_parameters"):
        return list(adapter.named_parameters(params))
    if not isinstance(params, Iterable):
        raise unusable(params)
    items = list(params.items()) if isinstance(params, Mapping) else list(params)
    pairs = [item if isinstance(item, tuple) else (f"[{i}]", item) for i, item in enumerate(items)]
    for pair in pairs:
        if not (len(pair) == 2 and isinstance(pair[0], str) and adapter.is_tensor(pair[1])):
            raise unusable(pair[-1] if pair else pair)
    return pairs


def unusable(found: Any) -> TypeError:
    """Return what to raise for something that is no parameter."""
    return TypeError(
        "parameters are a module, a mapping of names to tensors, pairs of (name, tensor) or tensors, "
        f"got an item of {type(found).__name__}\nPass model, or model.named_parameters()."
    )


def name_graph(
    adapter: Adapter, links: Mapping[int, NodeLinks], params: Any = None, *, tracker: Tracker | None = None
) -> Names:
    """Return what the leaves of a graph are called, and whose parameters its nodes use.

    Parameters
    ----------
    links : mapping of int to NodeLinks
        As :func:`walk` returns them.
    params, tracker : object, optional
        As :func:`names_for` takes them.
    """
    found = {key: adapter.variable(link.node) for key, link in links.items() if not link.edges}
    leaves = {key: leaf for key, leaf in found.items() if leaf is not None}
    names = names_for(adapter, list(leaves.values()), params, tracker=tracker)
    owned = {key: module_of_parameter(names.paths[id(t)]) for key, t in leaves.items() if id(t) in names.paths}
    return replace(names, modules=_modules(adapter, links, owned))


def names_for(
    adapter: Adapter,
    leaves: Sequence[Any],
    params: Any = None,
    *,
    tracker: Tracker | None = None,
    frame: FrameType | None = None,
) -> Names:
    """Return what leaves are called.

    The names in `params` come first, then those of a tracker. Only if neither is there, or the tracker does not know
    all leaves, the modules that own the others are looked for. Of one such module the parameters have their plain
    paths; where there are several, or a tracker knows some leaves, each path begins with what tells the modules apart:
    the variable, or attribute of ``self``, that holds the module in the innermost of the user's functions that has one,
    or in its file, else its class. A second ``Linear`` is ``Linear#2``, in the order of `leaves`.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, iterable of (str, Tensor), or None
        What the caller calls them.
    tracker : Tracker, optional
        By default that of the latest :func:`track` or :func:`ledger`.
    frame : frame, optional
        Variables are looked for from here outwards; by default from the caller.

    Raises
    ------
    TypeError
        If `params` is none of these.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> model = gs.nn.Sequential(gs.nn.Linear(2, 2), gs.nn.Linear(2, 1))
    >>> names_for(NativeAdapter(), [model[1].bias]).paths[id(model[1].bias)]
    '1.bias'
    """
    tracker = tracker or latest_tracker()
    seen = {} if tracker is None else tracker.roots()
    known = {label: list(parameters_below(root, label)) for label, root in seen.items()}
    paths = _paths(known)
    if params is not None:
        given = named_tensors(adapter, params)
        paths.update({id(tensor): name for name, tensor in reversed(given) if name})
        modules = {"": params} if issubclass(type(params), adapter.module_classes()) else {}
        return Names(paths, _with_rest(given, leaves, paths), modules)
    if not any(id(leaf) in paths for leaf in leaves):
        seen, known = {}, {}
    unknown = [leaf for leaf in leaves if id(leaf) not in paths and adapter.is_parameter(leaf)]
    found = living_roots(adapter, unknown, frame or user_frame(), taken=seen) if unknown else {}
    known |= {label: list(parameters_below(root, label)) for label, root in found.items()}
    wanted = {id(leaf) for leaf in leaves}
    used = [label for label, pairs in known.items() if any(id(tensor) in wanted for _, tensor in pairs)]
    paths, pairs = _paths(known), itertools.chain.from_iterable(known[label] for label in used)
    return Names(paths, _with_rest(pairs, leaves, paths), {label: (seen | found)[label] for label in used})


def _paths(known: Mapping[str, Sequence[tuple[str, Any]]]) -> dict[int, str]:
    """Return the paths of parameters by id; of one that several have, the first."""
    found: dict[int, str] = {}
    for path, parameter in itertools.chain.from_iterable(known.values()):
        found.setdefault(id(parameter), path)
    return found


def _with_rest(
    pairs: Iterable[tuple[str, Any]], leaves: Iterable[Any], paths: Mapping[int, str]
) -> tuple[tuple[str, Any], ...]:
    """Return parameters once each, by their first name, and after them the leaves that are not among them."""
    found: dict[int, tuple[str, Any]] = {}
    for name, tensor in pairs:
        found.setdefault(id(tensor), (name, tensor))
    for leaf in leaves:
        found.setdefault(id(leaf), (paths.get(id(leaf), ""), leaf))
    return tuple(found.values())


# --- the modules that live ---


def living_roots(
    adapter: Adapter, leaves: Sequence[Any], frame: FrameType | None = None, *, taken: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the living modules that own leaves and are in no other module, by label.

    It takes one look through all objects, as :func:`~gradscope.inspect.records.object_search.living` says.

    Parameters
    ----------
    frame : frame, optional
        Variables are looked for from here outwards.
    taken : iterable of str
        Labels that are given already. With none, a module that is the only one goes without a label.
    """
    inside: dict[int, list[Any]] = {}
    owners: dict[int, list[Any]] = {}
    for module in living(adapter.module_classes()):
        parameters, children = tables_of(module)
        for child in children.values():
            inside.setdefault(id(child), []).append(module)
        for parameter in parameters.values():
            owners.setdefault(id(parameter), []).append(module)
    owning = {id(owner): owner for leaf in leaves for owner in owners.get(id(leaf), ())}
    roots = {id(root): root for owner in owning.values() for root in _outermost(owner, inside)}
    labels: dict[str, Any] = dict.fromkeys(taken)
    if not labels and len(roots) == 1:
        return {"": next(iter(roots.values()))}
    frames = [] if frame is None else list(user_frames(frame))
    for root in roots.values():
        variables = (name_of(root, frame).removeprefix("self.") for frame in frames)
        labels[free_label(next(filter(None, variables), type(root).__name__), labels)] = root
    return {label: root for label, root in labels.items() if root is not None}


def _outermost(module: Any, inside: Mapping[int, list[Any]]) -> list[Any]:
    """Return the modules that `module` is in and that are in no other; of modules in a ring, the one asked about."""
    seen, stack, found = {id(module)}, [module], []
    while stack:
        inner = stack.pop()
        around = inside.get(id(inner), ())
        if not around:
            found.append(inner)
        for outer in around:
            if id(outer) not in seen:
                seen.add(id(outer))
                stack.append(outer)
    return found or [module]


def tables_of(module: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return copies of a module's own parameters and children, without running its code; none of one half made.

    Copies, because another thread may be building the module.
    """
    fields = fields_of(module)
    parameters, children = fields.get("_parameters"), fields.get("_modules")
    return _copied(parameters), _copied(children)


def _copied(table: Any) -> dict[str, Any]:
    return dict.copy(table) if issubclass(type(table), dict) else {}


def parameters_below(root: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield what ``named_parameters(prefix)`` of a module yields."""
    told: set[int] = set()
    stack = [(prefix, root)]
    while stack:
        path, module = stack.pop()
        if id(module) in told:
            continue
        told.add(id(module))
        parameters, children = tables_of(module)
        for name, parameter in parameters.items():
            if parameter is not None and id(parameter) not in told:
                told.add(id(parameter))
                yield join(path, name), parameter
        for name, child in reversed(children.items()):
            if child is not None:
                stack.append((join(path, name), child))


# --- the nodes ---


def _modules(adapter: Adapter, links: Mapping[int, NodeLinks], owned: Mapping[int, str]) -> dict[int, str]:
    """Return the modules of nodes that no tracker has seen, after the parameters that they use."""
    if not any(owned.values()):
        return {}
    used = dict(owned)
    single = [(key, link) for key, link in links.items() if len(link.edges) == 1]
    for _ in range(_MOST_PASSING_ON):
        passing = [(key, link) for key, link in single if key not in used and link.edges[0][0] in used]
        passing = [(key, link) for key, link in passing if operator_name(adapter.node_name(link.node)) in _PASSING_ON]
        used.update((key, used[target]) for key, link in passing if (target := link.edges[0][0]) is not None)
        if not passing:
            break
    found: dict[int, str] = {}
    for key, link in links.items():
        modules = [used[target] for target, _ in link.edges if target in used]
        if modules and adapter.location(link.node) is None:
            found[key] = modules[0] if len(set(modules)) == 1 else _common(modules)
    return found


def _common(modules: Sequence[str]) -> str:
    """Return the innermost module that contains all of `modules`."""
    kept = []
    for level in zip(*(module.split(".") for module in modules)):
        if len(set(level)) > 1:
            break
        kept.append(level[0])
    return ".".join(kept)
