"""D337: A view is taken for an exchange of dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ....output.number_format import format_shape
from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...flow.reshaping_operators import RESHAPING
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind, senders
from ...watch import Watch

__all__ = ["ExchangedDimensions"]

_VIEWS = {"View", "UnsafeView", "Reshape", "ReshapeAlias"}
# A view whose rows are shifted against each other, and then cut, is the relative positions of Transformer-XL.
_CUTTING = {"Slice", "Select", "Narrow"}
_LEAST_DIMENSIONS = 3


class ExchangedView(NamedTuple):
    """A view whose dimensions stand in another order than those of what it was taken of."""

    given: tuple[int, ...]
    made: tuple[int, ...]
    classes: int
    location: Location | None
    sighting: Sighting


class ViewWatch(Watch):
    """Compares the shape of each view with that of what it was taken of."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, ExchangedView] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph, from the inputs on."""
        links = self._graphs.of(task)
        above = senders(links)
        for key, link in sorted(links.items(), key=lambda entry: self._adapter.sequence_nr(entry[1].node)):
            name = operator_name(self._adapter.node_name(link.node))
            if name in _VIEWS:
                self._look(links, link, 0, _is_exchange, self._shifts(links, above, key))
            elif name == "LogSoftmax":
                self._look_at_rows(links, link)

    def _shifts(self, links: Mapping[int, NodeLinks], above: Mapping[int, Any], key: int) -> bool:
        """Whether a view is cut when it has been taken, or was taken of what has been cut."""
        beside = [user.node for user, _ in above.get(key, ())]
        below = links[key].edges[0][0]
        while below is not None and operator_name(self._adapter.node_name(links[below].node)) in _CUTTING | {"Clone"}:
            beside.append(links[below].node)
            below = links[below].edges[0][0]
        return any(operator_name(self._adapter.node_name(node)) in _CUTTING for node in beside)

    def _look_at_rows(self, links: Mapping[int, NodeLinks], loss: NodeLinks) -> None:
        """Look whether a view has cut the rows of classes out of other dimensions."""
        made = self._shape_of(loss.node, 0)
        key = loss.edges[0][0]
        while made is not None and len(made) == 2 and key is not None:
            link = links[key]
            name = operator_name(self._adapter.node_name(link.node))
            if name not in RESHAPING:
                return
            if name in _VIEWS:
                self._look(links, link, made[1], _is_cut, False)
            key = link.edges[0][0]

    def _look(self, links: Mapping[int, NodeLinks], link: NodeLinks, classes: int, judged: Any, excused: bool) -> None:
        child, index = self._adapter.edges(link.node)[0]
        made = self._shape_of(link.node, 0)
        given = None if child is None else self._shape_of(child, index)
        if made and given and not excused and judged(given, made):
            line = self._adapter.location(link.node)
            if line not in self.found:
                leaves = leaves_behind(self._adapter, links, self._adapter.key(link.node))
                self.found[line] = ExchangedView(given, made, classes, line, self._program.sighting(leaves))

    def _shape_of(self, node: Any, index: int) -> tuple[int, ...] | None:
        outputs = self._adapter.outputs(node)
        return tuple(outputs[index].shape) if index < len(outputs) else None


def _is_exchange(given: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """Whether the same dimensions stand in another order; with two, one may have been split and the other joined."""
    before, after = ([size for size in shape if size > 1] for shape in (given, made))
    return len(before) >= _LEAST_DIMENSIONS and before != after and sorted(before) == sorted(after)


def _is_cut(given: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """Whether the classes were the second dimension of several, and are the last one now; of one position they may."""
    several = len(given) >= _LEAST_DIMENSIONS and math.prod(given[2:]) > 1
    return several and len(made) == 2 and given[1] == made[1] != given[-1]


EXCHANGED_VIEWS = Fact("exchanged views", ViewWatch, lambda watch: tuple(watch.found.values()), backward=True)


class ExchangedDimensions(Rule):
    """A view is taken for an exchange of dimensions."""

    code = "D337"
    title = "a view where dimensions were to be exchanged"
    severity = "silent-wrong"
    needs = (EXCHANGED_VIEWS,)
    certainty = "likely"
    kind = "shape"
    explains = ("D336",)
    what = """
        view() and reshape() leave the numbers in their order in memory, and only say where a row ends. A view that has
        the dimensions of what it was taken of in another order does not exchange them: numbers of different samples,
        positions or channels come to stand in one row. A loss that is given rows which were cut in this way compares
        what does not belong together. Nothing raises, as the number of elements fits.
        """
    bad = """
        weight = gs.randn(4, 5, requires_grad=True)
        batch_first = gs.randn(6, 3, 4)
        time_first = (batch_first @ weight).view(3, 6, 5)
        (time_first - gs.randn(3, 6, 5)).square().mean().backward()
        """
    good = """
        weight = gs.randn(4, 5, requires_grad=True)
        batch_first = gs.randn(6, 3, 4)
        time_first = (batch_first @ weight).transpose(0, 1)
        (time_first - gs.randn(3, 6, 5)).square().mean().backward()
        """

    def judge(self, found: Iterable[ExchangedView]) -> Iterator[Found]:
        """Yield the first of them; what a later view does is often meant to undo it."""
        views = list(found)
        if not views:
            return
        first, *others = views
        lines = "".join(f"\n  also{at(view.location)}" for view in others)
        shapes = f"{format_shape(first.given)} becomes {format_shape(first.made)}{at(first.location)}"
        if first.classes:
            text = (
                f"{shapes}: a row that the loss is given holds {first.classes} numbers of one class, and not one "
                f"position's {first.classes} classes{lines}\n"
                f"  Put the classes last before: permute({_classes_last(len(first.given))})."
            )
        else:
            text = (
                f"{shapes} by a view, which exchanges no numbers: it mixes rows{lines}\n  Use transpose() or permute()."
            )
        yield Found(text, first.location, *first.sighting)


def _classes_last(dimensions: int) -> str:
    return ", ".join(map(str, (0, *range(2, dimensions), 1)))
