"""SVG, by Graphviz where it is installed and by our own layout elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from ...output.markup import Markup, element
from .graph_format_registry import graph_format
from .graph_layout import lay_out
from .graphviz_layout import graphviz_layout
from .picture import Box, Picture, make_picture
from .theme import DARK, LIGHT, MARKS, text_width

if TYPE_CHECKING:
    from ..graph_model import BackwardGraph

__all__ = ["picture_to_svg", "to_svg"]

_TITLE, _LINE = 12, 10
_PADDING, _LEADING = 9, 4
_ARROW = 7


@graph_format("svg", picture=True, place=1)
def to_svg(graph: BackwardGraph, *, graphviz: bool = True) -> str:
    """Return a picture of a graph.

    Parameters
    ----------
    graphviz : bool
        Let Graphviz lay it out, if its `dot` is on the path.

    Returns
    -------
    str
        An SVG document. It follows the reader's light or dark mode.

    Raises
    ------
    PictureTooLargeError
        If the graph has more nodes than anyone can look at.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> to_svg(gi.graph(gs.ones(2, requires_grad=True)), graphviz=False)[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    return str(picture_to_svg(make_picture(graph), graphviz=graphviz))


def picture_to_svg(picture: Picture, *, graphviz: bool = False) -> Markup:
    """Return a picture as SVG.

    Parameters
    ----------
    graphviz : bool
        As for :func:`to_svg`.
    """
    sizes = [box_size(box) for box in picture.boxes]
    arrows = [(arrow.source, arrow.target) for arrow in picture.arrows]
    layout = (graphviz_layout(sizes, arrows) if graphviz else None) or lay_out(sizes, arrows)
    width, height = layout.width, layout.height
    parts = [element("style", None, _style()), _defs()]
    for arrow, route in zip(picture.arrows, layout.routes):
        course = {"class": "gs-arrow", "d": path_data(route, curved=layout.curved), "marker-end": "url(#gs-tip)"}
        parts.append(element("path", course, element("title", None, arrow.tooltip)))
        if arrow.count > 1:
            x, y = route[-1]
            parts.append(_text("gs-count", x + 4, y - 9, f"×{arrow.count}"))
    parts += [_box(box, size, centre) for box, size, centre in zip(picture.boxes, sizes, layout.boxes)]
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": f"{width:g}",
        "height": f"{height:g}",
        "viewBox": f"0 0 {width:g} {height:g}",
        "font-family": "Helvetica, Arial, sans-serif",
    }
    return element("svg", attributes, *_lines(parts)) + "\n"


def _lines(parts: Iterable[Markup]) -> Iterable[str]:
    """Yield elements, each on a line of its own."""
    yield "\n"
    for part in parts:
        yield from (part, "\n")


def _defs() -> Markup:
    tip = element("path", {"class": "gs-tip", "d": "M0 1 L10 5 L0 9 z"})
    size = {"markerWidth": _ARROW, "markerHeight": _ARROW, "markerUnits": "userSpaceOnUse", "orient": "auto"}
    return element(
        "defs", None, element("marker", {"id": "gs-tip", "viewBox": "0 0 10 10", "refX": 9, "refY": 5, **size}, tip)
    )


def box_size(box: Box) -> tuple[float, float]:
    """Return the width and height of a box, in pixels."""
    widest = max([text_width(box.title, _TITLE) * 1.06, *(text_width(line, _LINE) for line in box.lines)])
    height = 2 * _PADDING + _TITLE + (_LINE + _LEADING) * len(box.lines)
    return round(max(56.0, widest + 2 * _PADDING), 1), float(height)


def _box(box: Box, size: tuple[float, float], centre: tuple[float, float]) -> Markup:
    (width, height), (x, y) = size, centre
    mark = f" gs-{box.mark}" if box.mark else ""
    left, top = x - width / 2, y - height / 2
    parts = [element("title", None, box.tooltip)]
    if box.kind == "blocks":  # a stack of boxes is drawn
        parts.append(_rectangle(left + 4, top + 4, width, height, 6))
    radius = height / 2 if box.kind == "leaf" and not box.lines else 10 if box.kind == "leaf" else 6
    parts.append(_rectangle(left, top, width, height, radius))
    baseline = top + _PADDING + _TITLE - 2
    parts.append(_text("gs-title", x, baseline, box.title))
    for line in box.lines:
        baseline += _LINE + _LEADING
        parts.append(_text("gs-line", x, baseline, line))
    return element("g", {"class": f"gs-box gs-{box.kind}{mark}"}, *_lines(parts))


def _rectangle(x: float, y: float, width: float, height: float, radius: float) -> Markup:
    numbers = {"x": x, "y": y, "width": width, "height": height, "rx": radius}
    return element("rect", {name: f"{number:g}" for name, number in numbers.items()})


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return element("text", {"class": kind, "x": f"{x:g}", "y": f"{y:g}"}, text)


def path_data(route: Iterable[tuple[float, float]], *, curved: bool = False) -> str:
    """Return the ``d`` of an arrow's path.

    Parameters
    ----------
    route : iterable of (float, float)
        Points as :class:`~.graph_layout.Layout` gives them.
    curved : bool
        They are those of Bézier curves.

    Examples
    --------
    >>> path_data([(0.0, 0.0), (0.0, 10.0), (4.0, 20.0)])
    'M0 0 L0 10 C0 15 4 15 4 20'
    """
    points = list(route)
    parts = [f"M{points[0][0]:g} {points[0][1]:g}"]
    if curved:
        return f"{parts[0]} C" + " ".join([f"{x:g} {y:g}" for x, y in points[1:]])
    for (x, y), (to_x, to_y) in pairwise(points):
        if x == to_x:
            parts.append(f"L{to_x:g} {to_y:g}")
        else:
            middle = (y + to_y) / 2
            parts.append(f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}")
    return " ".join(parts)


def _style() -> Markup:
    rules = [
        f".gs-title{{font-size:{_TITLE}px;font-weight:600;text-anchor:middle;fill:#1c2230}}",
        f".gs-line{{font-size:{_LINE}px;text-anchor:middle;fill:#5a6475}}",
        ".gs-count{font-size:9px;fill:#5a6475}",
        ".gs-arrow{fill:none;stroke:#7a869a;stroke-width:1.1}",
        ".gs-tip{fill:#7a869a}",
        *_kinds(LIGHT),
        *(f".gs-{mark} rect{{stroke:{colour};stroke-width:2.5}}" for mark, colour in MARKS.items()),
        "@media (prefers-color-scheme: dark){",
        ".gs-title{fill:#e8ebf0}.gs-line,.gs-count{fill:#a7b0be}.gs-arrow{stroke:#8791a3}.gs-tip{fill:#8791a3}",
        *_kinds(DARK),
        *(f".gs-{mark} rect{{stroke:#ff6b76}}" for mark in MARKS),
        "}",
    ]
    return Markup("".join(rules))


def _kinds(theme: dict[str, tuple[str, str]]) -> list[str]:
    return [f".gs-{kind} rect{{fill:{fill};stroke:{stroke}}}" for kind, (fill, stroke) in theme.items()]
