"""Graphviz."""

from __future__ import annotations

import shutil
import subprocess

from ..graphs.model import BackwardGraph
from .picture import Box, Picture, make_picture
from .theme import FONT, MARKS, colours

__all__ = ["graphviz_svg", "picture_to_dot", "to_dot"]

_PATIENCE = 30
_MOST_FOR_GRAPHVIZ = 600


def to_dot(graph: BackwardGraph) -> str:
    """Return a graph in the DOT language, for Graphviz.

    Parameters
    ----------
    graph : BackwardGraph

    Returns
    -------
    str

    Raises
    ------
    PictureTooLargeError
        If the graph has more nodes than anyone can look at.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> from gradscope.inspect.export.dot import to_dot
    >>> print(to_dot(gi.graph(gs.ones(2, requires_grad=True))).splitlines()[0])
    digraph backward {
    """
    return picture_to_dot(make_picture(graph))


def picture_to_dot(picture: Picture) -> str:
    """Return a picture in the DOT language.

    Parameters
    ----------
    picture : Picture

    Returns
    -------
    str
    """
    lines = [
        "digraph backward {",
        '  graph [rankdir=TB, nodesep=0.3, ranksep=0.4, bgcolor="transparent"];',
        f"  node [shape=box, style={_quoted('rounded,filled')}, fontname={_quoted(FONT)}, fontsize=11];",
        '  edge [color="#7a869a", arrowsize=0.7, fontsize=9];',
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
    label = "\n".join([box.title, *box.lines])
    return (
        f"label={_quoted(label)}, fillcolor={_quoted(fill)}, color={_quoted(stroke)}, penwidth={width}, "
        f"tooltip={_quoted(box.tooltip)}"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def graphviz_svg(picture: Picture) -> str | None:
    """Return a picture as Graphviz lays it out, None without Graphviz, or where it fails or takes too long.

    Parameters
    ----------
    picture : Picture

    Returns
    -------
    str or None
    """
    program = shutil.which("dot")
    if program is None or len(picture.boxes) > _MOST_FOR_GRAPHVIZ:
        return None
    source = picture_to_dot(picture).encode()
    try:
        done = subprocess.run([program, "-Tsvg"], input=source, capture_output=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
