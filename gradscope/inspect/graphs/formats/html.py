"""One page of HTML: a graph to pan, zoom, search and fold, without a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from ...output.markup import Markup, policy, render
from ...output.terminal_text import json_text, printable
from ..graph_model import BackwardGraph
from ..graph_statistics import format_bytes, graph_statistics
from ..quotient import mark_of
from .graph_format_registry import graph_format
from .picture import make_picture
from .plain import amounts

__all__ = ["to_html"]

_MOST_CHILDREN = 60


@graph_format("html", ".htm", place=6)
def to_html(graph: BackwardGraph, title: str = "Backward graph") -> str:
    """Return a graph as a page that needs nothing but a browser.

    Parameters
    ----------
    graph : BackwardGraph
        Of any size: modules are folded until somebody opens them.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> to_html(gi.graph(gs.ones(2, requires_grad=True))).splitlines()[0]
    '<!DOCTYPE html>'
    """
    page = files(__package__).joinpath("page")

    def own(*names: str) -> str:
        return "".join(page.joinpath(name).read_text(encoding="utf-8") for name in names)

    style = Markup(f"\n{own('page.css')}\n")
    script = Markup(f"\n(() => {{\n{own('layout.js', 'page.js')}}})();\n")
    first, *others = str(graph_statistics(graph)).split("\n")
    # "<" would end the script element where a text has "</script>".
    data = json_text(_page_data(graph), separators=(",", ":")).replace("<", "\\u003c")
    return render(
        "graphs/formats/page/page.html",
        title=title,
        policy=policy(style=style, script=script),
        style=style,
        script=script,
        statistics=[("graph", first), *(line.split(maxsplit=1) for line in others)],
        data=Markup(data),
    )


class _TextTable:
    """Every text once, by number: a hundred thousand nodes have few of their own."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(printable(text), len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


class _Groups:
    """The tree that the page folds by: modules, and stretches of what has too many parts."""

    def __init__(self) -> None:
        self.names = [""]
        self.parents = [0]
        self._numbers = {"": 0}

    def of_module(self, path: str) -> int:
        """Return the group of a module, made with those around it when first asked for."""
        number = self._numbers.get(path)
        if number is None:
            number = self.add(path, self.of_module(path.rpartition(".")[0]))
            self._numbers[path] = number
        return number

    def add(self, name: str, parent: int) -> int:
        self.names.append(name)
        self.parents.append(parent)
        return len(self.names) - 1


def _page_data(graph: BackwardGraph) -> dict[str, Any]:
    texts, groups = _TextTable(), _Groups()
    datas = [data for _, data in graph.nodes(data=True)]
    places = {key: place for place, key in enumerate(graph)}
    homes = [groups.of_module(data["module"]) for data in datas]
    _divide(groups, homes, datas)
    picture = make_picture(graph, most=len(graph))
    nodes = []
    for box, home in zip(picture.boxes, homes):
        _, _, details = box.tooltip.partition("\n")
        kind = box.kind if box.kind in ("root", "leaf") else "node"
        subtitle = "\n".join(box.lines)
        row = [texts.number(box.title), texts.number(subtitle), home, kind, box.mark, texts.number(details)]
        nodes.append(row)
    edges = [places[key] for source, target in graph.edges() for key in (source, target)]
    summaries = _summaries(groups, homes, datas)
    rows = [
        [texts.number(name), parent, texts.number(text), mark]
        for name, parent, (text, mark) in zip(groups.names, groups.parents, summaries)
    ]
    return {"version": 1, "texts": texts.all(), "nodes": nodes, "groups": rows, "edges": edges}


def _divide(groups: _Groups, homes: list[int], datas: list[Mapping[str, Any]]) -> None:
    """Put stretches of the execution order between a group and its parts where there are too many to draw."""
    parts: list[list[int]] = [[] for _ in groups.names]  # a node stands for itself, a group as -number
    for node, home in enumerate(homes):
        parts[home].append(node)
    for number, parent in enumerate(groups.parents):
        if number:
            parts[parent].append(-number)
    pending = [(number, inside) for number, inside in enumerate(parts) if len(inside) > _MOST_CHILDREN]
    while pending:
        parent, inside = pending.pop()
        inside.sort(key=lambda part: -part if part < 0 else part)
        size = -(-len(inside) // _MOST_CHILDREN)
        for start in range(0, len(inside), size):
            stretch = inside[start : start + size]
            if len(stretch) < 2:
                continue
            group = groups.add(_stretch_name(groups, stretch, datas), parent)
            for part in stretch:
                if part < 0:
                    groups.parents[-part] = group
                else:
                    homes[part] = group
            if len(stretch) > _MOST_CHILDREN:
                pending.append((group, stretch))


def _stretch_name(groups: _Groups, stretch: list[int], datas: list[Mapping[str, Any]]) -> str:
    names = [groups.names[-part] if part < 0 else f"node {datas[part]['index']}" for part in (stretch[0], stretch[-1])]
    return " to ".join(names)


def _summaries(groups: _Groups, homes: list[int], datas: list[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    """Return for each group what is in it and below it, and what is wrong there."""
    counts, parameters, saved = ([0] * len(groups.names) for _ in range(3))
    marks = [""] * len(groups.names)
    for home, data in zip(homes, datas):
        number = home
        mark = mark_of(data)
        own_count, own_parameters, own_bytes = amounts(data)
        while True:
            counts[number] += own_count
            parameters[number] += own_parameters
            saved[number] += own_bytes
            marks[number] = marks[number] or mark
            if not number:
                break
            number = groups.parents[number]
    for count, many, nbytes, mark in zip(counts, parameters, saved, marks):
        parts = f"{count:,} node{'s' * (count != 1)}, {many:,} parameter{'s' * (many != 1)}"
        yield f"{parts}\n{format_bytes(nbytes)} saved", mark
