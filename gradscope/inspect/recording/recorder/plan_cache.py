"""What is known of a backward before it runs: its nodes, which as a rule are those of the last one over again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from ...adapters import Plan
from ...records.module_tracking import MODULE
from ..file.node_pages import Form, Outline

__all__ = ["KEPT", "Course", "Courses", "Known", "Outlined"]

KEPT = 200_000
"""Nodes that are remembered."""

_OUTLINES = 256


class Known:
    """What is the same of a node in every backward.

    Attributes
    ----------
    row : int
        In the table `nodes`; -1 until it has run.
    wanted : bool
        Whether its gradients' values are kept.
    leads : tuple of (int or None, int)
        Where each produced gradient goes: the place of its receiver in the backward, and its input.
    """

    __slots__ = ("leads", "row", "wanted")

    def __init__(self, leads: tuple[tuple[int | None, int], ...]) -> None:
        self.row = -1
        self.wanted = False
        self.leads = leads


class Outlined(NamedTuple):
    """An outline, what it was made of, and the forms of its gradients where a page does not keep all as bytes."""

    looks: tuple[list[Any], ...]
    outline: Outline
    odd: Sequence[Form | None]


class Course:
    """The nodes that a backward may run, by place.

    Attributes
    ----------
    columns : tuple of list
        Of each node its name, where it was made, its module, its parameter, and how many gradients it produces; of each
        produced gradient the place of its receiver, and its input.
    """

    __slots__ = ("_outlines", "columns", "nodes")

    def __init__(self, columns: tuple[Sequence[Any], ...], nodes: list[Known]) -> None:
        self.columns = columns
        self.nodes = nodes
        self._outlines: dict[tuple[int, int], Outlined] = {}

    def facts(self, place: int) -> tuple[str, str, str]:
        """Return the name of a node, its module and its parameter."""
        names, _, modules, parameters, *_ = self.columns
        return names[place], modules[place], parameters[place]

    def outlined(
        self, looks: tuple[list[Any], ...], forms_of: Callable[[list[Any], list[Any]], list[Form | None]]
    ) -> Outlined:
        """Return the outline of consecutive nodes that have run: as a rule that of the last backward.

        Parameters
        ----------
        looks : tuple of list
            Their places, how many gradients they were given and have made, and the dtypes and shapes of these.
        forms_of : callable
            Returns the forms of gradients for dtypes and shapes.
        """
        places, incoming, produced, dtypes, shapes = looks
        stretch = places[0], len(places)
        known = self._outlines.get(stretch)
        if known is None or known.looks != looks:
            forms = forms_of(dtypes, shapes)
            rows = [self.nodes[place].row for place in places]
            odd = any(form is not None and not form.kept for form in forms)
            known = Outlined(looks, Outline(places, rows, incoming, produced, forms), forms if odd else ())
            if len(self._outlines) >= _OUTLINES:
                self._outlines.clear()
            self._outlines[stretch] = known
        return known


class Courses:
    """All courses of a program."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Known] = {}
        self._courses: dict[Any, Course] = {}  # the latest, by what tells its root

    def find(self, plan: Plan, names: dict[int, str]) -> tuple[Course, dict[Any, Any], Any]:
        """Return the course of a backward, the places of its nodes, and their sequence numbers.

        Parameters
        ----------
        names : dict of int to str
            The paths of parameters, by id.
        """
        places: dict[Any, Any] = dict(zip(plan.nodes, itertools.count()))
        modules = [notes.get(MODULE, "") if notes else "" for notes in plan.notes]
        parameters = ["" if leaf is None else names.get(id(leaf), "") for leaf in plan.leaves]
        receivers = list(map(places.get, plan.receivers))
        columns = plan.names, plan.sites, modules, parameters, plan.fans, receivers, plan.inputs
        root = tuple([column[0] for column in columns[:5]]) if places else None
        course = self._courses.get(root)
        if course is None or course.columns != columns:
            if len(self._nodes) + len(places) > KEPT:  # a program whose every backward is another
                self._nodes.clear()
                self._courses.clear()
            course = self._courses[root] = Course(columns, self._known(columns))
        return course, places, numpy.array(plan.sequence_nrs, numpy.uint64)

    def _known(self, columns: tuple[Sequence[Any], ...]) -> list[Known]:
        *facts, fans, receivers, inputs = columns
        edges = zip(receivers, inputs)
        leads = [tuple(itertools.islice(edges, fan)) for fan in fans]
        found = []
        for identity in zip(itertools.count(), *facts, leads):
            known = self._nodes.get(identity)
            if known is None:
                known = self._nodes[identity] = Known(identity[-1])
            found.append(known)
        return found
