"""Graphs as pictures and files.

- :mod:`~.graph_files`: ``gi.write_graph``: the format that a file's name asks for
- :mod:`~.graph_format_registry`: how a format is registered, by its own file
- :mod:`~.picture`: what each box reads, and the arrows between them
- :mod:`~.theme`: colours, and how wide a text is
- :mod:`~.graph_layout`: a layered drawing, for where Graphviz is not installed
- :mod:`~.graphviz_layout`: the same by Graphviz, where it is installed
- :mod:`~.dot`, :mod:`~.svg`, :mod:`~.mermaid`: pictures
- :mod:`~.html`: a page to pan, search and fold, with the files in ``page/``
- :mod:`~.graph_text`: numbers, and the tree of modules
- :mod:`~.plain`: nodes as numbers and text, for :mod:`~.graphml` and :mod:`~.node_link`
- :mod:`~.notebook`: what a notebook shows of a graph
"""

from __future__ import annotations
