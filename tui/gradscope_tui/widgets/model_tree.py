"""The rows of the modules pane: modules and their parameters as a tree, what is not reached first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradscope_tui.widgets.graph_rows import ancestors

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import ParameterRecord

__all__ = ["ModelRow", "ModelTree"]

_NEVER = math.inf
"""Where a module stands whose nodes are not in the backward."""


@dataclass(slots=True)
class ModelRow:
    """A module, or a parameter.

    Parameters
    ----------
    path : str
        ``'layers.0'`` or ``'layers.0.weight'``; empty for what is in no module.
    depth : int
        Modules around it.
    parameter : ParameterRecord or None
        None for a module.
    nodes : sequence of int
        The nodes of a module, of all that it consists of; of a parameter the one that brings its gradient.
    unreached : int
        How many of its parameters require a gradient and get none.
    recent : tuple of float
        The norms that the latest backwards brought it; of a module those of all its parameters taken together.
    """

    path: str
    depth: int
    parameter: ParameterRecord | None = None
    nodes: Sequence[int] = ()
    unreached: int = 0
    norm: float | None = None
    recent: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]


@dataclass(slots=True)
class _Module:
    nodes: list[int] = field(default_factory=list)
    parameters: list[ParameterRecord] = field(default_factory=list)
    inside: list[ParameterRecord] = field(default_factory=list)


class ModelTree:
    """The modules of a backward and all parameters that are known.

    A module stands below the one that it is part of; those of one level in the order in which their nodes run, but
    those first that have parameters which are not reached.

    Parameters
    ----------
    modules : sequence of str
        For each node in execution order its module, empty where it has none.
    parameters : sequence of ParameterRecord
        May be of modules that have no node.

    Examples
    --------
    >>> from gradscope.inspect.debugging.session.session_records import ParameterRecord
    >>> lost = ParameterRecord("tower.weight", (2,), unreached=True)
    >>> tree = ModelTree(["fc", "fc"], [ParameterRecord("fc.weight", (3,), index=1, norm=2.0), lost])
    >>> [(row.path, row.depth, row.unreached) for row in tree.rows()]
    [('tower', 0, 1), ('tower.weight', 1, 1), ('fc', 0, 0), ('fc.weight', 1, 0)]
    """

    def __init__(self, modules: Sequence[str], parameters: Sequence[ParameterRecord]) -> None:
        found: defaultdict[str, _Module] = defaultdict(_Module)
        around: dict[str, list[list[int]]] = {}
        for index, module in enumerate(modules):
            if module not in around:
                around[module] = [found[part].nodes for part in ancestors(module)]
            for nodes in around[module]:
                nodes.append(index)
        for parameter in parameters:
            owner = parameter.path.rpartition(".")[0]
            found[owner].parameters.append(parameter)
            for part in ancestors(owner):
                found[part].inside.append(parameter)
        self._modules: dict[str, _Module] = dict(found)
        places = {path: self._place(path) for path in found if path}
        self._order = sorted(places, key=lambda path: [places[part] for part in ancestors(path)])

    @property
    def module_count(self) -> int:
        """How many modules there are."""
        return len(self._order)

    def rows(self, folded: frozenset[str] = frozenset()) -> list[ModelRow]:
        """Return the rows that are seen while some modules are folded."""
        rows = self._parameters("", 0)
        for path in self._order:
            around = ancestors(path)
            if any(part in folded for part in around[:-1]):
                continue
            rows.append(self._module(path, len(around) - 1))
            if path not in folded:
                rows += self._parameters(path, len(around))
        return rows

    def _place(self, path: str) -> tuple[bool, float, str]:
        module = self._modules[path]
        return not any(p.unreached for p in module.inside), module.nodes[0] if module.nodes else _NEVER, path

    def _module(self, path: str, depth: int) -> ModelRow:
        module = self._modules[path]
        unreached = sum(parameter.unreached for parameter in module.inside)
        norms = [parameter.norm for parameter in module.inside if parameter.norm is not None]
        norm = math.hypot(*norms) if norms else None
        return ModelRow(path, depth, None, module.nodes, unreached, norm, _together(module.inside))

    def _parameters(self, path: str, depth: int) -> list[ModelRow]:
        own = self._modules[path].parameters if path in self._modules else []
        return [
            ModelRow(p.path, depth, p, (p.index,) if p.index >= 0 else (), int(p.unreached), p.norm, p.recent)
            for p in sorted(own, key=lambda parameter: not parameter.unreached)
        ]


def _together(parameters: Sequence[ParameterRecord]) -> tuple[float, ...]:
    """Return the norms over the latest backwards of parameters taken together, of those with the most of them."""
    most = max((len(parameter.recent) for parameter in parameters), default=0)
    columns = zip(*(parameter.recent for parameter in parameters if len(parameter.recent) == most))
    return tuple(math.hypot(*norms) for norms in columns)
