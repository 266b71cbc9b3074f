"""Writing a graph to a file, in the format that its name asks for."""

from __future__ import annotations

import os
from pathlib import Path

from ..folding import fold_to_fit
from ..graph_model import BackwardGraph
from .graph_format_registry import formats

__all__ = ["ENDINGS", "FORMATS", "PICTURES", "format_of", "render_graph", "write_graph"]

_KNOWN = formats()
FORMATS = tuple(_KNOWN)
PICTURES = tuple(name for name, known in _KNOWN.items() if known.picture)
"""Formats that draw every node, so that a large graph is folded first."""

ENDINGS = {ending: name for name, known in _KNOWN.items() for ending in known.endings}
"""Of files, and the formats they tell."""
_MOST_BOXES = 150


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """Return the format of a file.

    Parameters
    ----------
    path : str or path-like
        The suffix of the file's name tells; case does not matter.
    format : str, optional
        Where the file's name does not tell.

    Raises
    ------
    ValueError
        If there is no such format.

    Examples
    --------
    >>> format_of("loss.svg"), format_of("loss.gv"), format_of("out", "json")
    ('svg', 'dot', 'json')
    """
    ending = Path(path).suffix.lower()
    found = format or ENDINGS.get(ending, ending[1:])
    if found not in _KNOWN:
        what = f"format {format!r}" if format else f"format for the ending of {os.fspath(path)!r}"
        raise ValueError(f"there is no {what}: choose one of {', '.join(FORMATS)}")
    return found


def render_graph(graph: BackwardGraph, format: str = "svg", *, fit: bool = True) -> str:
    """Return a graph in a format.

    Parameters
    ----------
    format : str
        ``'svg'``, ``'dot'``, ``'mermaid'``, ``'graphml'``, ``'json'``, ``'html'`` or ``'text'``.
    fit : bool
        Fold a large graph before it is drawn; GraphML, JSON, HTML and text always have all of it.

    Raises
    ------
    ValueError
        If there is no such format, or the picture would be too large to look at.

    See Also
    --------
    write_graph, graph

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> gi.render_graph(gi.graph(gs.ones(2, requires_grad=True)), "dot").splitlines()[0]
    'digraph backward {'
    """
    format_of("", format)
    if fit and format in PICTURES:
        graph = fold_to_fit(graph, _MOST_BOXES)
    return _KNOWN[format].write(graph)


def write_graph(
    graph: BackwardGraph, path: str | os.PathLike[str], format: str | None = None, *, fit: bool = True
) -> None:
    """Write a graph to a file.

    Parameters
    ----------
    path : str or path-like
        Its ending tells the format: ``.svg``, ``.dot`` or ``.gv``, ``.mermaid`` or ``.mmd``, ``.graphml``, ``.json``,
        ``.html``, ``.txt``.
    format : str, optional
        As for :func:`render_graph`, where the ending does not tell.
    fit : bool
        As for :func:`render_graph`.

    Raises
    ------
    ValueError
        If there is no such format, or the picture would be too large to look at.
    OSError
        If the file cannot be written.

    See Also
    --------
    render_graph

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gi.write_graph(gi.graph(gs.ones(2, requires_grad=True).exp()), f"{folder}/loss.svg")
    ...     os.listdir(folder)
    ['loss.svg']
    """
    text = render_graph(graph, format_of(path, format), fit=fit)
    Path(path).write_text(text, encoding="utf-8", errors="replace", newline="\n")
