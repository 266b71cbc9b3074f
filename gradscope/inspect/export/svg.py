"""SVG, by Graphviz where it is installed and by our own layout elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise

from ..graphs.model import BackwardGraph
from ..terminal import printable
from .dot import graphviz_layout
from .layout import lay_out
from .picture import Box, Picture, make_picture
from .theme import DARK, LIGHT, MARKS, text_width

__all__ = ["picture_to_svg", "to_svg"]

_TITLE, _LINE = 12, 10
_PADDING, _LEADING = 9, 4
_ARROW = 7


def to_svg(graph: BackwardGraph, *, graphviz: bool = True) -> str:
    """Return a picture of a graph.

    Parameters
    ----------
    graph : BackwardGraph
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
    return picture_to_svg(make_picture(graph), graphviz=graphviz)


def picture_to_svg(picture: Picture, *, graphviz: bool = False) -> str:
    """Return a picture as SVG.

    Parameters
    ----------
    picture : Picture
    graphviz : bool
        As for :func:`to_svg`.

    Returns
    -------
    str
    """
    sizes = [box_size(box) for box in picture.boxes]
    arrows = [(arrow.source, arrow.target) for arrow in picture.arrows]
    layout = (graphviz_layout(sizes, arrows) if graphviz else None) or lay_out(sizes, arrows)
    width, height = layout.width, layout.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="Helvetica, Arial, sans-serif">',
        f"<style>{_style()}</style>",
        f'<defs><marker id="gs-tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="{_ARROW}" '
        f'markerHeight="{_ARROW}" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="gs-tip" d="M0 1 L10 5 L0 9 z"/></marker></defs>',
    ]
    for arrow, route in zip(picture.arrows, layout.routes):
        parts.append(
            f'<path class="gs-arrow" d="{path_data(route, curved=layout.curved)}" marker-end="url(#gs-tip)">'
            f"<title>{_text(arrow.tooltip)}</title></path>"
        )
        if arrow.count > 1:
            x, y = route[-1]
            parts.append(f'<text class="gs-count" x="{x + 4:g}" y="{y - 9:g}">×{arrow.count}</text>')
    for box, size, centre in zip(picture.boxes, sizes, layout.boxes):
        parts += _box(box, size, centre)
    return "\n".join([*parts, "</svg>", ""])


def box_size(box: Box) -> tuple[float, float]:
    """Return the width and height of a box, in pixels.

    Parameters
    ----------
    box : Box

    Returns
    -------
    tuple of float
    """
    widest = max([text_width(box.title, _TITLE) * 1.06, *(text_width(line, _LINE) for line in box.lines)])
    height = 2 * _PADDING + _TITLE + (_LINE + _LEADING) * len(box.lines)
    return round(max(56.0, widest + 2 * _PADDING), 1), float(height)


def _box(box: Box, size: tuple[float, float], centre: tuple[float, float]) -> Iterable[str]:
    (width, height), (x, y) = size, centre
    mark = f" gs-{box.mark}" if box.mark else ""
    left, top = x - width / 2, y - height / 2
    yield f'<g class="gs-box gs-{box.kind}{mark}"><title>{_text(box.tooltip)}</title>'
    if box.kind == "blocks":  # a stack of the same
        yield f'<rect x="{left + 4:g}" y="{top + 4:g}" width="{width:g}" height="{height:g}" rx="6"/>'
    radius = height / 2 if box.kind == "leaf" and not box.lines else 10 if box.kind == "leaf" else 6
    yield f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"/>'
    baseline = top + _PADDING + _TITLE - 2
    yield f'<text class="gs-title" x="{x:g}" y="{baseline:g}">{_text(box.title)}</text>'
    for line in box.lines:
        baseline += _LINE + _LEADING
        yield f'<text class="gs-line" x="{x:g}" y="{baseline:g}">{_text(line)}</text>'
    yield "</g>"


def path_data(route: Iterable[tuple[float, float]], *, curved: bool = False) -> str:
    """Return the ``d`` of an arrow's path.

    Parameters
    ----------
    route : iterable of (float, float)
        Points as :class:`~.layout.Layout` gives them.
    curved : bool
        They are those of Bézier curves.

    Returns
    -------
    str

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


def _style() -> str:
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
    return "".join(rules)


def _kinds(theme: dict[str, tuple[str, str]]) -> list[str]:
    return [f".gs-{kind} rect{{fill:{fill};stroke:{stroke}}}" for kind, (fill, stroke) in theme.items()]


def _text(text: str) -> str:
    return escape(printable(text))
