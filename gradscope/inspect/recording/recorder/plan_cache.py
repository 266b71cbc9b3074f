"""The plan cache: what is the same in every backward of a training loop is worked out in the first of them.

A backward mostly runs the nodes that the one before it ran, made anew. Their names, call sites, modules and edges are
compared with the cached ones, and what was derived from these is used again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from ...adapters import Plan
from ...records.module_tracking import MODULE
from ..file.node_pages import GradientFormat, PageTemplate

__all__ = ["MOST_NODES", "CachedPlan", "PlanCache", "NodePlan", "CachedTemplate"]

MOST_NODES = 200_000
"""Nodes that are remembered at most."""

_OUTLINES = 256


class NodePlan:
    """The part of a node that is the same in every backward.

    Attributes
    ----------
    row : int
        In the table `nodes`; -1 until it has run.
    wanted : bool
        Whether its gradients' values are kept.
    edges : tuple of (int or None, int)
        Where each produced gradient goes: the place of its receiver in the backward, and the input of that.
    """

    __slots__ = ("edges", "row", "wanted")

    def __init__(self, edges: tuple[tuple[int | None, int], ...]) -> None:
        self.row = -1
        self.wanted = False
        self.edges = edges


class CachedTemplate(NamedTuple):
    """An template, what it was made of, and the forms of its gradients where a page does not keep all as bytes."""

    key: tuple[list[Any], ...]
    template: PageTemplate
    to_unpack: Sequence[GradientFormat | None]


class CachedPlan:
    """The nodes that a backward may run, by place: their order in the plan.

    Attributes
    ----------
    columns : tuple of list
        Of each node its name, where it was made, its module, its parameter, and how many gradients it produces; of each
        produced gradient the place of its receiver, and its input.
    """

    __slots__ = ("_templates", "columns", "nodes")

    def __init__(self, columns: tuple[Sequence[Any], ...], nodes: list[NodePlan]) -> None:
        self.columns = columns
        self.nodes = nodes
        self._templates: dict[tuple[int, int], CachedTemplate] = {}

    def facts(self, place: int) -> tuple[str, str, str]:
        """Return the name of a node, its module and its parameter."""
        names, _, modules, parameters, *_ = self.columns
        return names[place], modules[place], parameters[place]

    def template_of(
        self, key: tuple[list[Any], ...], forms_of: Callable[[list[Any], list[Any]], list[GradientFormat | None]]
    ) -> CachedTemplate:
        """Return the template of consecutive nodes that have run: mostly that of the last backward.

        Parameters
        ----------
        key : tuple of list
            Their places, how many gradients they were given and have made, and the dtypes and shapes of these.
        forms_of : callable
            Returns the forms of gradients for dtypes and shapes.
        """
        places, incoming, produced, dtypes, shapes = key
        stretch = places[0], len(places)
        known = self._templates.get(stretch)
        if known is None or known.key != key:
            forms = forms_of(dtypes, shapes)
            rows = [self.nodes[place].row for place in places]
            unkept = any(form is not None and not form.kept for form in forms)
            known = CachedTemplate(key, PageTemplate(places, rows, incoming, produced, forms), forms if unkept else ())
            if len(self._templates) >= _OUTLINES:
                self._templates.clear()
            self._templates[stretch] = known
        return known


class PlanCache:
    """The plans of a program's backwards."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], NodePlan] = {}
        self._plans: dict[Any, CachedPlan] = {}  # the latest plan, by the facts of its root

    def find(self, plan: Plan, names: dict[int, str]) -> tuple[CachedPlan, dict[Any, Any], Any]:
        """Return the cached plan of a backward, the places of its nodes, and their sequence numbers.

        Parameters
        ----------
        names : dict of int to str
            The paths of parameters, by id.
        """
        places: dict[Any, Any] = dict(zip(plan.nodes, itertools.count()))
        facts = plan.facts
        modules = [notes.get(MODULE, "") if notes else "" for notes in facts.notes]
        parameters = ["" if leaf is None else names.get(id(leaf), "") for leaf in facts.leaves]
        receivers = list(map(places.get, plan.receivers))
        columns = facts.names, facts.sites, modules, parameters, plan.fans, receivers, plan.inputs
        root = tuple([column[0] for column in columns[:5]]) if places else None
        cached = self._plans.get(root)
        if cached is None or cached.columns != columns:
            if len(self._nodes) + len(places) > MOST_NODES:  # every backward of the program differs from the last
                self._nodes.clear()
                self._plans.clear()
            cached = self._plans[root] = CachedPlan(columns, self._node_plans(columns))
        return cached, places, numpy.array(plan.sequence_nrs, numpy.uint64)

    def _node_plans(self, columns: tuple[Sequence[Any], ...]) -> list[NodePlan]:
        *facts, fans, receivers, inputs = columns
        ends = zip(receivers, inputs)
        edges = [tuple(itertools.islice(ends, fan)) for fan in fans]
        found = []
        for identity in zip(itertools.count(), *facts, edges):
            known = self._nodes.get(identity)
            if known is None:
                known = self._nodes[identity] = NodePlan(identity[-1])
            found.append(known)
        return found
