"""A layout by the program ``dot`` of Graphviz, where it is installed and has few enough boxes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from .graph_layout import Layout

__all__ = ["graphviz_layout"]

_INCH, _MARGIN = 72.0, 12.0  # in pixels, which are Graphviz's points
_TIMEOUT = 30  # seconds
_MOST_BOXES = 600


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
    if program is None or len(sizes) > _MOST_BOXES:
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
