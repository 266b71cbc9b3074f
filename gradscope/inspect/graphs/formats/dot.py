"""A graph in the language of Graphviz."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ...output.terminal_text import one_line, printable
from .graph_format_registry import graph_format
from .picture import Box, Picture, make_picture
from .theme import FONT, MARKS, colours

if TYPE_CHECKING:
    from ..graph_model import BackwardGraph

__all__ = ["picture_to_dot", "to_dot"]

_QUIET = "#5a6475"


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
