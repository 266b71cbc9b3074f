"""A graph in a notebook: a picture, folded until it can be looked at, and a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...output.markup import element
from ...output.terminal_text import printable
from ..folding import fold_to_fit
from ..graph_statistics import graph_statistics
from .picture import make_picture
from .svg import picture_to_svg

if TYPE_CHECKING:
    from ..graph_model import BackwardGraph

__all__ = ["mime_bundle"]

_MOST_BOXES = 120


def mime_bundle(graph: BackwardGraph) -> dict[str, str]:
    """Return a picture of a graph, folded until it can be looked at, and a few numbers.

    Returns
    -------
    dict of str to str
        By media type: ``'text/plain'``, ``'image/svg+xml'`` and ``'text/html'``.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> sorted(mime_bundle(gi.graph(gs.ones(2, requires_grad=True))))
    ['image/svg+xml', 'text/html', 'text/plain']
    """
    text = str(graph_statistics(graph))
    shown = fold_to_fit(graph, _MOST_BOXES)
    svg = picture_to_svg(make_picture(shown))
    html = element("div", {"style": "overflow:auto;max-height:40em"}, svg)
    if shown is not graph:
        html += element("p", None, f"{len(graph):,} nodes, folded to {len(shown):,}")
    html += element("pre", None, text)
    return {"text/plain": printable(text), "image/svg+xml": str(svg), "text/html": str(html)}
