"""Graphviz: a graph in its language, and its layout for our own drawing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ...output.terminal_text import one_line, printable
from .graph_format_registry import graph_format
from .graph_layout import Layout
from .picture import Box, Picture, make_picture
from .theme import FONT, MARKS, colours

if TYPE_CHECKING:
    from ..graph_model import BackwardGraph

__all__ = ["graphviz_layout", "picture_to_dot", "to_dot"]

_QUIET = "#5a6475"
_INCH, _MARGIN = 72.0, 12.0  # in pixels, which are Graphviz's points
_TIMEOUT = 30  # seconds
_MOST_FOR_GRAPHVIZ = 600


@graph_format("dot", ".gv", picture=True, place=2)
def to_dot(graph: BackwardGraph) -> str:
    """Return a graph in the DOT language, for Graphviz.

    Raises
    ------
    PictureTooLargeError
        If the graph has more nodes than anyone can look at.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> from gradscope.inspect.graphs.formats.dot import to_dot
    >>> print(to_dot(gi.graph(gs.ones(2, requires_grad=True))).splitlines()[0])
    digraph backward {
    """
    return picture_to_dot(make_picture(graph))


def picture_to_dot(picture: Picture) -> str:
    """Return a picture in the DOT language."""
    lines = [
        "digraph backward {",
        '  graph [rankdir=TB, nodesep=0.3, ranksep=0.4, bgcolor="transparent"];',
        f"  node [shape=box, style={_quoted('rounded,filled')}, fontname={_quoted(FONT)}, fontsize=12];",
        f'  edge [color="#7a869a", arrowsize=0.7, fontname={_quoted(FONT)}, fontsize=9, fontcolor="{_QUIET}"];',
    ]
    lines += [f"  n{place} [{_attributes(box)}];" for place, box in enumerate(picture.boxes)]
    for arrow in picture.arrows:
        label = f"label={_quoted(f'×{arrow.count}')}, " if arrow.count > 1 else ""
        lines.append(f"  n{arrow.source} -> n{arrow.target} [{label}tooltip={_quoted(arrow.tooltip)}];")
    return "\n".join([*lines, "}", ""])


def _attributes(box: Box) -> str:
    fill, stroke = colours(box.kind)
    width = 1
    if box.mark:
        stroke, width = MARKS[box.mark], 2
    return (
        f"label=<{_label(box)}>, fillcolor={_quoted(fill)}, color={_quoted(stroke)}, penwidth={width}, "
        f"tooltip={_quoted(box.tooltip)}"
    )


def _label(box: Box) -> str:
    """Return Graphviz's HTML for a box: the title, and below it smaller and quieter what else it reads."""
    title = f"<b>{_html(box.title)}</b>"
    if not box.lines:
        return title
    lines = "<br/>".join(map(_html, box.lines))
    return f'{title}<br/><font point-size="10" color="{_QUIET}">{lines}</font>'


def _html(text: str) -> str:
    return escape(one_line(text.replace("\n", " ")))


def _quoted(text: str) -> str:
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def graphviz_layout(sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]]) -> Layout | None:
    """Return a graph as Graphviz lays it out, None without Graphviz, or where it fails or takes too long.

    Parameters
    ----------
    sizes : sequence of (float, float)
        Width and height of each box, in pixels.
    arrows : sequence of (int, int)
        From box to box, by their place in `sizes`.
    """
    program = shutil.which("dot")
    if program is None or len(sizes) > _MOST_FOR_GRAPHVIZ:
        return None
    # The file gives the sizes: a reader's font is seldom the one that Graphviz measures texts in.
    lines = ["digraph {", "  graph [nodesep=0.3, ranksep=0.4];", "  node [shape=box, fixedsize=true];"]
    lines += [f"  {place} [width={w / _INCH:.4f}, height={h / _INCH:.4f}];" for place, (w, h) in enumerate(sizes)]
    lines += [f"  {source} -> {target} [dir=none];" for source, target in arrows]
    source = "\n".join([*lines, "}", ""]).encode()
    try:
        done = subprocess.run([program, "-Tplain"], input=source, capture_output=True, timeout=_TIMEOUT, check=True)
        return _read_plain(done.stdout.decode(), arrows)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return None


def _read_plain(text: str, arrows: Sequence[tuple[int, int]]) -> Layout:
    """Return the layout that Graphviz's plain format describes: in inches, from the lower left."""
    lines = [line.split() for line in text.splitlines()]
    width, height = (float(number) * _INCH for number in lines[0][2:4])

    def point(x: str, y: str) -> tuple[float, float]:
        return round(float(x) * _INCH + _MARGIN, 1), round(height - float(y) * _INCH + _MARGIN, 1)

    boxes, routes = {}, {}
    for kind, *words in lines:
        if kind == "node":
            boxes[int(words[0])] = point(*words[1:3])
        elif kind == "edge":
            ends = int(words[0]), int(words[1])
            numbers = words[3 : 3 + 2 * int(words[2])]
            routes[ends] = tuple(map(point, numbers[::2], numbers[1::2]))
    return Layout(
        tuple(boxes[place] for place in range(len(boxes))),
        tuple(routes[ends] for ends in arrows),
        round(width + 2 * _MARGIN, 1),
        round(height + 2 * _MARGIN, 1),
        curved=True,
    )
